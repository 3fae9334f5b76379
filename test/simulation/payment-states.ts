import { expect } from 'vitest'
import type { ModelPayment } from './model.ts'
import type { ModelOut, MoneyModel } from './model-out.ts'
import type { RealOut } from './acts-out.ts'

export type ModelItem = ModelPayment | ModelOut

/** The state of an item in the service's own books. */
export interface PaymentStates {
  id: string
  kind: 'pay' | 'deposit' | 'payout'
  merchantIndex: number
  reference: string
  status: string
  isBack: boolean
  events: string[]
  /** The operator's name of it. */
  name: string | null
}

export async function readItems({ environment, merchants }: RealOut): Promise<PaymentStates[]> {
  const { rows } = await environment.db.owner.query<PaymentStates>({
    name: 'payment_states',
    text: `WITH items AS (
        SELECT t.id, t.transaction_type::text AS kind, t.merchant_id, t.reference, t.status::text,
          t.transaction_type = 'deposit' AND t.status = 'reversed' AS back, 'transaction_id' AS key
        FROM transaction t WHERE t.merchant_id = ANY ($1)
        UNION ALL
        SELECT p.id, 'payout', p.merchant_id, p.reference, p.status::text, p.reversed_at IS NOT NULL,
          'payout_id'
        FROM payout p WHERE p.merchant_id = ANY ($1)
      )
      SELECT i.id::text, i.kind, array_position($1, i.merchant_id) - 1 AS "merchantIndex",
        i.reference, i.status,
        i.back AS "isBack", (
          SELECT json_agg(e.type ORDER BY e.id) FROM event e
          WHERE e.merchant_id = i.merchant_id AND e.data->>i.key = i.id::text
        ) AS events, (
          SELECT r.correlation_id FROM operator_request r
          WHERE r.merchant_id = i.merchant_id
            AND CASE i.kind WHEN 'payout' THEN r.payout_id ELSE r.transaction_id END = i.id
        ) AS name
      FROM items i ORDER BY i.kind, i.id`,
    values: [merchants.map(({ merchantId }) => merchantId)],
  })
  return rows
}

export function find(states: readonly PaymentStates[], item: ModelItem): PaymentStates | undefined {
  return states.find(
    (row) =>
      row.kind === kindOf(item) &&
      row.merchantIndex === item.merchantIndex &&
      row.reference === item.reference,
  )
}

function kindOf(item: ModelItem): PaymentStates['kind'] {
  return 'kind' in item ? item.kind : 'pay'
}

/** Compares service and model: every status, every event, and every franc. */
export async function compare(model: MoneyModel, real: RealOut): Promise<void> {
  const states = await readItems(real)
  const items = [...model.payments, ...model.outs]
  const racing = new Set(model.payments.filter((payment) => isRacing(model, payment)).map(nameOf))
  const describeItem = (item: StateRow, kind: PaymentStates['kind'], isBack: boolean) =>
    itemInWords(
      { ...item, events: racing.has(nameOf(item)) ? withoutTwins(item.events) : item.events },
      kind,
      isBack,
    )
  expect(states.map((row) => describeItem(row, row.kind, row.isBack)).toSorted()).toEqual(
    items.map((item) => describeItem(item, kindOf(item), 'kind' in item && item.isBack)).toSorted(),
  )
  const { rows } = await real.environment.db.owner.query({
    name: 'balance_states',
    text: `SELECT available, reserved, receivable FROM merchant_balance WHERE merchant_id = ANY ($1)
      ORDER BY array_position($1, merchant_id)`,
    values: [real.merchants.map(({ merchantId }) => merchantId)],
  })
  expect(rows).toEqual(
    real.merchants.map((_merchant, merchantIndex) => {
      const worth = model.worth(merchantIndex)
      const [available, receivable] = worth > 0n ? [worth, 0n] : [0n, -worth]
      return { available, reserved: model.reserved(merchantIndex), receivable }
    }),
  )
}

type StateRow = Pick<PaymentStates, 'merchantIndex' | 'reference' | 'status' | 'events'>

/**
 * A payment was given back by refunds and reversed by the operator. If the service learned both at once, the
 * order of recording decides whether one or two events tell it. The money is the same.
 */
function isRacing(model: MoneyModel, payment: ModelPayment): boolean {
  return (
    model.takenBack.has(payment) &&
    model.outs.some((out) => out.refundOf === payment && (model.isPaid(out) || out.isBack))
  )
}

function nameOf({ merchantIndex, reference }: Pick<StateRow, 'merchantIndex' | 'reference'>): string {
  return `${merchantIndex} ${reference}`
}

function withoutTwins(events: readonly string[]): string[] {
  return events.filter((type, place) => type !== 'payment_reversed' || events[place - 1] !== type)
}

/** Describes an item in one line. */
function itemInWords(
  { merchantIndex, reference, status, events }: StateRow,
  kind: string,
  isBack: boolean,
): string {
  return `${kind} ${merchantIndex} ${reference}: ${status}${isBack ? ', back' : ''} (${events.join(' ')})`
}

/** Lets the pauses pass: the last question was a while ago, and an unsent request may be sent. */
export async function forgetPauses({ environment, merchants }: RealOut): Promise<void> {
  await environment.db.owner.query({
    name: 'forget_pauses',
    text: `UPDATE operator_request SET query_after = NULL,
        fence_until = CASE state WHEN 'unsent' THEN fence_until - interval '1 s' ELSE fence_until END
      WHERE merchant_id = ANY ($1) AND next_check_at IS NOT NULL`,
    values: [merchants.map(({ merchantId }) => merchantId)],
  })
}
