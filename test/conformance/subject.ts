import type { OperatorDriver, RawCallback } from '../../src/operators/operator.ts'

/** The operations that a driver is certified for; each is played once under each fault. */
export const operations = ['collect', 'disburse', 'reverse', 'query', 'statement'] as const
export type DriverOperation = (typeof operations)[number]

/** A fault to put in force, and the request that it strikes. */
export interface RequestedFault {
  effect: string
  op: DriverOperation | 'token'
  /** Strikes only requests with this reference. */
  clientRef?: string
  params?: Readonly<Record<string, number | string>>
  /** How many requests it strikes; absent: all. */
  times?: number
}

/** The money that moved under one reference of ours, by the operator's own book. */
export interface Executions {
  count: number
  amount: bigint
  reversed: bigint
}

/** An operator of its own for one trial, and a driver that calls it. */
export interface OperatorFixture {
  driver: OperatorDriver
  /** The same driver without its token, as after a start. */
  fresh: OperatorDriver
  /** The same driver, for an operator that refuses all connections. */
  unreachable: OperatorDriver
  /** Puts a fault in force. @returns null, or the reason why this operator can never show it */
  putInForce(fault: RequestedFault): Promise<string | null>
  /** Ends all faults. */
  endFaults(): Promise<void>
  /** Moves the operator's time. */
  advance(ms: number): Promise<void>
  executions(clientRef: string): Promise<Executions>
  /** Sentences about errors of the operator's books. */
  problems(): Promise<readonly string[]>
  /** How many requests carried this correlation id as the name of a new operation. */
  creations(correlationId: string): Promise<number>
  /** Callbacks of the operator, oldest first. */
  callbacks: readonly RawCallback[]
  close(): Promise<void>
}

/**
 * A driver to be certified. `subjects.ts` has the two built-in protocols; a driver of another protocol brings
 * an operator of its own that can show the same faults.
 */
export interface DriverUnderTest {
  name: string
  /** An E.164 number of a customer that pays and receives at once. */
  customer: string
  /** An E.164 number that the operator does not know. */
  stranger: string
  /** Whether the driver signs in for a token first; others send a key with each call. */
  signsIn: boolean
  /** Secrets that no record may contain: keys, passwords, tokens. */
  secrets: RegExp
  open(): Promise<OperatorFixture>
}

/** The result of one operation under one fault. */
export type ConformanceVerdict =
  | { kind: 'passed' }
  | { kind: 'failed'; why: string }
  /** The fault cannot happen to this operation, or at this operator. */
  | { kind: 'impossible'; why: string }
  /** The driver does not offer this operation. */
  | { kind: 'not offered'; what: string }

export interface ConformanceCell {
  fault: string
  operation: DriverOperation
  verdict: ConformanceVerdict
}

export interface Certificate {
  subject: string
  cells: readonly ConformanceCell[]
  /** Optional parts of the contract that this driver does not offer. */
  notOffered: readonly string[]
}
