import { styleText } from 'node:util'
import { aligned, figure } from '../table.ts'
import type { TurnResult } from './turn.ts'

export interface PartResult {
  title: string
  /** The most that a figure may be. */
  goals: Readonly<Record<string, number>>
  /** The limit first, where there is one. */
  contenders: readonly Contender[]
}

interface Contender {
  name: string
  turns: readonly TurnResult[]
}

/** A part as people read it: the medians of each contender, the goals, and how they compare. */
export function partTable({ title, goals, contenders }: PartResult): string {
  const medians = contenders.map(({ name, turns }) => ({ name, figures: mediansOf(turns) }))
  const columns = [...new Set(medians.flatMap(({ figures }) => Object.keys(figures)))]
  const rows = medians.map(({ name, figures }) => [
    name,
    ...columns.map((column) => cell(figures[column], goals[column])),
  ])
  const aims =
    Object.keys(goals).length === 0 ? [] : [['goal', ...columns.map((column) => aim(goals[column]))]]
  const [head = '', ...lines] = aligned([['', ...columns], ...rows, ...aims])
  const comparisons = contenders
    .slice(1)
    .flatMap((each, n) => comparisonsOf(each, contenders.slice(0, n + 1)))
  const scanned = contenders.flatMap(({ name, turns }) =>
    [...new Set(turns.flatMap(({ scannedTables }) => scannedTables))].map(
      (words) => `  ${name} scanned ${words}`,
    ),
  )
  return [styleText('bold', title), head, ...lines, ...comparisons, ...scanned].join('\n')
}

/** Paired by round, so that what the machine does beside them meets both. */
function comparisonsOf(each: Contender, others: readonly Contender[]): string[] {
  const speeds = ({ turns }: Contender) => turns.map(({ figures }) => figures['lives/s'] ?? Number.NaN)
  return others.flatMap((other) => {
    const theirs = speeds(other)
    const ratios = speeds(each).map((speed, round) => speed / (theirs[round] ?? Number.NaN))
    if (ratios.every(Number.isNaN)) return []
    const range = `${figure(Math.min(...ratios))}-${figure(Math.max(...ratios))}`
    return [
      `  ${each.name}: ${figure(median(ratios))} (${range}) times the lives per second of ${other.name}`,
    ]
  })
}

function mediansOf(turns: readonly TurnResult[]): Record<string, number> {
  const columns = Object.keys(turns[0]?.figures ?? {})
  return Object.fromEntries(
    columns.map((column) => [column, median(turns.map(({ figures }) => figures[column] ?? Number.NaN))]),
  )
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const [low = 0, high = 0] = [sorted[(sorted.length - 1) >> 1], sorted[sorted.length >> 1]]
  return (low + high) / 2
}

function cell(value: number | undefined, goal: number | undefined): string {
  const text = figure(value)
  return goal !== undefined && value !== undefined && value > goal ? `${text}!` : text
}

function aim(goal: number | undefined): string {
  return goal === undefined ? '' : `<= ${figure(goal)}`
}
