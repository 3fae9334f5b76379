import { setTimeout as sleep } from 'node:timers/promises'
import { providers } from '../../src/shared/providers.ts'
import { pick } from './plan.ts'

/** A merchant of the run. */
export interface Merchant {
  id: number
  authorization: string
}

/** A payment or payout that a client asked for. */
export interface PlacedOrder {
  kind: 'transaction' | 'payout'
  merchantId: number
  reference: string
  amount: number
  phone: string
  operator: string
}

/** A statement of the service about an order, which it may not take back. */
export interface Acknowledgement {
  order: PlacedOrder
  /** Null: the service said that nothing was recorded. */
  id: number | null
  status: string
}

/** A statement of the service about a batch, which it may not take back. */
export interface BatchAcknowledgement {
  id: number
  merchantId: number
  /** Recipients that the service accepted. */
  count: number
  began: boolean
  cancelled: boolean
}

/** All answers that the clients of a run received, in their order. */
export interface WorkloadRecord {
  acknowledgements: Acknowledgement[]
  requests: number
  answered: number
  /** Answers by status; `lost` counts requests without an answer. */
  answers: Map<string, number>
  /** Answers that a client should never get. */
  complaints: string[]
  batches: BatchAcknowledgement[]
}

/** One client of the run. */
export interface WorkloadClient {
  url: string
  random: () => number
  merchant: Merchant
  record: WorkloadRecord
  newReference: () => string
}

export interface WorkloadOperation {
  name: string
  weight: number
  run(client: WorkloadClient): Promise<void>
}

const triesMax = 3
/**
 * Test numbers of customers that pay at once, soon, late or never, that refuse, or that cause a fault of the
 * operator.
 */
const customers: readonly { value: string; weight: number; operator?: string }[] = [
  // Reversed after it was paid: certain to be noticed only at an operator that the service keeps asking.
  { value: '4002', weight: 1, operator: 'OperatorC' },
  ...['2000', '2101', '2202', '2300', '2401', '2501', '2601', '2700'].map((value) => ({ value, weight: 1 })),
  ...['3000', '3103', '3200', '3300', '3400', '3500', '4105'].map((value) => ({ value, weight: 1 })),
  { value: '0000', weight: 30 },
  { value: '0001', weight: 20 },
  { value: '0003', weight: 8 },
  { value: '0010', weight: 4 },
  { value: '0100', weight: 6 },
  { value: '0102', weight: 4 },
  { value: '0200', weight: 4 },
  { value: '0300', weight: 4 },
  { value: '0500', weight: 2 },
  { value: '1100', weight: 4 },
]

export function newOrder({ random, merchant, newReference }: WorkloadClient): PlacedOrder {
  const suffix = String(Math.floor(random() * 100)).padStart(2, '0')
  const customer = pick(
    random,
    customers.map((value) => ({ value, weight: value.weight })),
  )
  return {
    kind: 'transaction',
    merchantId: merchant.id,
    reference: newReference(),
    amount: 100 + Math.floor(random() * 5_000),
    phone: `+22370${customer.value}${suffix}`,
    operator: customer.operator ?? providers[Math.floor(random() * providers.length)] ?? 'OperatorA',
  }
}

function payment({ amount, phone, operator }: Omit<PlacedOrder, 'reference'>): object {
  return { amount, customer_phone: phone, payment_method: operator }
}

/** Asks for a payment, and again under the same reference while no answer tells the result. */
export async function collect(client: WorkloadClient, order: PlacedOrder, isFresh = true): Promise<void> {
  const body = { ...payment(order), reference: order.reference }
  for (let count = 1; count <= triesMax; count += 1) {
    const answer = await ask(client, 'POST', '/pay', body)
    const acknowledgement = answer && acknowledgementOf(order, answer)
    // "Nothing was recorded" is a promise only for the first request.
    if (acknowledgement && (acknowledgement.id !== null || (isFresh && count === 1)))
      client.record.acknowledgements.push(acknowledgement)
    if (answer && !acknowledgement && !isTrouble(answer))
      client.record.complaints.push(describe('POST /pay', answer))
    if (acknowledgement) return
    await sleep(50 + 200 * client.random())
  }
}

export async function collectTwice(client: WorkloadClient): Promise<void> {
  const order = newOrder(client)
  await Promise.all([collect(client, order, false), collect(client, order, false)])
}

/** Asks for another payment under a taken reference: the first payment must keep it. */
export async function collectAgain(client: WorkloadClient): Promise<void> {
  const acknowledgement = someAcknowledgement(client)
  if (!acknowledgement) return
  const { order } = acknowledgement
  const other = { ...payment({ ...order, amount: order.amount + 1 }), reference: order.reference }
  const answer = await ask(client, 'POST', '/pay', other)
  if (!answer || isTrouble(answer)) return
  const again = answer.status === 409 ? acknowledgementOf(acknowledgement.order, answer) : null
  if (again) client.record.acknowledgements.push(again)
  else
    client.record.complaints.push(describe(`POST /pay again for ${acknowledgement.order.reference}`, answer))
}

