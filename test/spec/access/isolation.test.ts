import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { schema } from '../../../src/resources/schema.ts'
import { makeMember } from '../../kit/members.ts'
import { withoutSecondWall } from '../../kit/isolation/second-wall.ts'
import { startTestApp, type TestApp, type TestMerchant } from '../../kit/app.ts'
import { eventually } from '../../kit/eventually.ts'
import {
  type IsolationRequest,
  type Probe,
  comparable,
  digestOf,
  type ProbeReply,
  type KnownRows,
  type OwnedRow,
  type RowKind,
} from '../../kit/isolation/asks.ts'
import { batchOf, noBatchLike } from '../../kit/isolation/batches.ts'
import { linkOf, noLinkLike } from '../../kit/isolation/links.ts'
import { graphqlInputs, matrix, restInputs } from '../../kit/isolation/matrix.ts'
import { colleagueOf, nobodyLike } from '../../kit/isolation/team.ts'
import { webhookOf } from '../../kit/isolation/webhooks.ts'
import { strength } from '../../kit/strength.ts'

// Naming another merchant's rows gives the same answer as naming no row; either protection alone ensures it.
// Tests break the filter in their copy of `mine`, and row-level security as the owner of the database.
const filter = vi.hoisted(() => ({ instead: null as null | (() => object) }))
vi.mock(import('../../../src/identity/callers/actor.ts'), async (original) => {
  const actor = await original()
  return { ...actor, mine: (ctx) => (filter.instead?.() ?? actor.mine(ctx)) as { merchantId: number } }
})

let service: TestApp
let victim: KnownRows
/** The same names, of no row. */
let nothing: KnownRows
/** Words that only rows of the victim hold. */
const marks = [
  'victim-payment',
  '+22370000077',
  '771100',
  'Victim & Sons',
  '3084400',
  'Awa of victim',
  'Salaries of victim',
  'Link of victim',
  '77110000',
  'hooks-of-victim',
  'fanta-victim',
]
beforeAll(async () => {
  service = await startTestApp()
  // The global id of a short number is the beginning of the ids of longer numbers.
  await service.database.owner.query(
    `SELECT setval('webhook_endpoint_id_seq', 100), setval('webhook_delivery_id_seq', 100),
       setval('batch_id_seq', 100), setval('payment_link_id_seq', 100)`,
  )
  victim = await knownOf(await service.merchant('Victim & Sons'), 'victim-payment', {
    amount: 771_100,
    phone: '70000077',
    count: 8, // Its log is longer than a stranger's: its last cursor is beyond all of theirs.
  })
  // Its ids lie near the victim's: before those of all strangers.
  nothing = await nothingLike(victim)
})
afterAll(() => service.close())

interface Payments {
  amount: number
  phone: string
  count: number
}

