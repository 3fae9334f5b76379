import { closeSync, fstatSync, openSync, readSync } from 'node:fs'
import type { OperationChange, SimulatedOperation } from '../../src/simulator/model.ts'
import { operators } from '../../src/simulator/operators.ts'
import { startSimulator } from '../../src/simulator/simulator.ts'

/** One execution by an operator under one of our identities. */
export interface ExecutedOrder {
  /** `OperatorA` to `OperatorD`. */
  operator: string
  state: SimulatedOperation['state']
  /** Francs that moved, which may be fewer than were asked for. */
  amount: number
  /** Whether the money was paid out, not in. */
  isOut: boolean
}

/** The four operators. They are never killed, and misbehave by the faults below. */
export interface CrashOperators {
  url: string
  /** Reads their book from their journal: executions by the identity that we asked under. */
  book: () => ReadonlyMap<string, readonly ExecutedOrder[]>
  /** Sentences about errors of their book; empty where it adds up. */
  problems(): Promise<string[]>
  misbehave(on: boolean): Promise<void>
  close(): Promise<void>
}

const controlToken = 'crash-control'

/**
 * These operators recognise no repeated request, so the service must not rely on it. (OperatorB never does.)
 */
const alwaysInForce = ['OperatorA', 'OperatorC', 'OperatorD'].map((operator) => ({
  match: { operator, op: ['collect', 'disburse'] },
  effect: 'no_dedupe',
}))

const anyCall = { op: ['collect', 'disburse', 'query'] }
const moneyCall = { op: ['collect', 'disburse'] }
/**
 * The faults of the operators and their probabilities. (see docs/design/architecture.md#the-way-of-a-payment)
 */
const faults: readonly object[] = [
  { match: anyCall, effect: 'close_before', probability: 0.05 },
  { match: anyCall, effect: 'close_after', probability: 0.05 },
  { match: anyCall, effect: 'status', probability: 0.03 },
  // Executes within the fence (see `short-limits.ts`), and after the first question about an unknown outcome.
  { match: moneyCall, effect: 'late_execution', probability: 0.04, params: { ms: 2_500 } },
  ...['OperatorA', 'OperatorB', 'OperatorD'].flatMap((operator) => [
    { match: { ...moneyCall, operator }, effect: 'cb_drop', probability: 0.2 },
    { match: { ...moneyCall, operator }, effect: 'cb_duplicate', probability: 0.6, params: { copies: 3 } },
    { match: { ...moneyCall, operator }, effect: 'cb_reorder', probability: 0.3, params: { ms: 100 } },
  ]),
]

export async function startOperators(journalPath: string, seed: number): Promise<CrashOperators> {
  const simulator = await startSimulator({ journalPath, controlToken, seed })
  const control = async (method: string, path: string, body?: object) => {
    const answer = await fetch(`${simulator.url}/_sim/${path}`, {
      method,
      headers: { 'x-control-token': controlToken, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    })
    const text = await answer.text()
    return { status: answer.status, body: (text ? JSON.parse(text) : {}) as Record<string, unknown> }
  }
  const read = readJournal(journalPath)
  return {
    url: simulator.url,
    book: read,
    async problems() {
      const { status, body } = await control('GET', 'invariants')
      return status === 200 ? [] : [JSON.stringify(body['problems'])]
    },
    async misbehave(on) {
      await control('DELETE', 'faults')
      for (const fault of on ? [...alwaysInForce, ...faults] : alwaysInForce) {
        const { status, body } = await control('POST', 'faults', fault)
        if (status !== 201) throw new Error(`no such fault: ${JSON.stringify(body)}`)
      }
    },
    close: () => simulator.close(),
  }
}

export const operatorsControlToken = controlToken

/** Follows the journal from the last position that was read. */
function readJournal(path: string): CrashOperators['book'] {
  const operations = new Map<string, SimulatedOperation>()
  let offset = 0
  let rest = ''
  return () => {
    const file = openSync(path, 'r')
    const fresh = Buffer.alloc(fstatSync(file).size - offset)
    readSync(file, fresh, 0, fresh.length, offset)
    closeSync(file)
    offset += fresh.length
    const lines = (rest + fresh.toString()).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) {
      const changes = JSON.parse(line) as OperationChange[] | { journal: string }
      for (const change of Array.isArray(changes) ? changes : [])
        if ('operation' in change && change.operation.kind !== 'reverse')
          operations.set(change.operation.id, change.operation)
    }
    const book = new Map<string, ExecutedOrder[]>()
    for (const { kind, clientReference, operator, state, amount } of operations.values()) {
      const executions = book.get(clientReference) ?? []
      book.set(clientReference, executions)
      const isOut = kind === 'disburse'
      executions.push({ operator: operators[operator].name, state, amount: Number(amount), isOut })
    }
    return book
  }
}
