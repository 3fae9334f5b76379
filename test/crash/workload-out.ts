import { setTimeout as sleep } from 'node:timers/promises'
import { pick } from './plan.ts'
import {
  type WorkloadAnswer,
  ask,
  type WorkloadClient,
  describe,
  isTrouble,
  newOrder,
  type WorkloadOperation,
  type PlacedOrder,
  someAcknowledgement,
  type Acknowledgement,
  acknowledgementOf,
} from './workload.ts'

/** The operations of clients with money out, by weight. */
export const moneyOut: readonly WorkloadOperation[] = [
  { name: 'deposit', weight: 25, run: (client) => deposit(client, newDisbursement(client)) },
  { name: 'deposit twice at once', weight: 5, run: depositTwice },
  { name: 'payout', weight: 35, run: (client) => payout(client, newDisbursement(client, 'payout')) },
  { name: 'payout for later', weight: 5, run: payoutLater },
  { name: 'cancel a payout', weight: 10, run: cancel },
  { name: 'refund', weight: 8, run: refund },
]

const triesMax = 3

/**
 * Test numbers of payees that are paid at once, soon, late or never, that cannot be paid, or have a payment
 * that
 * breaks. An operator that is never reached (27) is left out: a request that may have left is sent again for
 * ever, and the run would not end. One that breaks twice (2202) would delay the end of a run by another
 * fence.
 */
export const payees: readonly { value: string; weight: number }[] = [
  ...['2000', '2101', '2201', '2300', '2401', '2501', '2601'].map((value) => ({ value, weight: 1 })),
  ...['3000', '3100', '3200', '3300'].map((value) => ({ value, weight: 1 })),
  { value: '0000', weight: 30 },
  { value: '0001', weight: 15 },
  { value: '0003', weight: 6 },
]

function newDisbursement(client: WorkloadClient, kind: PlacedOrder['kind'] = 'transaction'): PlacedOrder {
  const suffix = String(Math.floor(client.random() * 100)).padStart(2, '0')
  const amount = 1_000 + Math.floor(client.random() * 2_000)
  const phone = `+22370${pick(
    client.random,
    payees.map((value) => ({ ...value, value: value.value })),
  )}${suffix}`
  return { ...newOrder(client), kind, amount, phone }
}

async function deposit(client: WorkloadClient, order: PlacedOrder, isFresh = true): Promise<void> {
  const { amount, phone, operator, reference } = order
  const body = { amount, customer_phone: phone, payment_method: operator, reference }
  await askUntilAnswered(client, order, '/deposit', body, { isFresh, read: acknowledgementOf })
}

async function depositTwice(client: WorkloadClient): Promise<void> {
  const order = newDisbursement(client)
  await Promise.all([deposit(client, order, false), deposit(client, order, false)])
}

async function payout(client: WorkloadClient, order: PlacedOrder, more: object = {}): Promise<void> {
  const { amount, phone, operator, reference } = order
  const body = { amount, destination_phone: phone, payment_method: operator, reference, ...more }
  await askUntilAnswered(client, order, '/payouts', body, { isFresh: true, read: payoutAcknowledgementOf })
}

function payoutLater(client: WorkloadClient): Promise<void> {
  // Far enough ahead that a repetition on a slow machine still comes before it.
  const inMs = 60_000 + client.random() * 540_000
  const order = newDisbursement(client, 'payout')
  return payout(client, order, { scheduled_at: new Date(Date.now() + inMs).toISOString() })
}

/** Asks, and again under the same reference while no answer tells the result. */
async function askUntilAnswered(
  client: WorkloadClient,
  order: PlacedOrder,
  path: string,
  body: object,
  {
    isFresh,
    read,
  }: { isFresh: boolean; read: (order: PlacedOrder, answer: WorkloadAnswer) => Acknowledgement | null },
): Promise<void> {
  for (let count = 1; count <= triesMax; count += 1) {
    const answer = await ask(client, 'POST', path, body)
    const acknowledgement = answer && read(order, answer)
    // "Nothing was recorded" is a promise only for the first request.
    if (acknowledgement && (acknowledgement.id !== null || (isFresh && count === 1)))
      client.record.acknowledgements.push(acknowledgement)
    if (answer && !acknowledgement && !isTrouble(answer))
      client.record.complaints.push(describe(`POST ${path}`, answer))
    if (acknowledgement) return
    await sleep(50 + 200 * client.random())
  }
}

function payoutAcknowledgementOf(
  order: PlacedOrder,
  { status, body }: WorkloadAnswer,
): Acknowledgement | null {
  const existing = status === 409 ? body.existing_payout : status === 201 ? body.data : null
  if (typeof existing?.id === 'number' && typeof existing.status === 'string')
    return { order, id: existing.id, status: existing.status }
  const isShort = status === 400 && body.data === undefined && body.errors === undefined
  return isShort ? { order, id: null, status: 'none' } : null
}

async function cancel(client: WorkloadClient): Promise<void> {
  const acknowledgement = someAcknowledgement(client, 'payout')
  if (!acknowledgement) return
  const mutation = `mutation ($id: ID!) { cancelPayout(id: $id) {
    __typename ... on Payout { status } ... on Refusal { code } } }`
  const said = await graphql(client, mutation, { id: String(acknowledgement.id) })
  const result = said?.['cancelPayout']
  if (result?.status) client.record.acknowledgements.push({ ...acknowledgement, status: 'cancelled' })
  else if (result && result.code !== 'STATE_CONFLICT')
    client.record.complaints.push(`cancelPayout ${acknowledgement.id}: ${JSON.stringify(result)}`)
}

/** Refunds a payment wholly or in part. */
async function refund(client: WorkloadClient): Promise<void> {
  const acknowledgement = someAcknowledgement(client)
  if (!acknowledgement) return
  const mutation = `mutation ($id: ID!, $amount: Amount) { refundTransaction(id: $id, amount: $amount) {
    __typename ... on Refusal { code } } }`
  const amount = client.random() < 0.5 ? null : 1_000
  await graphql(client, mutation, { id: String(acknowledgement.id), amount })
}

/** @returns the data; null where no data came */
async function graphql(
  client: WorkloadClient,
  query: string,
  variables: object,
): Promise<Readonly<Record<string, { status?: string; code?: string }>> | null> {
  const answer = await ask(client, 'POST', '/graphql', { query, variables })
  return answer && !isTrouble(answer) ? (answer.body.data ?? null) : null
}