/** A merchant with final payments only, so that no job changes them any more. */
async function knownOf(shop: TestMerchant, name: string, payments: Payments): Promise<KnownRows> {
  const { amount, phone, count } = payments
  const body = { amount, customer_phone: phone, payment_method: 'OperatorA' }
  const idempotencyKey = `key-of-${name}`
  const { token, merchantId } = shop
  const made = []
  for (let n = 1; n <= count; n += 1) {
    const reference = `${name}-${n}`
    const headers = { 'Idempotency-Key': `${idempotencyKey}-${reference}` }
    made.push(await service.rest('POST', '/pay', { token, headers, body: { ...body, reference } }))
  }
  await eventually(async () => {
    const { rows } = await service.database.owner.query(
      `SELECT (SELECT count(*)::int FROM transaction WHERE merchant_id = $1 AND status = 'success') AS paid,
         (SELECT count(*)::int FROM event WHERE merchant_id = $1 AND position > 0) AS events`,
      [merchantId],
    )
    expect(rows).toEqual([{ paid: count, events: 2 * count }])
  })
  const reference = `${name}-1`
  const read = await service.graphql(
    `{ transactions(filter: { reference: "${reference}" }) { edges { cursor node { id } } } }`,
    {},
    token,
  )
  const [edge] = read.body['data'].transactions.edges
  const lines = await service.graphql(
    '{ statement(from: "2020-01-01T00:00:00Z") { lines(first: 1) { edges { cursor } } } }',
    {},
    token,
  )
  const keys = await service.graphql('{ apiKeys { edges { cursor node { id databaseId } } } }', {}, token)
  const [keyEdge] = keys.body['data'].apiKeys.edges
  const beneficiary = `Awa of ${name}`
  const saved = { name: beneficiary, account: phone, payment_method: 'OperatorA' }
  await service.rest('POST', '/beneficiaries', { token, body: saved })
  const people = await service.graphql(
    '{ beneficiaries { edges { cursor node { id databaseId } } } }',
    {},
    token,
  )
  const [person] = people.body['data'].beneficiaries.edges
  // Scheduled and waiting for approval, so that no job moves it.
  await service.database.owner.query('UPDATE merchant SET payouts_require_approval = true WHERE id = $1', [
    merchantId,
  ])
  const payout = {
    amount: Math.max(amount, 1_000),
    beneficiary_id: person.node.databaseId,
    reference: `${name}-out`,
  }
  const scheduled = { ...payout, scheduled_at: new Date(Date.now() + 86_400_000) }
  await service.rest('POST', '/payouts', { token, body: scheduled })
  const out = await service.graphql('{ payouts { edges { cursor node { id databaseId } } } }', {}, token)
  const [leaving] = out.body['data'].payouts.edges
  const batch = await batchOf(service, token, name, payments)
  const link = await linkOf(service, token, name)
  const webhook = await webhookOf(service, token, name)
  const colleague = await colleagueOf(service, shop, name)
  const boss = await makeMember(service.app.services.access, merchantId, 'owner', `boss-${name}`)
  const loosening = { token: boss.token, body: { payouts_require_approval: false } }
  const changing = await service.rest('PUT', '/settings', loosening)
  const log = await service.graphql('{ auditLog(first: 1) { edges { cursor } } }', {}, token)
  return {
    ...webhook,
    ...batch,
    ...link,
    ...colleague,
    auditCursor: log.body['data'].auditLog.edges[0].cursor,
    settingsChangeId: String(changing.body['data'].pending_change.id),
    apiKey: shop.apiKey,
    apiSecret: shop.apiSecret,
    merchantId,
    id: String(made[0]?.body['data'].transaction_id),
    node: edge.node.id,
    cursor: edge.cursor,
    reference,
    phone: `+223${phone}`,
    sequence: String(2 * count),
    idempotencyKey: `${idempotencyKey}-${reference}`,
    body: { ...body, reference: `${name}-by-key` },
    line: lines.body['data'].statement.lines.edges[0].cursor,
    keyId: String(keyEdge.node.databaseId),
    keyNode: keyEdge.node.id,
    keyCursor: keyEdge.cursor,
    beneficiaryId: String(person.node.databaseId),
    beneficiaryNode: person.node.id,
    beneficiaryCursor: person.cursor,
    beneficiary,
    payoutId: String(leaving.node.databaseId),
    payoutNode: leaving.node.id,
    payoutCursor: leaving.cursor,
    payoutReference: payout.reference,
  }
}

