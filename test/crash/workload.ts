import { setTimeout as sleep } from 'node:timers/promises'
import { providers } from '../../src/shared/providers.ts'
import { pick } from './plan.ts'

/** A merchant of the run. */
export interface Merchant {
  id: number
  authorization: string
}

/** What a client asked for. */
export interface PlacedOrder {
  kind: 'transaction' | 'payout'
  merchantId: number
  reference: string
  amount: number
  phone: string
  operator: string
}

/** What the service said of an order, and may not take back. */
export interface Word {
  order: PlacedOrder
  /** Null: it said that nothing was recorded. */
  id: number | null
  status: string
}

/** What the service said of a batch, and may not take back. */
export interface BatchWord {
  id: number
  merchantId: number
  /** Recipients that it took. */
  count: number
  began: boolean
  cancelled: boolean
}

/** What all clients of a run heard, in the order of hearing. */
export interface Record {
  words: Word[]
  requests: number
  answered: number
  /** Answers by status; `lost` where none came. */
  answers: Map<string, number>
  /** Answers that no client should ever get. */
  strange: string[]
  batches: BatchWord[]
}

/** One client of the run. */
export interface WorkloadClient {
  url: string
  random: () => number
  merchant: Merchant
  record: Record
  newReference: () => string
}

export interface WorkloadOperation {
  name: string
  weight: number
  run(client: WorkloadClient): Promise<void>
}

const triesMax = 3
/** Test numbers: who pays at once, soon, late, never; who refuses; who brings a fault of the operator's. */
const customers: readonly { value: string; weight: number; operator?: string }[] = [
  // Taken back after it was paid: certain to be noticed only where we go on asking.
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
  const nobody = String(Math.floor(random() * 100)).padStart(2, '0')
  const customer = pick(
    random,
    customers.map((value) => ({ value, weight: value.weight })),
  )
  return {
    kind: 'transaction',
    merchantId: merchant.id,
    reference: newReference(),
    amount: 100 + Math.floor(random() * 5_000),
    phone: `+22370${customer.value}${nobody}`,
    operator: customer.operator ?? providers[Math.floor(random() * providers.length)] ?? 'OperatorA',
  }
}

function payment({ amount, phone, operator }: Omit<PlacedOrder, 'reference'>): object {
  return { amount, customer_phone: phone, payment_method: operator }
}

/** Asks for a payment, and again under the same reference while no answer says what became of it. */
export async function collect(client: WorkloadClient, order: PlacedOrder, isFresh = true): Promise<void> {
  const body = { ...payment(order), reference: order.reference }
  for (let count = 1; count <= triesMax; count += 1) {
    const answer = await ask(client, 'POST', '/pay', body)
    const word = answer && wordOf(order, answer)
    // That nothing was recorded is a promise only where nothing was asked before.
    if (word && (word.id !== null || (isFresh && count === 1))) client.record.words.push(word)
    if (answer && !word && !isTrouble(answer)) client.record.strange.push(describe('POST /pay', answer))
    if (word) return
    await sleep(50 + 200 * client.random())
  }
}

export async function collectTwice(client: WorkloadClient): Promise<void> {
  const order = newOrder(client)
  await Promise.all([collect(client, order, false), collect(client, order, false)])
}

/** A reference that is taken stays taken, whatever else is asked under it. */
export async function collectAgain(client: WorkloadClient): Promise<void> {
  const word = someWord(client)
  if (!word) return
  const { order } = word
  const other = { ...payment({ ...order, amount: order.amount + 1 }), reference: order.reference }
  const answer = await ask(client, 'POST', '/pay', other)
  if (!answer || isTrouble(answer)) return
  const again = answer.status === 409 ? wordOf(word.order, answer) : null
  if (again) client.record.words.push(again)
  else client.record.strange.push(describe(`POST /pay again for ${word.order.reference}`, answer))
}

/** Without a reference of its own: the key alone makes all tries one payment. */
export async function collectUnderKey(client: WorkloadClient): Promise<void> {
  const order = newOrder(client)
  const headers = { 'idempotency-key': order.reference }
  let first: Word | null = null
  for (let count = 1; count <= triesMax; count += 1) {
    const answer = await ask(client, 'POST', '/pay', payment(order), headers)
    const reference: unknown = answer?.body['data']?.reference
    const word = answer && typeof reference === 'string' ? wordOf({ ...order, reference }, answer) : null
    if (word) client.record.words.push(word)
    if (word && first && word.id !== first.id)
      client.record.strange.push(`key ${order.reference}: ${JSON.stringify([first, word])}`)
    // Once more although it was answered: the same answer must come.
    first ??= word
    await sleep(50 + 200 * client.random())
  }
}

export async function readTransaction(client: WorkloadClient): Promise<void> {
  const word = someWord(client)
  if (!word) return
  const answer = await ask(client, 'GET', `/transactions/${word.id}`)
  if (!answer || isTrouble(answer)) return
  const status: unknown = answer.body['data']?.status
  if (answer.status === 200 && typeof status === 'string') client.record.words.push({ ...word, status })
  else client.record.strange.push(describe(`GET /transactions/${word.id}`, answer))
}

export async function checkPayment(client: WorkloadClient): Promise<void> {
  const word = someWord(client)
  if (!word) return
  const { reference, merchantId } = word.order
  const answer = await ask(client, 'GET', `/payment/status/${reference}?merchant_id=${merchantId}`)
  if (!answer || isTrouble(answer)) return
  const state: unknown = answer.body['state']
  if (answer.status !== 200 || typeof state !== 'string')
    client.record.strange.push(describe(`GET /payment/status/${reference}`, answer))
  // What has failed by these words may have expired, and may still be paid.
  else if (state === 'success') client.record.words.push({ ...word, status: state })
}

export async function readBalance(client: WorkloadClient): Promise<void> {
  const answer = await ask(client, 'GET', '/balance')
  if (!answer || isTrouble(answer)) return
  const available: unknown = answer.body['data']?.available
  if (answer.status !== 200 || typeof available !== 'number' || available < 0)
    client.record.strange.push(describe('GET /balance', answer))
}

export function someWord(
  { record, merchant, random }: WorkloadClient,
  kind: PlacedOrder['kind'] = 'transaction',
): (Word & { id: number }) | undefined {
  const recent = record.words.filter(({ order }) => order.kind === kind).slice(-400)
  const word = recent[Math.floor(random() * recent.length)]
  return word?.order.merchantId === merchant.id && word.id !== null ? { ...word, id: word.id } : undefined
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

/** Nothing was said: ask again. */
export function isTrouble({ status }: WorkloadAnswer): boolean {
  return status >= 500 || status === 429
}

/** What an answer to `POST /pay` or `/deposit` promises; null where it promises nothing. */
export function wordOf(order: PlacedOrder, { status, body }: WorkloadAnswer): Word | null {
  const told =
    status === 409 ? { id: body.existing_transaction?.id, status: body.existing_transaction?.status } : null
  const made =
    status === 200 || status === 202 || status === 400
      ? { id: body.data?.transaction_id, status: body.data?.status }
      : null
  const { id, status: said } = told ?? made ?? {}
  if (typeof id === 'number' && typeof said === 'string') return { order, id, status: said }
  const isUnavailable = status === 400 && body.data === undefined && body.errors === undefined
  return isUnavailable ? { order, id: null, status: 'none' } : null
}

export function describe(what: string, { status, body }: WorkloadAnswer): string {
  return `${what}: ${status} ${JSON.stringify(body).slice(0, 300)}`
}
