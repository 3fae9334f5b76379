import { rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { eventuallyGives } from '../kit/eventually.ts'
import { scopes } from '../../src/identity/callers/scopes.ts'
import type { Simulator } from '../../src/simulator/simulator.ts'
import pg from 'pg'
import { startEmbedded } from '../../src/database/embedded.ts'
import { admin, call, type Home, processesOf, type Running, signIn, startProgram } from '../kit/program.ts'
import {
  askAll,
  type OrderExecution,
  makeBatch,
  makeOrders,
  operators,
  type DrillOrder,
  readBook,
} from './orders.ts'

export const controlToken = 'drill-control'

/** A check of the drill, and its result. */
export interface Finding {
  what: string
  holds: boolean
  found: string
}

/** The merchant and the person who owns it. */
interface Shop {
  id: number
  key: string
  secret: string
  email: string
  password: string
}

export interface Drill {
  home: Home
  simulator: Simulator
  say: (line: string) => void
  findings: Finding[]
  running: Running | null
}

type Token = { Authorization: string }

const documents = {
  accept: `mutation ($input: AcceptInvitationInput!) {
    acceptInvitation(input: $input) { ... on Refusal { message } } }`,
  signIn: `mutation ($input: SignInInput!) {
    signIn(input: $input) { ... on SignedIn { token } ... on Refusal { message } } }`,
  renew: `mutation ($id: ID!) {
    regenerateApiKey(id: $id) { ... on IssuedApiKey { key secret } ... on Refusal { message } } }`,
}

/** Until payouts of the backup are due: the backup is taken by then. */
const waitsMs = 15_000

const hundred = { pay: 10, deposit: 8, payout: 7 } as const

/** Back up, pay a hundred in flight, lose everything, restore: what the operators did they did once. */
export async function runDrill(drill: Drill): Promise<void> {
  const { home, say } = drill
  drill.running = await startProgram(home)
  const shop = await openShop(home)
  const token = await signIn(home, shop.key, shop.secret, scopes)
  const before = await payBeforehand(drill, token)
  const backup = join(dirname(home.dataDir), 'backup')
  say('Backing up ...')
  await command(home, 'backup', '--to', backup)

  say('Paying a hundred ...')
  const after = await payAfterwards(drill, token, before)
  say('Losing everything ...')
  await drill.running.end('SIGKILL')
  drill.running.destroy()
  await eventuallyGives(
    () => processesOf(home),
    (left) => left.length === 0,
  )
  await rm(home.dataDir, { recursive: true })
  const executed = await untilQuiet(drill)

  say('Restoring ...')
  await command(home, 'restore', '--from', backup)
  drill.running = await startProgram(home)
  await checkHalt(drill)
  const fresh = await checkSecrets(drill, shop, after)
  await checkReaders(drill, fresh, after)
  say('The merchant asks again ...')
  await askAll(home, fresh, after.orders)
  await accept(drill, executed)
  await askAll(home, fresh, after.orders)
  await call(home, 'POST', `/bulk/batches/${before.batchId}/process`, fresh)
  await checkOutcome(drill, fresh, [...before.orders, ...after.orders, ...before.recipients])
}

async function command(home: Home, ...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await admin(home, ...args)
  if (code !== 0) throw new Error(`${args.join(' ')}: ${stderr}`)
  return stdout
}

const json = async (home: Home, ...args: string[]) => JSON.parse(await command(home, ...args, '--json'))

function note({ findings }: Drill, what: string, holds: boolean, found: unknown): void {
  findings.push({ what, holds, found: typeof found === 'string' ? found : JSON.stringify(found) })
}

async function openShop(home: Home): Promise<Shop> {
  const made = await json(home, 'merchant', 'create', '--name', 'Drill')
  const [id, email, password] = [made.merchant_id, 'awa@drill.test', 'a long password of Awa']
  await command(home, 'merchant', 'fund', '--id', String(id), '--amount', '10000000')
  const flags = ['--merchant', String(id), '--email', email, '--name', 'Awa', '--role', 'owner']
  const { invitation } = await json(home, 'member', 'invite', ...flags)
  await graphql(home, {}, documents.accept, {
    input: { token: invitation, password },
  })
  return { id, key: made.api_key, secret: made.api_secret, email, password }
}

async function graphql(home: Home, token: Partial<Token>, query: string, variables: object = {}) {
  const answer = await fetch(`${home.url}/graphql`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...token },
    body: JSON.stringify({ query, variables }),
  })
  const body = JSON.parse(await answer.text())
  if (body.errors) throw new Error(JSON.stringify(body.errors))
  return body.data
}

/**
 * Makes the payments of the backup: settled ones of every kind, and payouts and a batch that have not begun.
 */
