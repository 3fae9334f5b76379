import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readGlobalId } from '../../../src/shared/ids.ts'
import { passwordBounds } from '../../../src/identity/members/passwords.ts'
import {
  askApprovals,
  basesOf,
  ofApprovers,
  ofPersons,
  openShop,
  type Shop,
} from '../../kit/extremes/bases.ts'
import { type InputField, inputFields, rootFields, snakeCase } from '../../kit/extremes/input-fields.ts'
import {
  openReceiver,
  openStream,
  readDelivery,
  readPage,
  readTable,
  rowsOfChanges,
  tableDifferences,
} from '../../kit/extremes/outlets.ts'
import { differences, lists, readConnections, readRest, shownAs } from '../../kit/extremes/reader.ts'
import { boundVerdicts, isBounded, valuesFor } from '../../kit/extremes/values.ts'
import { isVerdict, verdict } from '../../kit/extremes/verdicts.ts'
import {
  type Arguments,
  callOf,
  type Door,
  routeOf,
  writerOn,
  type Written,
  writtenId,
  writtenType,
} from '../../kit/extremes/writer.ts'
import { schema } from '../../../src/resources/schema.ts'
import { selectionOf } from '../../kit/whole-selections.ts'
import { events } from '../../../src/events/catalogue.ts'
import type { TestMerchant } from '../../kit/app.ts'
import { eventually } from '../../kit/eventually.ts'
import { openFixture } from '../../kit/fixture.ts'

// Texts, numbers and addresses at the edges of what can be written, to every field of every mutation, over
// both doors. Each answer is a success or a refusal that names the field, both doors agree, and every list
// shows the rows afterwards as they were written.

Object.assign(passwordBounds, { memoryKib: 8, passes: 1 })
const fixture = await openFixture({
  RATE_LIMIT_WRITES: '100000',
  RATE_LIMIT_READS: '100000',
  RATE_LIMIT_OBJECTS: '100000000',
})
const { requestLimits } = fixture.app.services
requestLimits.takeAccessChange = () => Promise.resolve()
const { send, write } = writerOn(fixture.url)

/** The calls whose rows are one for a merchant, or few: a value is read back before the next one comes. */
const oneByOne = /Webhook$|updateSettings|rejectSettingsChange|replayEvents/
/** The calls of a shop in which payments wait for approval, and which has no receiver of webhooks. */
const waiting = /^(approve|reject)|Webhook$|replayEvents/
/** The fields that are not shown: what proves a caller, and ids of other rows. */
const unseen =
  /^(password|current|code|token|digest|apiKey|apiSecret|scopes|keepKeys|ids|from|to|merchantId|expected.*)$/
/** The codes of refusals that need not name the field, by its scalar. */
const codesOf: Record<string, readonly string[]> = {
  ID: ['NOT_FOUND', 'STATE_CONFLICT', 'FORBIDDEN', 'NOT_REFUNDABLE'],
  Amount: ['REFUND_TOO_LARGE', 'LIMIT_EXCEEDED', 'INSUFFICIENT_BALANCE'],
}
const proven = /^(acceptInvitation|resetPassword|sandboxSignIn)$/
const proofCodes = ['CREDENTIALS_REJECTED', 'STATE_CONFLICT', 'FORBIDDEN', 'RATE_LIMITED']

const doors = ['graphql', 'rest'] as const
type Shops = Record<Door, Shop>
let shops: Shops
let strict: Shops
const kinds: ['open' | 'strict', Shops][] = []
const receivers = {} as Record<Door, Awaited<ReturnType<typeof openReceiver>>>
const secrets = {} as Record<Door, string>
const onClose: (() => void)[] = []
beforeAll(async () => {
  const open = async () => ({ graphql: await openShop(fixture), rest: await openShop(fixture) })
  shops = await open()
  strict = await open()
  kinds.push(['open', shops], ['strict', strict])
  for (const door of doors) {
    await askApprovals(fixture, strict[door])
    const receiver = await openReceiver()
    receivers[door] = receiver
    onClose.push(receiver.close)
    const body = JSON.stringify({ url: receiver.url, events: Object.keys(events) })
    const { token } = shops[door].merchant
    const made = await send('POST', '/merchant/api/webhooks', { token, body })
    secrets[door] = made.body['data'].secret
  }
})
afterAll(() => {
  for (const close of onClose) close()
})

