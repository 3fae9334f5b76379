import type { OperatorName } from './kinds.ts'

/** One line of the tables: a kind of payment, how many at once, on which database. */
export interface Part {
  title: string
  kind: 'payment' | 'deposit' | 'payout' | 'recipient'
  operator: OperatorName
  clients: number
  /** Payments per second; null where each client waits for its payment. */
  rate: number | null
  merchants: number
  processes: number
  /** Whether the tables are full. */
  full: boolean
  /** Nothing is asked for: the memory of the programs is read. */
  idle: boolean
  goals: Readonly<Record<string, number>>
}

/** Merchants that pay in the parts with many of them. */
export const merchantsMax = 200

/** The most that a payment may cost with 32 clients. */
const costs = {
  'service ms': 0.8,
  'simulator ms': 0.4,
  'postgres ms': 0.4,
  commits: 1,
  'WAL kB': 5,
  scans: 0,
}
const soon = { 'p99 ms': 1_000 }

type Choice = Partial<Omit<Part, 'title' | 'operator'>> & { polled?: boolean }

const choices: readonly Choice[] = [
  { clients: 32, goals: costs },
  { clients: 1 },
  { clients: 128 },
  { merchants: merchantsMax, clients: 1 },
  { merchants: merchantsMax, clients: 32, goals: costs },
  { merchants: merchantsMax, clients: 128 },
  { polled: true, clients: 1 },
  { polled: true, clients: 32 },
  { polled: true, clients: 128 },
  { polled: true, merchants: merchantsMax, clients: 32 },
  { rate: 300, goals: soon },
  { rate: 300, polled: true, goals: soon },
  { processes: 2, clients: 32 },
  { processes: 2, clients: 128 },
  { processes: 2, polled: true, clients: 32 },
  { kind: 'deposit', clients: 32 },
  { kind: 'payout', clients: 32 },
  { kind: 'recipient', clients: 4 },
  { full: true, clients: 1 },
  { full: true, clients: 32, goals: costs },
  { full: true, clients: 128 },
  { full: true, merchants: merchantsMax, clients: 32, goals: costs },
  { full: true, polled: true, clients: 32 },
  { full: true, rate: 300, goals: soon },
  { full: true, rate: 300, polled: true, goals: soon },
  { full: true, processes: 2, clients: 32 },
  { idle: true, goals: { MB: 300 } },
]

/**
 * The parts whose titles have all these words.
 * @param rate takes the place of the clients
 */
export function partsOf(words: readonly string[], rate: number | null, rows: number): Part[] {
  const parts = choices.map((choice) =>
    partOf(rate === null || choice.idle ? choice : { ...choice, rate }, rows),
  )
  const chosen = parts.filter(({ title }) => words.every((word) => title.split(/[ ,]+/).includes(word)))
  return [...new Map(chosen.map((part) => [part.title, part])).values()]
}

function partOf({ polled = false, ...choice }: Choice, rows: number): Part {
  const part = {
    kind: 'payment',
    clients: 32,
    rate: null,
    merchants: 1,
    processes: 1,
    full: false,
    idle: false,
    goals: {},
    ...choice,
  } as const
  const times = part.rate === null ? number(part.clients, 'client') : `${part.rate} per second`
  const words = [
    part.kind,
    polled ? 'polled' : 'callback',
    times,
    number(part.merchants, 'merchant'),
    part.full ? `${rows.toLocaleString('en')} rows` : 'new database',
    part.processes === 1 ? 'one process' : 'two processes',
  ]
  return {
    ...part,
    title: part.idle ? 'idle memory' : words.join(', '),
    operator: polled ? 'OperatorC' : 'OperatorA',
  }
}

function number(count: number, noun: string): string {
  return count === 1 ? `one ${noun}` : `${count} ${noun}s`
}
