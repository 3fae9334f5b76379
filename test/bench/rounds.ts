import { cpuOf, cpuSince } from './cpu.ts'
import type { BenchFixture } from './fixture.ts'

/** One turn of one entry. */
export interface Measurement {
  /** In the unit of its section. */
  value: number
  /** The count by which the processor time is divided. */
  operations: number
  p99Ms: number
}

/** The bounds that an entry must reach, as ratios to the first entry of its section. */
export interface Goal {
  ratioMin?: number
  ratioMax?: number
  cpuMax?: number
  /** A bound of the value itself. */
  valueMax?: number
}

/** One side of a comparison. */
export interface BenchEntry {
  name: string
  /** Ids of the processes of the service, for the processor time; without any, none is counted. */
  processes: readonly number[]
  /** Prepares a turn; its time does not count. */
  prepare?(seconds: number): Promise<void>
  /** Runs one turn of about this length, with the work that it leaves for later. */
  measure(seconds: number): Promise<Measurement>
  goal?: Goal | undefined
}

/** Entries that take turns; the first is what the others are compared with. */
export interface Section {
  title: string
  unit: string
  entries: readonly [BenchEntry, ...BenchEntry[]]
}

/** A workload that is ready to run. */
export interface BenchRun {
  sections: readonly Section[]
  /** Words below the tables: what was compared with what. */
  notes: readonly string[]
  close(): Promise<void>
}

export interface BenchOptions {
  rounds: number
  seconds: number
  /** Rows of the largest table. */
  rows: number
}

/** Opens a workload on a database of its own. */
export type Workload = (fixture: BenchFixture, options: BenchOptions) => Promise<BenchRun>

/** The middle of the values, with the smallest and the largest. */
export interface Spread {
  median: number
  min: number
  max: number
}

export interface EntryResult {
  name: string
  value: Spread
  /** Paired by round with the first entry of the section. */
  ratio: Spread
  p99Ms: Spread
  /** Microseconds per operation; null where the kernel does not say. */
  serviceMicros: Spread | null
  postgresMicros: Spread | null
  cpuRatio: Spread | null
  goal: Goal | null
  /** Whether the medians reach the goal; null without one. */
  reached: boolean | null
}

export interface SectionResult {
  title: string
  unit: string
  entries: EntryResult[]
}

interface Turn extends Measurement {
  serviceMicros: number | null
  postgresMicros: number | null
}

/** Runs a section: A B C, then C B A, and so on, after one short turn of each that does not count. */
export async function runSection(
  section: Section,
  fixture: BenchFixture,
  options: Pick<BenchOptions, 'rounds' | 'seconds'>,
  say: (words: string) => void,
): Promise<SectionResult> {
  const turns = new Map<BenchEntry, Turn[]>(section.entries.map((entry) => [entry, []]))
  for (const entry of section.entries) {
    const seconds = Math.min(1, options.seconds)
    await entry.prepare?.(seconds)
    await entry.measure(seconds)
  }
  for (let round = 0; round < options.rounds; round += 1) {
    const order = round % 2 ? section.entries.toReversed() : section.entries
    for (const entry of order) {
      say(`${section.title}: round ${round + 1} of ${options.rounds}, ${entry.name}`)
      turns.get(entry)?.push(await takeTurn(entry, fixture, options.seconds))
    }
  }
  const [first] = section.entries
  const limit = turns.get(first) ?? []
  return {
    title: section.title,
    unit: section.unit,
    entries: section.entries.map((entry) => summarize(entry, turns.get(entry) ?? [], limit)),
  }
}

async function takeTurn(entry: BenchEntry, fixture: BenchFixture, seconds: number): Promise<Turn> {
  await entry.prepare?.(seconds)
  const service = cpuOf(entry.processes)
  const postgres = cpuOf(await fixture.postgresProcesses())
  const measured = await entry.measure(seconds)
  const serviceTook = cpuSince(service, entry.processes)
  const postgresTook = cpuSince(postgres, await fixture.postgresProcesses())
  const perOperation = (micros: number | null) =>
    micros === null || serviceTook === null ? null : micros / measured.operations
  return {
    ...measured,
    serviceMicros: perOperation(serviceTook),
    postgresMicros: perOperation(postgresTook),
  }
}

function summarize(entry: BenchEntry, turns: readonly Turn[], limit: readonly Turn[]): EntryResult {
  const paired = (read: (turn: Turn) => number | null): Spread | null =>
    spread(
      turns.map((turn, round) => {
        const base = limit[round] && read(limit[round])
        const own = read(turn)
        return own === null || base == null ? null : own / base
      }),
    )
  const value = spread(turns.map((turn) => turn.value)) ?? nothing
  const ratio = paired((turn) => turn.value) ?? nothing
  const cpuRatio = paired((turn) =>
    turn.serviceMicros === null || turn.postgresMicros === null
      ? null
      : turn.serviceMicros + turn.postgresMicros,
  )
  const goal = entry.goal ?? null
  return {
    name: entry.name,
    value,
    ratio,
    p99Ms: spread(turns.map((turn) => turn.p99Ms)) ?? nothing,
    serviceMicros: spread(turns.map((turn) => turn.serviceMicros)),
    postgresMicros: spread(turns.map((turn) => turn.postgresMicros)),
    cpuRatio,
    goal,
    reached: goal && isReached(goal, value.median, ratio.median, cpuRatio?.median ?? null),
  }
}

function isReached(goal: Goal, value: number, ratio: number, cpu: number | null): boolean {
  const { ratioMin, ratioMax, cpuMax, valueMax } = goal
  return (
    (valueMax === undefined || value <= valueMax) &&
    (ratioMin === undefined || ratio >= ratioMin) &&
    (ratioMax === undefined || ratio <= ratioMax) &&
    (cpuMax === undefined || cpu === null || cpu <= cpuMax)
  )
}

const nothing: Spread = { median: Number.NaN, min: Number.NaN, max: Number.NaN }

/** Null where one of the values is missing. */
function spread(values: readonly (number | null)[]): Spread | null {
  const sorted = values.filter((value) => value !== null).toSorted((a, b) => a - b)
  if (sorted.length === 0 || sorted.length < values.length) return null
  const [min = 0, max = 0] = [sorted[0], sorted.at(-1)]
  const [low = 0, high = 0] = [sorted[(sorted.length - 1) >> 1], sorted[sorted.length >> 1]]
  return { median: (low + high) / 2, min, max }
}
