import { type ProgramAnswer, call, type Home } from '../kit/program.ts'

/** Something that a merchant asks for, under a reference and with an amount that nothing else has. */
export interface DrillOrder {
  kind: 'pay' | 'deposit' | 'payout' | 'recipient'
  operator: string
  reference: string
  amount: number
  phone: string
  /** The time of a scheduled payout. */
  scheduledAt?: string
}

export const operators = ['OperatorA', 'OperatorB', 'OperatorC', 'OperatorD'] as const

/** Numbers of customers who confirm at once, and after two seconds. */
const phones = ['70000001', '70000201'] as const

let drawn = 0

/** @param each how many for each operator */
export function makeOrders(kind: DrillOrder['kind'], name: string, each: number): DrillOrder[] {
  return operators.flatMap((operator) =>
    Array.from({ length: each }, (_, index) => ({
      kind,
      operator,
      reference: `${name}-${kind}-${operator.slice(-1)}${index}`,
      amount: 2_000 + ++drawn,
      // OperatorC is asked again and again: what takes long there is open for long.
      phone: phones[index % 2] ?? phones[0],
    })),
  )
}

/** Sends an order. Its answer does not matter: the operators' book is compared afterwards. */
export function ask(home: Home, token: Record<string, string>, order: DrillOrder): Promise<ProgramAnswer> {
  const { kind, operator, reference, amount, phone, scheduledAt: scheduled_at } = order
  const common = { amount, payment_method: operator, reference }
  return kind === 'payout'
    ? call(home, 'POST', '/payouts', token, { ...common, destination_phone: phone, scheduled_at })
    : call(home, 'POST', `/${kind}`, token, { ...common, customer_phone: phone })
}

/** Asks for all of them, a few at a time. */
export async function askAll(
  home: Home,
  token: Record<string, string>,
  orders: readonly DrillOrder[],
): Promise<void> {
  const rest = orders.values()
  const asker = async () => {
    for (const order of rest) await ask(home, token, order).catch(() => {})
  }
  await Promise.all(Array.from({ length: 12 }, asker))
}

/** Makes a draft batch of them. @returns its id */
export async function makeBatch(home: Home, token: Record<string, string>, orders: readonly DrillOrder[]) {
  const recipients = orders.map(({ amount, operator, phone }, index) => ({
    name: `R${index}`,
    account: phone,
    amount,
    payment_method: operator,
  }))
  const { status, body } = await call(home, 'POST', '/bulk/batches', token, { title: 'drill', recipients })
  if (status !== 201) throw new Error(`batch: ${status} ${JSON.stringify(body)}`)
  return Number(body['data'].batch_id ?? body['data'].id)
}

/** One execution in the operators' own book. */
export interface OrderExecution {
  operator: string
  kind: 'collect' | 'disburse'
  client_reference: string
  correlation_ids: string[]
  count: number
  amount: string
  reversed: string
}

/** @returns every execution, and how many calls are still being carried out */
export async function readBook(url: string, controlToken: string) {
  const answer = await fetch(`${url}/_sim/invariants`, { headers: { 'x-control-token': controlToken } })
  const book = (await answer.json()) as {
    ok: boolean
    pending: number
    executions: OrderExecution[]
    problems: string[]
  }
  if (!book.ok) throw new Error(`the operators' book: ${book.problems.join('; ')}`)
  return book
}