/** The values that a door took, in the shop that pays at once and in the one that waits for approvals. */
const written: Record<Door, { open: Written[]; strict: Written[] }> = {
  graphql: { open: [], strict: [] },
  rest: { open: [], strict: [] },
}
// `test/graphql/one-of.test.ts` tries the destination of a payout, which stands beside no other form of it.
const fields = inputFields('mutation').filter(({ name }) => !name.includes('.destination.'))
/** The values that a read at once after the write showed otherwise than they were written. */
const misread: string[] = []
/** The types whose rows the API shows. */
const shownTypes = new Set(['Settings', ...lists.map(({ row }) => row.name)])
const lastName = ({ path }: InputField) => path.findLast((part) => part !== '0') ?? ''

const idIn = ({ id }: Arguments) => (typeof id === 'string' ? (readGlobalId(id)?.id ?? id) : '')

/** Sends every value of a field by a door. @returns the verdict on each */
async function tryField(door: Door, field: InputField): Promise<[string, string][]> {
  const mutation = callOf(field)
  const shop = (waiting.test(mutation) ? strict : shops)[door]
  const base = basesOf(fixture, shop)
  const { token } = ofApprovers.test(mutation)
    ? shop.approver
    : ofPersons.test(mutation)
      ? shop.person
      : shop.merchant
  const name = lastName(field)
  const isProof = unseen.test(name) || mutation === 'signIn'
  const naming = {
    // Without a valid token only the token is named.
    field: `(${name}|${snakeCase(name)}${proven.test(mutation) ? '|token' : ''})`,
    codes: [
      ...(codesOf[field.scalar] ?? []),
      ...(isProof ? proofCodes : []),
      ...(name === 'expectedTotal' ? ['STATE_CONFLICT'] : []),
    ],
  }
  const one = async (value: string): Promise<[string, string]> => {
    const given = await base(mutation)
    const answer = await write(door, field, { base: given, value, token })
    const sent = `${door} ${field.name} ${value.slice(0, 80)}`
    const judged = verdict(answer, naming, sent)
    const type = writtenType(mutation)
    if (judged === 'taken' && !unseen.test(name) && shownTypes.has(type)) {
      const id = writtenId(answer) || idIn(given)
      const row = { type, id, field: name, shown: shownAs(name, JSON.parse(value)), sent }
      if (oneByOne.test(mutation)) misread.push(...(await differencesOfOne(row, shop.merchant.token)))
      else written[door][waiting.test(mutation) ? 'strict' : 'open'].push(row)
    }
    return [value, judged]
  }
  const values = valuesFor(field)
  const verdicts: [string, string][] = []
  const together = oneByOne.test(mutation) ? 1 : 8
  for (let at = 0; at < values.length; at += together)
    verdicts.push(...(await Promise.all(values.slice(at, at + together).map(one))))
  return verdicts
}

const wholeOf = (type: string) => selectionOf(schema.getType(type) as never, 0)

/** Reads a row that the next value changes, at both doors. */
async function differencesOfOne(row: Written, token: string): Promise<string[]> {
  const { type, id } = row
  if (type !== 'Webhook' && type !== 'Settings') return []
  const path = type === 'Webhook' ? `/webhooks/${id}` : '/settings'
  const call = type === 'Webhook' ? `webhook(id: "${id}") { url }` : `settings${wholeOf('Settings')}`
  const asked = await fixture.graphql(`{ row: ${call} }`, {}, token)
  const { body } = await send('GET', `/merchant/api${path}`, { token })
  return [asked.body['data']?.row, body['data']].flatMap((shown: unknown) =>
    differences(new Map([[`${type}:${id}`, shown]]), [row], true),
  )
}

