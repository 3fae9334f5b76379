import { pool } from './book.ts'
import type { SimulatorCall, Reply } from './http.ts'
import { json } from './http.ts'
import type { OperatorKey } from './model.ts'
import { operatorKeys } from './model.ts'
import { operators } from './operators.ts'
import type { SimulatorContext } from './context.ts'

/** How often money moved for one client reference, in one direction; francs as text. */
interface Execution {
  readonly operator: string
  readonly kind: 'collect' | 'disburse'
  readonly client_reference: string
  readonly correlation_ids: string[]
  count: number
  amount: string
  /** The francs that went back to the payer, by the client's request or the operator's decision. */
  reversed: string
}

/**
 * Answers with the state of the operators' books, and their money movements: 200 when every book adds up,
 * otherwise 500 with the problems. A double execution is no problem of a book: it is listed in `repeated`.
 * @param call `?operator=` and `?clientRef=` limit the executions
 */
export function invariants(context: SimulatorContext, { query }: SimulatorCall): Reply {
  const { book, pendingCount, noticeCount } = context.store
  const problems = operatorKeys.flatMap((key) =>
    book.verify(key).map((why) => `${operators[key].name} ${why}`),
  )
  const wanted = { operator: query.get('operator'), reference: query.get('clientRef') }
  const executions = operatorKeys
    .flatMap((key) => executionsOf(context, key))
    .filter(({ operator }) => wanted.operator === null || operator === wanted.operator)
    .filter((row) => wanted.reference === null || row.client_reference === wanted.reference)
  return json(problems.length === 0 ? 200 : 500, {
    ok: problems.length === 0,
    problems,
    pools: byName((key) => String(book.balance(key, pool) ?? 0n)),
    movement: byName((key) => poolChange(context, key)),
    pending: pendingCount,
    notes: noticeCount,
    executions,
    repeated: executions.filter(({ count }) => count > 1),
  })
}

/**
 * Sums the movements of our float by type. Outgoing amounts and fees are negative, so all sums together are
 * the balance.
 */
function poolChange({ store: { book } }: SimulatorContext, key: OperatorKey): Record<string, string> {
  const sums = { opening: 0n, top_up: 0n, collect: 0n, disburse: 0n, reverse: 0n, fees: 0n }
  for (const { type, amount, fee } of book.poolLines(key)) {
    sums[type] += amount
    sums.fees += fee
  }
  return Object.fromEntries(Object.entries(sums).map(([name, francs]) => [name, String(francs)]))
}

function executionsOf({ store }: SimulatorContext, key: OperatorKey): Execution[] {
  const found = new Map<string, Execution>()
  for (const { type, operationId, transfers } of store.book.entries(key)) {
    const operation = operationId === null ? undefined : store.operation(operationId)
    const amount = transfers[0]?.amount ?? '0'
    const original = operation?.originalId ? store.operation(operation.originalId) : undefined
    const about = original ?? operation
    if (!about || about.kind === 'reverse') continue
    const name = `${about.kind} ${about.clientReference || about.id}`
    const row = found.get(name) ?? {
      operator: operators[key].name,
      kind: about.kind,
      client_reference: about.clientReference,
      correlation_ids: [],
      count: 0,
      amount: '0',
      reversed: '0',
    }
    found.set(name, row)
    if (type === 'reverse') row.reversed = String(BigInt(row.reversed) + BigInt(amount))
    else {
      row.count += 1
      row.amount = String(BigInt(row.amount) + BigInt(amount))
      if (!row.correlation_ids.includes(about.correlationId)) row.correlation_ids.push(about.correlationId)
    }
  }
  return [...found.values()]
}

function byName<Value>(of: (key: OperatorKey) => Value): Record<string, Value> {
  return Object.fromEntries(operatorKeys.map((key) => [operators[key].name, of(key)]))
}