/** Collects without a reference: the idempotency key alone makes all tries one payment. */
export async function collectUnderKey(client: WorkloadClient): Promise<void> {
  const order = newOrder(client)
  const headers = { 'idempotency-key': order.reference }
  let first: Acknowledgement | null = null
  for (let count = 1; count <= triesMax; count += 1) {
    const answer = await ask(client, 'POST', '/pay', payment(order), headers)
    const reference: unknown = answer?.body['data']?.reference
    const acknowledgement =
      answer && typeof reference === 'string' ? acknowledgementOf({ ...order, reference }, answer) : null
    if (acknowledgement) client.record.acknowledgements.push(acknowledgement)
    if (acknowledgement && first && acknowledgement.id !== first.id)
      client.record.complaints.push(`key ${order.reference}: ${JSON.stringify([first, acknowledgement])}`)
    // The request is repeated although it was answered: the same answer must come.
    first ??= acknowledgement
    await sleep(50 + 200 * client.random())
  }
}

export async function readTransaction(client: WorkloadClient): Promise<void> {
  const acknowledgement = someAcknowledgement(client)
  if (!acknowledgement) return
  const answer = await ask(client, 'GET', `/transactions/${acknowledgement.id}`)
  if (!answer || isTrouble(answer)) return
  const status: unknown = answer.body['data']?.status
  if (answer.status === 200 && typeof status === 'string')
    client.record.acknowledgements.push({ ...acknowledgement, status })
  else client.record.complaints.push(describe(`GET /transactions/${acknowledgement.id}`, answer))
}

export async function checkPayment(client: WorkloadClient): Promise<void> {
  const acknowledgement = someAcknowledgement(client)
  if (!acknowledgement) return
  const { reference, merchantId } = acknowledgement.order
  const answer = await ask(client, 'GET', `/payment/status/${reference}?merchant_id=${merchantId}`)
  if (!answer || isTrouble(answer)) return
  const state: unknown = answer.body['state']
  if (answer.status !== 200 || typeof state !== 'string')
    client.record.complaints.push(describe(`GET /payment/status/${reference}`, answer))
  // A payment that reads failed here may have expired, and may still be paid.
  else if (state === 'success') client.record.acknowledgements.push({ ...acknowledgement, status: state })
}

export async function readBalance(client: WorkloadClient): Promise<void> {
  const answer = await ask(client, 'GET', '/balance')
  if (!answer || isTrouble(answer)) return
  const available: unknown = answer.body['data']?.available
  if (answer.status !== 200 || typeof available !== 'number' || available < 0)
    client.record.complaints.push(describe('GET /balance', answer))
}

export function someAcknowledgement(
  { record, merchant, random }: WorkloadClient,
  kind: PlacedOrder['kind'] = 'transaction',
): (Acknowledgement & { id: number }) | undefined {
  const recent = record.acknowledgements.filter(({ order }) => order.kind === kind).slice(-400)
  const acknowledgement = recent[Math.floor(random() * recent.length)]
  return acknowledgement?.order.merchantId === merchant.id && acknowledgement.id !== null
    ? { ...acknowledgement, id: acknowledgement.id }
    : undefined
}

export interface WorkloadAnswer {
  status: number
  body: ReturnType<typeof JSON.parse>
}

const answerMs = 15_000

/** @returns null where no answer came */
export async function ask(
  client: WorkloadClient,
  method: string,
  path: string,
  body?: object,
  more: { [name: string]: string } = {},
): Promise<WorkloadAnswer | null> {
  const { record, url, merchant } = client
  record.requests += 1
  const answer = await exchange(path === '/graphql' ? `${url}/graphql` : `${url}/merchant/api${path}`, {
    method,
    headers: { authorization: merchant.authorization, 'content-type': 'application/json', ...more },
    signal: AbortSignal.timeout(answerMs),
    ...(body && { body: JSON.stringify(body) }),
  })
  if (answer) record.answered += 1
  const name = answer ? String(answer.status) : 'lost'
  record.answers.set(name, (record.answers.get(name) ?? 0) + 1)
  return answer
}

async function exchange(url: string, init: RequestInit): Promise<WorkloadAnswer | null> {
  try {
    const answer = await fetch(url, init)
    return { status: answer.status, body: await answer.json() }
  } catch {
    return null
  }
}

/** Whether the answer says nothing about the order, so that the client asks again. */
export function isTrouble({ status }: WorkloadAnswer): boolean {
  return status >= 500 || status === 429
}

/** Reads the statement of an answer to `POST /pay` or `/deposit`; null where it states nothing. */
export function acknowledgementOf(
  order: PlacedOrder,
  { status, body }: WorkloadAnswer,
): Acknowledgement | null {
  const existing =
    status === 409 ? { id: body.existing_transaction?.id, status: body.existing_transaction?.status } : null
  const made =
    status === 200 || status === 202 || status === 400
      ? { id: body.data?.transaction_id, status: body.data?.status }
      : null
  const { id, status: said } = existing ?? made ?? {}
  if (typeof id === 'number' && typeof said === 'string') return { order, id, status: said }
  const isUnavailable = status === 400 && body.data === undefined && body.errors === undefined
  return isUnavailable ? { order, id: null, status: 'none' } : null
}

export function describe(what: string, { status, body }: WorkloadAnswer): string {
  return `${what}: ${status} ${JSON.stringify(body).slice(0, 300)}`
}