/** An id that no row has, and unused words. */
async function nothingLike(known: KnownRows): Promise<KnownRows> {
  const { rows } = await service.database.owner.query<Record<RowKind, string>>(
    `SELECT nextval('transaction_id_seq')::text AS id, nextval('beneficiary_id_seq')::text AS person,
       nextval('payout_id_seq')::text AS payout, nextval('batch_id_seq')::text AS batch,
       nextval('batch_recipient_id_seq')::text AS paid, nextval('payment_link_id_seq')::text AS link,
       nextval('webhook_endpoint_id_seq')::text AS hook,
       nextval('webhook_delivery_id_seq')::text AS sent, nextval('team_member_id_seq')::text AS member,
       nextval('api_key_id_seq')::text AS session, nextval('audit_entry_id_seq')::text AS noted,
       nextval('settings_change_id_seq')::text AS change`,
  )
  const [made] = rows
  if (!made) throw new Error('no ids')
  const { id, person, payout, batch, paid, link, hook, sent, member, session, noted, change } = made
  const renamed = (encoded: string, was = known.id, becomes = id) =>
    Buffer.from(Buffer.from(encoded, 'base64').toString().replace(was, becomes)).toString('base64')
  return {
    ...known,
    apiKey: `mk_${'0'.repeat(22)}`,
    apiSecret: known.apiSecret.replace(/.{6}$/, 'aaaaaa'),
    merchantId: 2_000_000_000,
    id,
    node: renamed(known.node),
    cursor: id,
    reference: 'no-such-payment',
    phone: '+22370000078',
    sequence: '987654',
    idempotencyKey: 'no-such-key',
    line: known.line.replace(/\d+$/, '0'),
    keyId: session,
    keyNode: renamed(known.keyNode, known.keyId, session),
    keyCursor: session,
    beneficiaryId: person,
    beneficiaryNode: renamed(known.beneficiaryNode, known.beneficiaryId, person),
    beneficiaryCursor: person,
    beneficiary: 'No such person',
    payoutId: payout,
    payoutNode: renamed(known.payoutNode, known.payoutId, payout),
    payoutCursor: payout,
    payoutReference: 'no-such-payout',
    ...noBatchLike(known, batch, paid, renamed),
    ...noLinkLike(known, link, renamed),
    webhookId: hook,
    webhookUrl: 'http://127.0.0.1:1/hooks-of-nobody',
    webhookNode: renamed(known.webhookNode, known.webhookId, hook),
    webhookCursor: hook,
    deliveryId: sent,
    deliveryNode: renamed(known.deliveryNode, known.deliveryId, sent),
    eventId: 'evt_987654321',
    auditCursor: noted,
    settingsChangeId: change,
    ...nobodyLike(known, member, session, renamed),
  }
}