/** The rows that each subscription tells of. */
const streamed: Record<string, string> = {
  transactionChanged: 'Transaction',
  payoutChanged: 'Payout',
  approvalsChanged: 'Payout',
  batchProgress: 'none',
  paymentLinkUsed: 'none',
  events: 'none',
}

/** Only GraphQL decides on approvals; REST pays no batch here. */
const ofApprovals = /approvalsChanged|batchProgress/

type Row = Readonly<Record<string, string>> | undefined

/** Returns the value that the page of a link does not show. */
async function linkProblems({ field, shown, sent }: Written, row: Row): Promise<string[]> {
  const { status, text } = await readPage(`${fixture.url}/l/${row?.['urlSlug']}`)
  const isThere = !['title', 'description'].includes(field) || text.includes(String(shown))
  return status === 200 && isThere ? [] : [`${sent}: ${status} ${row?.['urlSlug']}`]
}

/** Returns the public pages and polls of a payment that cannot be read. */
async function paymentProblems({ sent }: Written, row: Row, merchantId: number): Promise<string[]> {
  const reference = encodeURIComponent(row?.['reference'] ?? '')
  const poll = `${fixture.url}/merchant/api/payment/status/${reference}?merchant_id=${merchantId}`
  const pages = [poll, row?.['receiptUrl'], row?.['paymentUrl']].filter((address) => address != null)
  const read = await Promise.all(pages.map(async (page) => [page, (await readPage(page)).status] as const))
  return read.filter(([, status]) => status >= 400).map(([page, status]) => `${sent}: ${status} ${page}`)
}

/** Pays by a new link, on its page. */
async function payByLink({ token }: TestMerchant): Promise<void> {
  const body = JSON.stringify({ title: 'Riz', amount: 5_000 })
  const { body: made } = await send('POST', '/merchant/api/payment-links', { token, body })
  const form = new URLSearchParams({ amount: '5000', phone: '70000000', operator: 'OperatorA', token: '' })
  const paid = await fetch(made['data'].url, { method: 'POST', body: form, redirect: 'manual' })
  expect(paid.status).toBe(303)
}

/** Reads the log of events: the data of each by its id. */
async function readEvents(token: string): Promise<Map<string, unknown>> {
  const found = new Map<string, unknown>()
  for (let after: string | null = null; ; ) {
    const query = `query ($after: String) { events(first: 100, after: $after) {
      pageInfo { hasNextPage endCursor } nodes { id data } } }`
    const { body } = await fixture.graphql(query, { after }, token)
    expect(body['errors']).toBeUndefined()
    const { nodes, pageInfo } = body['data'].events
    for (const { id, data } of nodes) found.set(id, data)
    if (!pageInfo.hasNextPage) return found
    after = pageInfo.endCursor
  }
}

const tried = new Map<string, ReturnType<typeof tryField>>()

/** Sends every value of a field by a door, once. */
function verdictsOf(door: Door, field: InputField): ReturnType<typeof tryField> {
  const name = `${door} ${field.name}`
  const known = tried.get(name) ?? tryField(door, field)
  tried.set(name, known)
  return known
}

/** REST takes the credentials of `authenticate` in headers. */
const isInRest = (field: InputField) =>
  routeOf(callOf(field)) !== undefined && callOf(field) !== 'authenticate'

/** Writes all that a door takes, for a test that runs alone. */
async function writeAll(door: Door): Promise<void> {
  for (const field of fields) if (door === 'graphql' || isInRest(field)) await verdictsOf(door, field)
}

