import { beforeAll, describe, expect, test } from 'vitest'
import type { TestMerchant } from '../../kit/app.ts'
import { bulkOn, row } from '../../kit/bulk.ts'
import { eventually } from '../../kit/eventually.ts'
import { customer, openFixture } from '../../kit/fixture.ts'
import { payoutsOn } from '../../kit/payouts.ts'
import { randomFrom } from '../../kit/random.ts'
import { seed } from '../../kit/seeds.ts'

// A line of a statement shows, beside its amounts, the payment, its reference, the other party and the
// balance after it.

const fixture = await openFixture()
const bulk = bulkOn(fixture)
const payouts = payoutsOn(fixture)
const from = '2020-01-01T00:00:00Z'

const holdings = '{ balance available reserved receivable }'
const lines = (fields: string) => `query ($from: DateTime!, $to: DateTime, $first: Int, $after: String) {
  statement(from: $from, to: $to) { opening ${holdings} closing ${holdings}
    lines(first: $first, after: $after) { nodes { ${fields} } pageInfo { hasNextPage endCursor } } } }`
const changes = 'entry { databaseId createdAt step } availableChange reservedChange receivableChange'

interface Holdings {
  balance: number
  available: number
  reserved: number
  receivable: number
}
interface Line {
  entry: { databaseId: number; createdAt: string; step: string }
  availableChange: number
  reservedChange: number
  receivableChange: number
  balanceAfter: Holdings
}
interface Statement {
  opening: Holdings
  closing: Holdings
  lines: { nodes: Line[]; pageInfo: { hasNextPage: boolean; endCursor: string } }
}

async function ask(document: string, merchant: Pick<TestMerchant, 'token'>, variables: object = {}) {
  const { body } = await fixture.graphql(document, { from, ...variables }, merchant.token)
  return body
}

/** Reads all pages of a statement and adds up their changes. */
async function checkBalances(merchant: TestMerchant, span: object, first: number): Promise<number> {
  let sum: Holdings | undefined
  let count = 0
  for (let after: string | null = null; ; ) {
    const { data } = await ask(lines(`${changes} balanceAfter ${holdings}`), merchant, {
      ...span,
      first,
      after,
    })
    const { opening, closing, lines: page } = data.statement as Statement
    sum ??= opening
    for (const line of page.nodes) {
      const available: number = sum.available + line.availableChange
      const reserved: number = sum.reserved + line.reservedChange
      const receivable: number = sum.receivable + line.receivableChange
      sum = { balance: available + reserved, available, reserved, receivable }
      expect(line.balanceAfter).toEqual(sum)
      count += 1
    }
    after = page.pageInfo.endCursor
    if (page.pageInfo.hasNextPage) continue
    expect(sum).toEqual(closing)
    return count
  }
}

describe('the balance after each line', () => {
  test('adds up over random entries, of which many have the same time, in pages of any size', async () => {
    const shop = await fixture.merchant()
    const random = randomFrom(seed)
    const start = Date.parse('2026-03-01T00:00:00Z')
    // Entries of a few moments, written in any order: also before those that a snapshot counted already.
    for (let part = 0; part < 4; part += 1) {
      const rows = Array.from({ length: 150 }, () => ({
        at: new Date(start + Math.floor(random() * 12) * 1_000),
        amount: 1 + Math.floor(random() * 9_000),
      }))
      await fixture.database.owner.query(
        `INSERT INTO ledger_entry (merchant_id, origin, step, debit, credit, amount, created_at)
         SELECT $1, 'funding:' || gen_random_uuid(), 'fund', 'funding', 'available', amount, at
         FROM unnest($2::bigint[], $3::timestamptz[]) AS t (amount, at)`,
        [shop.merchantId, rows.map(({ amount }) => amount), rows.map(({ at }) => at)],
      )
    }
    expect(await checkBalances(shop, {}, 100)).toBe(600)
    const [after, before] = [new Date(start + 2_000), new Date(start + 9_000)]
    const span = { from: after, to: before }
    const found = [await checkBalances(shop, span, 7), await checkBalances(shop, span, 64)]
    expect(found[0]).toBeGreaterThan(300)
    expect(found[1]).toBe(found[0])
  })
})

