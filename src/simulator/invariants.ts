import { type AccountSums, addUp, pool } from './book.ts'
import type { SimulatorCall, Reply } from './http.ts'
import { json } from './http.ts'
import type { JournalEntry, OperatorKey, SimulatedOperation } from './model.ts'
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
  const recount = recountOf(context)
  const problems = operatorKeys.flatMap((key) =>
    book.verify(key, recount.sums[key]).map((why) => `${operators[key].name} ${why}`),
  )
  const wanted = { operator: query.get('operator'), reference: query.get('clientRef') }
  const executions = [...recount.executions.values()]
    .toSorted((one, other) => one.operator.localeCompare(other.operator))
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

/** The sums of accounts, and the executions by operator, kind and client reference. */
interface Recount {
  readonly sums: Readonly<Record<OperatorKey, AccountSums>>
  readonly executions: Map<string, Execution>
}

/** The fields of an operation that never change. */
type About = Pick<SimulatedOperation, 'id' | 'kind' | 'clientReference' | 'correlationId' | 'originalId'>

/** Counts everything again from the journal, independent of the balances in memory. */
function recountOf({ store }: SimulatorContext): Recount {
  const sums = { a: new Map(), b: new Map(), c: new Map(), d: new Map() } satisfies Recount['sums']
  const executions: Recount['executions'] = new Map()
  const operations = new Map<string, About>()
  for (const change of store.history()) {
    if ('operation' in change && !operations.has(change.operation.id)) {
      const { id, kind, clientReference, correlationId, originalId } = change.operation
      operations.set(id, { id, kind, clientReference, correlationId, originalId })
    }
    if (!('entry' in change)) continue
    addUp(sums[change.entry.operator], change.entry)
    const operation = operations.get(change.entry.operationId ?? '')
    const about = operations.get(operation?.originalId ?? '') ?? operation
    if (about && about.kind !== 'reverse') execute(executions, change.entry, about, about.kind)
  }
  return { sums, executions }
}

function execute(
  executions: Recount['executions'],
  { operator, type, transfers }: JournalEntry,
  about: About,
  kind: Execution['kind'],
): void {
  const amount = BigInt(transfers[0]?.amount ?? '0')
  const name = `${operator} ${kind} ${about.clientReference || about.id}`
  const row = executions.get(name) ?? {
    operator: operators[operator].name,
    kind,
    client_reference: about.clientReference,
    correlation_ids: [],
    count: 0,
    amount: '0',
    reversed: '0',
  }
  executions.set(name, row)
  if (type === 'reverse') row.reversed = String(BigInt(row.reversed) + amount)
  else {
    row.count += 1
    row.amount = String(BigInt(row.amount) + amount)
    if (!row.correlation_ids.includes(about.correlationId)) row.correlation_ids.push(about.correlationId)
  }
}

function byName<Value>(of: (key: OperatorKey) => Value): Record<string, Value> {
  return Object.fromEntries(operatorKeys.map((key) => [operators[key].name, of(key)]))
}
