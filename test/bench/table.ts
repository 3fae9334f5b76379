import { styleText } from 'node:util'
import type { EntryResult, Goal, SectionResult, Spread } from './rounds.ts'

/** A section as people read it: one line per entry, the ratio with its range, processor time, the goal. */
export function table({ title, unit, entries }: SectionResult): string {
  const head = [
    title,
    unit,
    'x limit (range)',
    'p99 ms',
    'service µs',
    'postgres µs',
    'CPU x limit (range)',
    'goal',
  ]
  const rows = entries.map((entry, place) => [
    entry.name,
    figure(entry.value.median),
    place === 0 ? '1' : range(entry.ratio),
    figure(entry.p99Ms.median),
    figure(entry.serviceMicros?.median),
    figure(entry.postgresMicros?.median),
    place === 0 ? '1' : range(entry.cpuRatio),
    verdict(entry),
  ])
  const [first = '', ...others] = aligned([head, ...rows])
  const lines = others.map((line, place) => paint(entries[place], line))
  return [styleText('bold', first), ...lines].join('\n')
}

/** Lines whose columns are as wide as their widest word; all but the first and the last end at the right. */
export function aligned(rows: readonly (readonly string[])[]): string[] {
  const columns = Math.max(...rows.map((row) => row.length))
  const widths = Array.from({ length: columns }, (_none, column) =>
    Math.max(...rows.map((row) => row[column]?.length ?? 0)),
  )
  return rows.map((row) =>
    row
      .map((word, column) =>
        column === 0 || column === columns - 1
          ? word.padEnd(widths[column] ?? 0)
          : word.padStart(widths[column] ?? 0),
      )
      .join('  ')
      .trimEnd(),
  )
}

function paint(entry: EntryResult | undefined, line: string): string {
  if (entry?.reached === true) return styleText('green', line)
  return entry?.reached === false ? styleText('red', line) : line
}

function verdict({ goal, reached }: EntryResult): string {
  return goal ? `${goalWords(goal)}: ${reached ? 'reached' : 'missed'}` : ''
}

function goalWords({ ratioMin, ratioMax, cpuMax, valueMax }: Goal): string {
  return [
    ...(valueMax === undefined ? [] : [`${valueMax} at most`]),
    ...(ratioMin === undefined ? [] : [`>= ${ratioMin}`]),
    ...(ratioMax === undefined ? [] : [`<= ${ratioMax}`]),
    ...(cpuMax === undefined ? [] : [`CPU <= ${cpuMax}`]),
  ].join(', ')
}

function range(spread: Spread | null): string {
  return spread ? `${ratio(spread.median)} (${ratio(spread.min)}-${ratio(spread.max)})` : '-'
}

function ratio(value: number): string {
  return value.toFixed(value < 10 ? 2 : 0)
}

/** With as many digits as people compare. */
export function figure(value: number | undefined): string {
  if (value === undefined || Number.isNaN(value)) return '-'
  const digits = value < 10 ? 2 : value < 100 ? 1 : 0
  return value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits })
}
