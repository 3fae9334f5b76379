import { setTimeout as sleep } from 'node:timers/promises'
import { providers } from '../../src/shared/providers.ts'
import { pick } from './plan.ts'

/** A merchant of the run. */
export interface Merchant {
  id: number
  authorization: string
}

/** What a client asked for. */
export interface Order {
  merchantId: number
  reference: string
  amount: number
  phone: string
  operator: string
}

/** What the service said of an order, and may not take back. */
export interface Word {
  order: Order
  /** Null: it said that nothing was recorded. */
  transactionId: number | null
  status: string
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
}

/** One client of the run. */
export interface Client {
  url: string
  random: () => number
  merchant: Merchant
  record: Record
  newReference: () => string
}

interface Operation {
  name: string
  weight: number
  run(client: Client): Promise<void>
}

/** What the clients do, by weight. A new kind of money is a row here and one in `invariants.ts`. */
const operations: readonly Operation[] = [
  { name: 'collect', weight: 70, run: (client) => collect(client, newOrder(client)) },
  { name: 'collect twice at once', weight: 6, run: collectTwice },
  { name: 'collect again', weight: 6, run: collectAgain },
  { name: 'collect under a key', weight: 8, run: collectUnderKey },
  { name: 'read a transaction', weight: 8, run: readTransaction },
  { name: 'check a payment', weight: 8, run: checkPayment },
  { name: 'read the balance', weight: 2, run: readBalance },
]

const triesMax = 3
/** What one client waits after each answer: a person, not a benchmark. */
const pauseMs = 60

/** Works until it is told to stop. @param serving resolves while there is somebody to ask */
export async function work(client: Client, serving: () => Promise<void>, stop: AbortSignal): Promise<void> {
  const rows = operations.map((value) => ({ value, weight: value.weight }))
  while (!stop.aborted) {
    await serving()
    if (stop.aborted) return
    await pick(client.random, rows).run(client)
    await sleep(pauseMs * client.random())
  }
}

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

function newOrder({ random, merchant, newReference }: Client): Order {
  const nobody = String(Math.floor(random() * 100)).padStart(2, '0')
  const customer = pick(
    random,
    customers.map((value) => ({ value, weight: value.weight })),
  )
  return {
    merchantId: merchant.id,
    reference: newReference(),
    amount: 100 + Math.floor(random() * 5_000),
    phone: `+22370${customer.value}${nobody}`,
    operator: customer.operator ?? providers[Math.floor(random() * providers.length)] ?? 'OperatorA',
  }
}

function payment({ amount, phone, operator }: Omit<Order, 'reference'>): object {
  return { amount, customer_phone: phone, payment_method: operator }
}

/** Asks for a payment, and again under the same reference while no answer says what became of it. */
async function collect(client: Client, order: Order, isFresh = true): Promise<void> {
  const body = { ...payment(order), reference: order.reference }
  for (let count = 1; count <= triesMax; count += 1) {
    const answer = await ask(client, 'POST', '/pay', body)
    const word = answer && wordOf(order, answer)
    // That nothing was recorded is a promise only where nothing was asked before.
    if (word && (word.transactionId !== null || (isFresh && count === 1))) client.record.words.push(word)
    if (answer && !word && !isTrouble(answer)) client.record.strange.push(describe('POST /pay', answer))
    if (word) return
    await sleep(50 + 200 * client.random())
  }
}

async function collectTwice(client: Client): Promise<void> {
  const order = newOrder(client)
  await Promise.all([collect(client, order, false), collect(client, order, false)])
}

/** A reference that is taken stays taken, whatever else is asked under it. */
async function collectAgain(client: Client): Promise<void> {
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
async function collectUnderKey(client: Client): Promise<void> {
  const order = newOrder(client)
  const headers = { 'idempotency-key': order.reference }
  let first: Word | null = null
  for (let count = 1; count <= triesMax; count += 1) {
    const answer = await ask(client, 'POST', '/pay', payment(order), headers)
    const reference: unknown = answer?.body['data']?.reference
    const word = answer && typeof reference === 'string' ? wordOf({ ...order, reference }, answer) : null
    if (word) client.record.words.push(word)
    if (word && first && word.transactionId !== first.transactionId)
      client.record.strange.push(`key ${order.reference}: ${JSON.stringify([first, word])}`)
    // Once more although it was answered: the same answer must come.
    first ??= word
    await sleep(50 + 200 * client.random())
  }
}

async function readTransaction(client: Client): Promise<void> {
  const word = someWord(client)
  if (!word) return
  const answer = await ask(client, 'GET', `/transactions/${word.transactionId}`)
  if (!answer || isTrouble(answer)) return
  const status: unknown = answer.body['data']?.status
  if (answer.status === 200 && typeof status === 'string') client.record.words.push({ ...word, status })
  else client.record.strange.push(describe(`GET /transactions/${word.transactionId}`, answer))
}

async function checkPayment(client: Client): Promise<void> {
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

async function readBalance(client: Client): Promise<void> {
  const answer = await ask(client, 'GET', '/balance')
  if (!answer || isTrouble(answer)) return
  const available: unknown = answer.body['data']?.available
  if (answer.status !== 200 || typeof available !== 'number' || available < 0)
    client.record.strange.push(describe('GET /balance', answer))
}

function someWord({ record, merchant, random }: Client): (Word & { transactionId: number }) | undefined {
  const recent = record.words.slice(-400)
  const word = recent[Math.floor(random() * recent.length)]
  return word?.order.merchantId === merchant.id && word.transactionId !== null
    ? { ...word, transactionId: word.transactionId }
    : undefined
}

interface Answer {
  status: number
  body: ReturnType<typeof JSON.parse>
}

const answerMs = 15_000

/** @returns null where no answer came */
async function ask(
  client: Client,
  method: string,
  path: string,
  body?: object,
  more: { [name: string]: string } = {},
): Promise<Answer | null> {
  const { record, url, merchant } = client
  record.requests += 1
  const answer = await exchange(`${url}/merchant/api${path}`, {
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

async function exchange(url: string, init: RequestInit): Promise<Answer | null> {
  try {
    const answer = await fetch(url, init)
    return { status: answer.status, body: await answer.json() }
  } catch {
    return null
  }
}

/** Nothing was said: ask again. */
function isTrouble({ status }: Answer): boolean {
  return status >= 500 || status === 429
}

/** What an answer to `POST /pay` promises; null where it promises nothing. */
function wordOf(order: Order, { status, body }: Answer): Word | null {
  const told =
    status === 409 ? { id: body.existing_transaction?.id, status: body.existing_transaction?.status } : null
  const made =
    status === 202 || status === 400 ? { id: body.data?.transaction_id, status: body.data?.status } : null
  const { id, status: said } = told ?? made ?? {}
  if (typeof id === 'number' && typeof said === 'string') return { order, transactionId: id, status: said }
  const isUnavailable = status === 400 && body.data === undefined && body.errors === undefined
  return isUnavailable ? { order, transactionId: null, status: 'none' } : null
}

function describe(what: string, { status, body }: Answer): string {
  return `${what}: ${status} ${JSON.stringify(body).slice(0, 300)}`
}