async function payBeforehand({ home, simulator }: Drill, token: Token) {
  const settled = [...makeOrders('pay', 'old', 1), ...makeOrders('deposit', 'old', 1)]
  await askAll(home, token, settled)
  await eventuallyGives(
    () => readBook(simulator.url, controlToken),
    ({ executions }) => executions.length === settled.length,
  )
  const scheduledAt = new Date(Date.now() + waitsMs).toISOString()
  const waiting = makeOrders('payout', 'waiting', 1).map((order) => ({ ...order, scheduledAt }))
  await askAll(home, token, waiting)
  const recipients = makeOrders('recipient', 'batch', 2)
  return { orders: [...settled, ...waiting], recipients, batchId: await makeBatch(home, token, recipients) }
}

type Before = Awaited<ReturnType<typeof payBeforehand>>

interface Afterwards {
  orders: DrillOrder[]
  newSecret: string
  newKey: string
  cursor: string
  receiptPath: string
}

/**
 * Makes the payments that are lost: a hundred, with a batch and a regenerated key; a cursor and a receipt
 * that clients keep.
 */
async function payAfterwards(drill: Drill, token: Token, before: Before): Promise<Afterwards> {
  const { home } = drill
  const kinds = Object.entries(hundred) as [keyof typeof hundred, number][]
  const orders = kinds.flatMap(([kind, each]) => makeOrders(kind, 'new', each))
  await askAll(home, token, orders.slice(0, 4))
  const list = await graphql(
    home,
    token,
    '{ transactions(first: 1) { nodes { receiptUrl } } apiKeys(first: 1) { nodes { id } } }',
  )
  const cursor = await lastCursor(home, token)
  const { regenerateApiKey: renewed } = await graphql(home, token, documents.renew, {
    id: list.apiKeys.nodes[0].id,
  })
  const fresh = await signIn(home, renewed.key, renewed.secret, scopes)
  await Promise.all([
    askAll(home, fresh, orders.slice(4)),
    call(home, 'POST', `/bulk/batches/${before.batchId}/process`, fresh),
  ])
  // Payouts that had not begun at the backup are sent before the loss. Some of the other payments are on
  // their way.
  const sent = [...before.orders.filter(({ kind }) => kind === 'payout'), ...before.recipients]
  await eventuallyGives(
    () => readBook(drill.simulator.url, controlToken),
    ({ executions }) => sent.every(({ amount }) => executions.some((row) => Number(row.amount) === amount)),
  )
  const receiptPath = new URL(list.transactions.nodes[0].receiptUrl).pathname
  return { orders, newKey: renewed.key, newSecret: renewed.secret, cursor, receiptPath }
}

/** The cursor of a reader who has everything until now. */
async function lastCursor(home: Home, token: Token): Promise<string> {
  const answer = await fetch(`${home.url}/graphql`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', Accept: 'text/event-stream', ...token },
    body: JSON.stringify({ query: 'subscription { transactionChanged(after: "0") { cursor } }' }),
    signal: AbortSignal.timeout(1_500),
  })
  let cursor = '0'
  try {
    for await (const chunk of answer.body ?? [])
      for (const [, found] of new TextDecoder().decode(chunk).matchAll(/"cursor":"(\d+)"/g))
        cursor = found ?? cursor
  } catch {
    // The time is over.
  }
  return cursor
}

/** Waits until the operators have ended what they were asked for. */
async function untilQuiet({ simulator }: Drill): Promise<OrderExecution[]> {
  const book = await eventuallyGives(
    () => readBook(simulator.url, controlToken),
    ({ pending }) => pending === 0,
  )
  return book.executions
}

async function checkHalt(drill: Drill): Promise<void> {
  const { home, running } = drill
  note(
    drill,
    'the first screen says that no money leaves',
    /no money leaves/.test(running?.screen ?? ''),
    'screen',
  )
  const { body } = await call(home, 'GET', '/status')
  const { payments_out: out, payments_out_reason: reason } = body['data'].components
  note(drill, 'GET /status says why', out === 'down' && reason === 'restored', { out, reason })
  const { code, stderr } = await admin(home, 'payments-out', 'resume', '--reason', 'in a hurry')
  note(
    drill,
    'payments-out resume is refused',
    code === 1 && stderr.includes('restore accept'),
    stderr.trim(),
  )
}

/** @returns a token of a key that a person regenerated after the restore */
async function checkSecrets(drill: Drill, shop: Shop, after: Afterwards): Promise<Token> {
  const { home } = drill
  const status = async (key: string, secret: string) =>
    (await call(home, 'POST', '/auth', { 'X-API-Key': key, 'X-API-Secret': secret })).status
  const old = await status(shop.key, shop.secret)
  note(drill, 'the secret that was replaced stays dead', old === 401, old)
  const lost = await status(after.newKey, after.newSecret)
  note(drill, 'the secret that was lost is unknown', lost === 401, lost)
  const { signIn: session } = await graphql(home, {}, documents.signIn, {
    input: { email: shop.email, password: shop.password },
  })
  const person = { Authorization: `Bearer ${session.token}` }
  const { apiKeys } = await graphql(home, person, '{ apiKeys(first: 1) { nodes { id suspendedAt } } }')
  note(drill, 'the key shows that it is suspended', apiKeys.nodes[0].suspendedAt !== null, apiKeys.nodes[0])
  const { regenerateApiKey: renewed } = await graphql(home, person, documents.renew, {
    id: apiKeys.nodes[0].id,
  })
  return signIn(home, renewed.key, renewed.secret, scopes)
}