async function send(ask: IsolationRequest, token: string | null): Promise<ProbeReply> {
  const path = ask.document === undefined ? `/merchant/api${ask.path}` : '/graphql'
  const body = ask.document === undefined ? ask.body : { query: ask.document, variables: ask.variables }
  const silence = new AbortController()
  const response = await fetch(`${service.url}${path}`, {
    method: ask.document === undefined ? (ask.method ?? 'GET') : 'POST',
    headers: {
      ...(token && { Authorization: `Bearer ${token}` }),
      ...(body && { 'Content-Type': 'application/json' }),
      ...(ask.isStream && { Accept: 'text/event-stream' }),
      ...ask.headers,
    },
    ...(body && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    signal: silence.signal,
  })
  // A stream has no end of its own.
  const timer = ask.isStream && setTimeout(() => silence.abort(), silenceMs)
  let text = ''
  try {
    const decoder = new TextDecoder()
    for await (const part of response.body ?? []) {
      text += decoder.decode(part, { stream: true })
      if (timer) timer.refresh()
    }
  } catch (error) {
    if (!ask.isStream) throw error
  }
  return { status: response.status, text }
}

const silenceMs = 250

/** The callers: a stranger, and the merchants that give the expected answers. */
interface Callers {
  stranger: TestMerchant
  /** Token of a person who signed in there. */
  person: string
  self: KnownRows
  /** Two more: the second makes the same rows as the first, under unused names. */
  writers: readonly [Caller, Caller]
}

interface Caller {
  merchant: TestMerchant
  self: KnownRows
}

async function makeCallers(): Promise<Callers> {
  const stranger = await service.merchant('Stranger')
  const name = `stranger-${stranger.merchantId}`
  return {
    stranger,
    person: (await makeMember(service.app.services.access, stranger.merchantId, 'finance')).token,
    self: await knownOf(stranger, name, { amount: 5_000, phone: '70000088', count: 2 }),
    writers: [await makeWriter(), await makeWriter()],
  }
}

/** A merchant with money to pay out, and a payment to give back. */
async function makeWriter(): Promise<Caller> {
  const merchant = await service.merchant('Writer')
  const payments = { amount: 50_000, phone: '70000066', count: 1 }
  return { merchant, self: await knownOf(merchant, `writer-${merchant.merchantId}`, payments) }
}

/** The answer of `row` to a caller that names the victim's rows, and the expected answer. */
async function probe(row: OwnedRow, attack: Probe, callers: Callers): Promise<[ProbeReply, string, string]> {
  const { stranger, person, self, writers } = callers
  const reader: Caller = { merchant: stranger, self }
  const [first, second] = row.isWrite ? writers : [reader, reader]
  const tokenOf = ({ merchant }: Caller) => (row.byPerson ? person : merchant.token)
  const [reply, expected] = await Promise.all([
    send(attack(victim, first.self), tokenOf(first)),
    row.isCredential ? send(attack(victim, self), null) : send(attack(nothing, second.self), tokenOf(second)),
  ])
  if (row.isCredential) return [reply, comparable(reply, victim), comparable(expected, victim)]
  const texts = [comparable(reply, victim), comparable(expected, nothing)] as const
  // Each of the two made its own row.
  const [actual, due] = row.isWrite ? texts.map((text) => text.replaceAll(/(d":)\d+/g, '$1"<own>"')) : texts
  return [reply, actual ?? '', due ?? '']
}

/** Tries every row of the matrix. @returns the differences and leaks, as sentences */
async function attackAll(callers: Callers): Promise<string[]> {
  const before = await digestOf(service.database.owner, victim.merchantId)
  const complaints: string[] = []
  for (const [input, row] of Object.entries(matrix)) {
    if (!row.attack) continue
    const [reply, actual, expected] = await probe(row, row.attack, callers)
    if (actual !== expected) complaints.push(`${input}: ${actual}\n  and not ${expected}`)
    const asked = JSON.stringify(row.attack(victim, callers.self))
    const leaked = marks.filter((mark) => reply.text.includes(mark) && !asked.includes(mark))
    if (leaked.length > 0) complaints.push(`${input}: tells ${leaked.join()}: ${reply.text.slice(0, 300)}`)
  }
  for (const [table, digest] of Object.entries(await digestOf(service.database.owner, victim.merchantId)))
    if (digest !== before[table]) complaints.push(`${table}: rows of the victim changed`)
  return complaints
}

test('every input that can name a row has its line in the matrix', () => {
  const inputs = [...graphqlInputs(schema), ...restInputs(schema)]
  const rows = Object.keys(matrix).filter((row) => !/^(header|nothing)/.test(row))
  expect(inputs.length).toBeGreaterThan(30)
  expect(inputs.toSorted()).toEqual(rows.toSorted())
  const undecided = Object.entries(matrix).filter(
    ([, row]: [string, OwnedRow]) => Boolean(row.attack) === Boolean(row.harmless),
  )
  expect(undecided).toEqual([])
})

const firstWalls: Readonly<Record<string, (() => object) | null>> = {
  'the filter': null,
  'no filter': () => ({}),
  "the victim's filter": () => ({ merchantId: victim.merchantId }),
}

test.each(Object.entries(firstWalls).slice(0, strength(2, 3)))(
  'with row-level security, behind %s, no row leaks',
  async (_name, broken) => {
    expect(await attacked(broken)).toEqual([])
  },
)

test('without row-level security, behind the filter, no row leaks', async () => {
  await withoutSecondWall(service, async () => expect(await attacked(null)).toEqual([]))
})

test.each(Object.entries(firstWalls).slice(1, strength(2, 3)))(
  'without both, behind %s, the matrix finds the leaks',
  async (_name, broken) => {
    await withoutSecondWall(service, async () => {
      const named = (await attacked(broken)).map((complaint) => complaint.split(': ')[0])
      const seen = ['Query.transaction(databaseId)', 'Query.transactions(filter.reference)']
      seen.push('Query.beneficiary(id)', 'Mutation.updateBeneficiary(id)', 'GET /beneficiaries/{id} id')
      seen.push('Query.webhook(id)', 'Mutation.rotateWebhookSecret(id)', 'Mutation.removeWebhook(id)')
      seen.push('Query.member(id)', 'GET /team/{id} id')
      seen.push('Query.batch(id)', 'Query.batches(after)', 'GET /bulk/batches/{id} id')
      seen.push('Query.paymentLink(id)', 'GET /payment-links/{id} id')
      seen.push('Query.payout(id)', 'Query.payouts(filter.reference)', 'GET /payouts/{id} id')
      expect(named).toEqual(expect.arrayContaining([...seen, 'GET /transactions/{id} id']))
    })
  },
)

async function attacked(broken: (() => object) | null): Promise<string[]> {
  const callers = await makeCallers()
  // An attack of an earlier test may have removed it.
  await service.database.owner.query(
    'UPDATE webhook_endpoint SET slot = 1, removed_at = NULL WHERE merchant_id = $1',
    [victim.merchantId],
  )
  filter.instead = broken
  try {
    return await attackAll(callers)
  } finally {
    filter.instead = null
  }
}
