import type { OperatorDriver, RawCallback } from '../../src/operators/operator.ts'

/** What a driver is certified for; each is played once under each fault. */
export const operations = ['collect', 'disburse', 'reverse', 'query', 'statement'] as const
export type DriverOperation = (typeof operations)[number]

/** A wish to an operator: what goes wrong, with which request. */
export interface RequestedFault {
  effect: string
  op: DriverOperation | 'token'
  /** Only what carries this reference. */
  clientRef?: string
  params?: Readonly<Record<string, number | string>>
  /** How often; absent: each time. */
  times?: number
}

/** What money did for one reference of ours, by the operator's own book. */
export interface Executions {
  count: number
  amount: bigint
  reversed: bigint
}

/** An operator of its own for each test, with one driver that speaks to it. */
export interface OperatorFixture {
  driver: OperatorDriver
  /** The same, as a process has it that was just started. */
  fresh: OperatorDriver
  /** The same, of an operator that nobody can connect to. */
  unreachable: OperatorDriver
  /** Puts a fault in force. @returns null, or why this operator can never show it */
  wish(wish: RequestedFault): Promise<string | null>
  /** Takes all faults back. */
  heal(): Promise<void>
  /** Moves the operator's time. */
  advance(ms: number): Promise<void>
  executions(clientRef: string): Promise<Executions>
  /** What does not add up in the operator's books. */
  problems(): Promise<readonly string[]>
  /** The requests that carried this correlation id as the name of a new operation. */
  creations(correlationId: string): Promise<number>
  /** What the operator has told of its own accord, oldest first. */
  callbacks: readonly RawCallback[]
  close(): Promise<void>
}

/**
 * A driver to be certified. For the two protocols that are built in, `subjects.ts` shows what it takes; a
 * driver of another protocol brings an operator of its own that can go wrong in the same ways.
 */
export interface DriverUnderTest {
  name: string
  /** An E.164 number whose owner pays and receives at once. */
  customer: string
  /** An E.164 number that the operator does not know. */
  stranger: string
  /** It signs in for a token first; others show a key with each call. */
  signsIn: boolean
  /** Words that no record may hold: keys, secrets, tokens. */
  secrets: RegExp
  open(): Promise<OperatorFixture>
}

/** What became of one operation under one fault. */
export type ConformanceVerdict =
  | { kind: 'passed' }
  | { kind: 'failed'; why: string }
  /** It cannot happen: to this operation, or at this operator. */
  | { kind: 'impossible'; why: string }
  /** The driver does not do this yet. */
  | { kind: 'not offered'; what: string }

export interface ConformanceCell {
  fault: string
  operation: DriverOperation
  verdict: ConformanceVerdict
}

export interface Certificate {
  subject: string
  cells: readonly ConformanceCell[]
  /** What a driver may offer besides, and this one does not yet. */
  notOffered: readonly string[]
}