async function checkReaders(drill: Drill, token: Token, { cursor, receiptPath }: Afterwards): Promise<void> {
  const { home } = drill
  const answer = await fetch(`${home.url}/graphql`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', Accept: 'text/event-stream', ...token },
    body: JSON.stringify({ query: `subscription { transactionChanged(after: "${cursor}") { cursor } }` }),
    signal: AbortSignal.timeout(3_000),
  })
  const text = await answer.text().catch(() => 'it was served')
  note(
    drill,
    'an old cursor is told where to go on',
    /continue from the cursor \d+/i.test(text),
    text.slice(0, 160),
  )
  const { status } = await fetch(`${home.url}${receiptPath}`)
  note(drill, 'the address of a lost receipt shows no other one', status === 404, status)
}

async function accept(drill: Drill, executed: readonly OrderExecution[]): Promise<void> {
  const { home } = drill
  const { suspended_keys: _, ...accepted } = await json(home, 'restore', 'accept')
  const named = new Set<string>(accepted.orphans.map((orphan: { identity: string }) => orphan.identity))
  const known = await identitiesOnRecord(home)
  const missing = executed.filter(
    ({ client_reference: identity }) => !named.has(identity) && !known.has(identity),
  )
  note(
    drill,
    'each movement that is not on record is named',
    missing.length === 0,
    `${named.size} named, ${missing.length} missing`,
  )
  note(drill, 'money may leave again', accepted.halted_still === null, accepted.halted_still ?? 'yes')
  drill.say(`Accepted: ${JSON.stringify({ ...accepted, orphans: named.size })}`)
}

/** Identities that the database has, of requests and of what has not begun. */
async function identitiesOnRecord(home: Home): Promise<Set<string>> {
  const server = await startEmbedded({ dataDir: join(home.dataDir, 'pg'), durable: true })
  const client = new pg.Client(server.connection())
  await client.connect()
  await client.query('set role none')
  const { rows } = await client.query<{ identity: string }>(
    `SELECT correlation_id AS identity FROM operator_request UNION SELECT correlation_id FROM payout
     UNION SELECT correlation_id FROM batch_recipient`,
  )
  await client.end()
  await server.stop()
  return new Set(rows.map(({ identity }) => identity))
}

async function checkOutcome(drill: Drill, token: Token, orders: readonly DrillOrder[]): Promise<void> {
  const { home, simulator } = drill
  const { executions } = await eventuallyGives(
    () => readBook(simulator.url, controlToken),
    (book) => book.pending === 0 && book.executions.length >= orders.length,
  ).catch(() => readBook(simulator.url, controlToken))
  for (const operator of operators) {
    const own = executions.filter((row) => row.operator === operator)
    const wanted = orders.filter((order) => order.operator === operator)
    const times = (order: DrillOrder) =>
      own
        .filter(({ amount, count }) => Number(amount) === order.amount * count)
        .reduce((n, { count }) => n + count, 0)
    const twice = wanted.filter((order) => times(order) > 1)
    const never = wanted.filter((order) => times(order) === 0)
    note(
      drill,
      `${operator}: nothing is carried out twice`,
      twice.length === 0,
      `${twice.length} of ${wanted.length} twice ${twice.map(({ reference }) => reference).join(' ')}`,
    )
    note(
      drill,
      `${operator}: everything is carried out`,
      never.length === 0,
      `${never.length} never ${never.map(({ reference }) => reference).join(' ')}`,
    )
  }
  const open = await eventuallyGives(
    () => countOpen(home, token),
    (count) => count === 0,
  ).catch(() => countOpen(home, token))
  note(drill, 'every payment has ended', open === 0, `${open} open`)
  const { code, stdout } = await admin(home, 'audit', '--json')
  note(drill, 'the books hold', code === 0, stdout.trim().slice(0, 300))
}

async function countOpen(home: Home, token: Token): Promise<number> {
  const statuses = ['pending', 'processing']
  const answers = await Promise.all(
    statuses.flatMap((status) => [
      call(home, 'GET', `/transactions?status=${status}&limit=1`, token),
      call(home, 'GET', `/payouts?status=${status}&limit=1`, token),
    ]),
  )
  return answers.reduce((sum, { body }) => sum + Number(body['data']?.total ?? body['data']?.length ?? 0), 0)
}