describe('an extreme value', () => {
  test.each(fields.map((field) => [field.name, field] as const))(
    'in %s is taken or refused by name, by both doors alike',
    async (_name, field) => {
      const verdicts = await verdictsOf('graphql', field)
      expect(verdicts.filter(([, given]) => !isVerdict(given))).toEqual([])
      expect(misread.splice(0)).toEqual([])
      const atBound = verdicts.slice(0, 2).map(([, given]) => given)
      const isTakenLong = isBounded(field) && !proven.test(callOf(field))
      expect(isTakenLong ? atBound : boundVerdicts).toEqual(boundVerdicts)
      if (!isInRest(field)) return
      const ofRest = await verdictsOf('rest', field)
      expect(ofRest.filter(([, given]) => !isVerdict(given))).toEqual([])
      expect(misread.splice(0)).toEqual([])
      // The whole service has each slug once.
      expect(lastName(field) === 'urlSlug' ? verdicts : ofRest).toEqual(verdicts)
    },
  )

  test.each(doors)('written by %s is read back by every list and address', async (door) => {
    await writeAll(door)
    for (const [kind, of] of kinds) {
      const { token } = of[door].merchant
      const rows = written[door][kind]
      expect.soft(differences(await readConnections(send, token), rows, true)).toEqual([])
      expect.soft(differences(await readRest(send, token, rows), rows, false)).toEqual([])
    }
    expect(written[door].open.length).toBeGreaterThan(100)
  })

  test.each(doors)('written by %s stands in every export', async (door) => {
    await writeAll(door)
    const { token } = shops[door].merchant
    const read = (name: string) => readTable(fixture.url, token, name)
    const of = (type: string) => written[door].open.filter((row) => row.type === type)
    expect(tableDifferences(await read('transactions.csv'), of('Transaction'))).toEqual([])
    expect(tableDifferences(await read('payouts.csv'), of('Payout'))).toEqual([])
    expect((await read('statement.csv?from=2020-01-01')).size).toBeGreaterThan(0)
    for (const row of of('Batch').filter(({ sent }) => sent.includes('recipients'))) {
      const [recipient] = (await read(`recipients.csv?batch_id=${row.id}`)).values()
      const table = new Map([[row.id, recipient ?? {}]])
      expect.soft(tableDifferences(table, [row])).toEqual([])
    }
  })

  test.each(doors)('written by %s arrives by every subscription, as the lists show it', async (door) => {
    await writeAll(door)
    await payByLink(shops[door].merchant)
    for (const name of Object.keys(rootFields('subscription'))) {
      if (door === 'rest' && ofApprovals.test(name)) continue
      const isOpen = /transaction|payoutChanged|events|paymentLink/.test(name)
      const rows = written[door][isOpen ? 'open' : 'strict'].filter(({ type }) => type === streamed[name])
      const { token } = (isOpen ? shops : strict)[door].merchant
      const { changes, problems, close } = openStream(fixture.url, token, name)
      await eventually(() => {
        const seen = rowsOfChanges(changes)
        expect(problems).toEqual([])
        expect(changes.length).toBeGreaterThan(0)
        expect(rows.filter(({ type, id }) => !seen.has(`${type}:${id}`))).toEqual([])
        expect(differences(seen, rows, false)).toEqual([])
      })
      await close()
    }
  })

  test.each(doors)('written by %s arrives by webhook, as the log of events shows it', async (door) => {
    await writeAll(door)
    const { token } = shops[door].merchant
    const log = await readEvents(token)
    expect(log.size).toBeGreaterThan(100)
    const { arrived } = receivers[door]
    const ofMerchant = () => new Set(arrived.map(({ headers }) => String(headers['webhook-id'])))
    await eventually(() => [...log.keys()].every((id) => ofMerchant().has(id)))
    for (const delivery of arrived) {
      const { id, data } = readDelivery(delivery, secrets[door])
      expect.soft(data).toEqual(log.get(id) ?? data)
    }
  })

  test.each(doors)('written by %s stands on the public pages', async (door) => {
    await writeAll(door)
    const { merchantId, token } = shops[door].merchant
    const rows = await readConnections(send, token)
    const wrong: string[] = []
    for (const row of written[door].open) {
      const of = rows.get(`${row.type}:${row.id}`) as Record<string, string> | undefined
      if (row.type === 'PaymentLink') wrong.push(...(await linkProblems(row, of)))
      if (row.type === 'Transaction') wrong.push(...(await paymentProblems(row, of, merchantId)))
    }
    expect(wrong).toEqual([])
  })
})
