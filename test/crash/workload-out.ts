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
  someWord,
  type Word,
  wordOf,
} from './workload.ts'

/** What the clients do with money on its way out, by weight. */
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
 * Test numbers: who is paid at once, soon, late or never; who cannot be paid; what breaks on the way. An
 * operator that is never reached (27) is none: what may have left once is sent to it for ever, and no storm
 * ends. One that breaks twice (2202) would keep the end of a storm waiting for another fence.
 */
export const payees: readonly { value: string; weight: number }[] = [
  ...['2000', '2101', '2201', '2300', '2401', '2501', '2601'].map((value) => ({ value, weight: 1 })),
  ...['3000', '3100', '3200', '3300'].map((value) => ({ value, weight: 1 })),
  { value: '0000', weight: 30 },
  { value: '0001', weight: 15 },
  { value: '0003', weight: 6 },
]

function newDisbursement(client: WorkloadClient, kind: PlacedOrder['kind'] = 'transaction'): PlacedOrder {
  const nobody = String(Math.floor(client.random() * 100)).padStart(2, '0')
  const amount = 1_000 + Math.floor(client.random() * 2_000)
  const phone = `+22370${pick(
    client.random,
    payees.map((value) => ({ ...value, value: value.value })),
  )}${nobody}`
  return { ...newOrder(client), kind, amount, phone }
}

async function deposit(client: WorkloadClient, order: PlacedOrder, isFresh = true): Promise<void> {
  const { amount, phone, operator, reference } = order
  const body = { amount, customer_phone: phone, payment_method: operator, reference }
  await insist(client, order, '/deposit', body, { isFresh, read: wordOf })
}

async function depositTwice(client: WorkloadClient): Promise<void> {
  const order = newDisbursement(client)
  await Promise.all([deposit(client, order, false), deposit(client, order, false)])
}

async function payout(client: WorkloadClient, order: PlacedOrder, more: object = {}): Promise<void> {
  const { amount, phone, operator, reference } = order
  const body = { amount, destination_phone: phone, payment_method: operator, reference, ...more }
  await insist(client, order, '/payouts', body, { isFresh: true, read: payoutWordOf })
}

function payoutLater(client: WorkloadClient): Promise<void> {
  // Far enough that a repetition on a slow machine still lies before it.
  const inMs = 60_000 + client.random() * 540_000
  const order = newDisbursement(client, 'payout')
  return payout(client, order, { scheduled_at: new Date(Date.now() + inMs).toISOString() })
}

/** Asks, and again under the same reference while no answer says what became of it. */
async function insist(
  client: WorkloadClient,
  order: PlacedOrder,
  path: string,
  body: object,
  { isFresh, read }: { isFresh: boolean; read: (order: PlacedOrder, answer: WorkloadAnswer) => Word | null },
): Promise<void> {
  for (let count = 1; count <= triesMax; count += 1) {
    const answer = await ask(client, 'POST', path, body)
    const word = answer && read(order, answer)
    // That nothing was recorded is a promise only where nothing was asked before.
    if (word && (word.id !== null || (isFresh && count === 1))) client.record.words.push(word)
    if (answer && !word && !isTrouble(answer)) client.record.strange.push(describe(`POST ${path}`, answer))
    if (word) return
    await sleep(50 + 200 * client.random())
  }
}

function payoutWordOf(order: PlacedOrder, { status, body }: WorkloadAnswer): Word | null {
  const told = status === 409 ? body.existing_payout : status === 201 ? body.data : null
  if (typeof told?.id === 'number' && typeof told.status === 'string')
    return { order, id: told.id, status: told.status }
  const isShort = status === 400 && body.data === undefined && body.errors === undefined
  return isShort ? { order, id: null, status: 'none' } : null
}

async function cancel(client: WorkloadClient): Promise<void> {
  const word = someWord(client, 'payout')
  if (!word) return
  const mutation = `mutation ($id: ID!) { cancelPayout(id: $id) {
    __typename ... on Payout { status } ... on Refusal { code } } }`
  const said = await graphql(client, mutation, { id: String(word.id) })
  const result = said?.['cancelPayout']
  if (result?.status) client.record.words.push({ ...word, status: 'cancelled' })
  else if (result && result.code !== 'STATE_CONFLICT')
    client.record.strange.push(`cancelPayout ${word.id}: ${JSON.stringify(result)}`)
}

/** Gives a payment back, or a part of it; what the merchant is told of it is read like any deposit. */
async function refund(client: WorkloadClient): Promise<void> {
  const word = someWord(client)
  if (!word) return
  const mutation = `mutation ($id: ID!, $amount: Amount) { refundTransaction(id: $id, amount: $amount) {
    __typename ... on Refusal { code } } }`
  const amount = client.random() < 0.5 ? null : 1_000
  await graphql(client, mutation, { id: String(word.id), amount })
}

/** @returns the data; null where none came */
async function graphql(
  client: WorkloadClient,
  query: string,
  variables: object,
): Promise<Readonly<Record<string, { status?: string; code?: string }>> | null> {
  const answer = await ask(client, 'POST', '/graphql', { query, variables })
  return answer && !isTrouble(answer) ? (answer.body.data ?? null) : null
}