describe('the lines of a merchant that uses everything', () => {
  let shop: TestMerchant
  let merchantWithout: Pick<TestMerchant, 'token'>
  const phones = { collected: customer('00'), paidOut: customer('00'), deposited: customer('00') }
  const recipients = [row('00', { name: 'Awa Traoré' }), row('00', { name: 'Bakary Coulibaly' })]
  let ids: { transaction: number; payout: number; deposit: number; batch: number }
  const found = new Map<string, { reference: string | null; counterparty: unknown; subject: unknown }>()
  const described = `entry { step } reference counterparty { name phone }
    transactionId payoutId batchId recipientId subject { kind: __typename
      ... on Transaction { databaseId amount status } ... on Payout { databaseId destinationPhone }
      ... on Batch { databaseId title } ... on BatchRecipient { name batch { title } } }`

  beforeAll(async () => {
    shop = await fixture.merchant()
    await fixture.fund(shop, 100_000)
    const paid = await fixture.paid(shop, {
      amount: 2_500,
      customer_phone: phones.collected,
      reference: 'vente-1',
    })
    const { body: saved } = await fixture.rest('POST', '/beneficiaries', {
      token: shop.token,
      body: { name: 'Moussa Keïta', account: phones.paidOut, payment_method: 'OperatorA' },
    })
    const beneficiary = saved['data'].id as number
    const made = await payouts.payOut(shop, { beneficiary_id: beneficiary, reference: 'loyer-1' })
    const deposit = await fixture.deposit(shop, { customer_phone: phones.deposited, reference: 'cadeau-1' })
    const batch = await bulk.draft(shop, recipients, { title: 'Salaires de mars' })
    await bulk.process(shop, batch)
    await bulk.ended(shop, batch)
    ids = {
      transaction: paid['transaction_id'] as number,
      payout: made.body['data'].id as number,
      deposit: deposit.body.data.transaction_id as number,
      batch,
    }
    const received = [ids.transaction, ids.deposit]
    await eventually(async () => {
      const payout = await payouts.record(shop, ids.payout)
      const states = [
        payout['status'],
        ...(await Promise.all(received.map((id) => fixture.statusOf(shop, id)))),
      ]
      if (states.join() !== 'completed,success,success') throw new Error(`not paid yet: ${states.join()}`)
    })
    const { body } = await fixture.rest('POST', '/auth', {
      headers: { 'x-api-key': shop.apiKey, 'x-api-secret': shop.apiSecret },
      body: { scopes: ['balance'] },
    })
    merchantWithout = { token: body['data'].token }
    const { data } = await ask(lines(described), shop, { first: 100 })
    for (const line of data.statement.lines.nodes) {
      const about = line.subject?.name ?? line.subject?.databaseId ?? 'funding'
      found.set(`${line.entry.step} ${line.subject?.kind ?? ''} ${about}`, line)
    }
  })

  test('the balances add up', async () => {
    expect(await checkBalances(shop, {}, 2)).toBe(found.size)
  })

  test('a collection and a deposit show the customer', () => {
    expect(found.get(`CREDIT Transaction ${ids.transaction}`)).toMatchObject({
      reference: 'vente-1',
      counterparty: { name: null, phone: phones.collected },
      transactionId: ids.transaction,
      subject: { kind: 'Transaction', databaseId: ids.transaction, amount: 2_500, status: 'SUCCESS' },
    })
    expect(found.get(`POST Transaction ${ids.deposit}`)).toMatchObject({
      reference: 'cadeau-1',
      counterparty: { name: null, phone: phones.deposited },
    })
  })

  test('a payout shows its beneficiary', () => {
    expect(found.get(`RESERVE Payout ${ids.payout}`)).toMatchObject({
      reference: 'loyer-1',
      counterparty: { name: 'Moussa Keïta', phone: phones.paidOut },
      payoutId: ids.payout,
      subject: { kind: 'Payout', databaseId: ids.payout, destinationPhone: phones.paidOut },
    })
  })

  test('a batch is reserved as a whole, and each recipient is paid', () => {
    expect(found.get(`RESERVE Batch ${ids.batch}`)).toMatchObject({
      reference: null,
      counterparty: null,
      batchId: ids.batch,
      subject: { kind: 'Batch', databaseId: ids.batch, title: 'Salaires de mars' },
    })
    for (const { name, account } of recipients) {
      expect(found.get(`POST BatchRecipient ${name}`)).toMatchObject({
        reference: null,
        counterparty: { name, phone: account },
        subject: { kind: 'BatchRecipient', name, batch: { title: 'Salaires de mars' } },
      })
    }
  })

  test('money that came from no payment has no subject', () => {
    expect(found.get('FUND  funding')).toMatchObject({ reference: null, counterparty: null, subject: null })
  })

  test('a token with the scope balance alone sees nothing of payouts and batches', async () => {
    const document = lines('transactionId reference counterparty { name phone } subject { kind: __typename }')
    const { data, errors } = await ask(document, merchantWithout, { first: 100 })
    expect(errors).toBeUndefined()
    const { nodes } = data.statement.lines
    expect(nodes).toHaveLength(found.size)
    const [own, hidden] = [true, false].map((isOwn) =>
      nodes.filter(({ transactionId }: { transactionId: unknown }) => (transactionId !== null) === isOwn),
    )
    const nothing = { transactionId: null, reference: null, counterparty: null, subject: null }
    expect(hidden).toEqual(hidden.map(() => nothing))
    expect(own).toHaveLength(3)
    for (const { subject } of own) expect(subject).toEqual({ kind: 'Transaction' })
    expect(JSON.stringify(nodes)).not.toContain(phones.paidOut)
    const refused = await ask(lines('subject { ... on Payout { amount } }'), merchantWithout)
    expect(refused.errors[0].extensions).toMatchObject({ code: 'FORBIDDEN', requiredScopes: ['payout'] })
  })
})
