import { expect } from 'vitest'
import type { ModelPayment } from './model.ts'
import type { ModelOut, MoneyModel } from './model-out.ts'
import type { RealOut } from './acts-out.ts'

export type ModelItem = ModelPayment | ModelOut

/** How something stands in the service's own books. */
export interface PaymentStates {
  id: string
  kind: 'pay' | 'deposit' | 'payout'
  who: number
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
      SELECT i.id::text, i.kind, array_position($1, i.merchant_id) - 1 AS who, i.reference, i.status,
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
    (row) => row.kind === kindOf(item) && row.who === item.who && row.reference === item.reference,
  )
}

function kindOf(item: ModelItem): PaymentStates['kind'] {
  return 'kind' in item ? item.kind : 'pay'
}

/** Service and model stand in the same place: every status, every event, and every franc. */
export async function compare(model: MoneyModel, real: RealOut): Promise<void> {
  const states = await readItems(real)
  const items = [...model.payments, ...model.outs]
  const racing = new Set(model.payments.filter((payment) => isRacing(model, payment)).map(nameOf))
  const tellBoth = (item: Told, kind: PaymentStates['kind'], isBack: boolean) =>
    told(
      { ...item, events: racing.has(nameOf(item)) ? withoutTwins(item.events) : item.events },
      kind,
      isBack,
    )
  expect(states.map((row) => tellBoth(row, row.kind, row.isBack)).toSorted()).toEqual(
    items.map((item) => tellBoth(item, kindOf(item), 'kind' in item && item.isBack)).toSorted(),
  )
  const { rows } = await real.environment.db.owner.query({
    name: 'balance_states',
    text: `SELECT available, reserved, receivable FROM merchant_balance WHERE merchant_id = ANY ($1)
      ORDER BY array_position($1, merchant_id)`,
    values: [real.merchants.map(({ merchantId }) => merchantId)],
  })
  expect(rows).toEqual(
    real.merchants.map((_merchant, who) => {
      const worth = model.worth(who)
      const [available, receivable] = worth > 0n ? [worth, 0n] : [0n, -worth]
      return { available, reserved: model.reserved(who), receivable }
    }),
  )
}

type Told = Pick<PaymentStates, 'who' | 'reference' | 'status' | 'events'>

/**
 * Refunds gave it back and the operator took it back: where both were learned at once, one or two events say
 * so, by what was noted first. The money is the same.
 */
function isRacing(model: MoneyModel, payment: ModelPayment): boolean {
  return (
    model.takenBack.has(payment) &&
    model.outs.some((out) => out.refundOf === payment && (model.isPaid(out) || out.isBack))
  )
}

function nameOf({ who, reference }: Pick<Told, 'who' | 'reference'>): string {
  return `${who} ${reference}`
}

function withoutTwins(events: readonly string[]): string[] {
  return events.filter((type, place) => type !== 'payment_reversed' || events[place - 1] !== type)
}

/** One line about one item. */
function told({ who, reference, status, events }: Told, kind: string, isBack: boolean): string {
  return `${kind} ${who} ${reference}: ${status}${isBack ? ', back' : ''} (${events.join(' ')})`
}

/** As if the last question had been a while ago; an unsent request may be sent from its moment on. */
export async function forgetPauses({ environment, merchants }: RealOut): Promise<void> {
  await environment.db.owner.query({
    name: 'forget_pauses',
    text: `UPDATE operator_request SET query_after = NULL,
        fence_until = CASE state WHEN 'unsent' THEN fence_until - interval '1 s' ELSE fence_until END
      WHERE merchant_id = ANY ($1) AND next_check_at IS NOT NULL`,
    values: [merchants.map(({ merchantId }) => merchantId)],
  })
}
