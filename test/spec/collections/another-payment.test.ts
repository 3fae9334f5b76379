import { randomUUID } from 'node:crypto'
import { afterAll, afterEach, describe, expect, test, vi } from 'vitest'
import { limits } from '../../../src/shared/limits.ts'
import { type Provider, providers } from '../../../src/shared/providers.ts'
import { type Alteration, startAlteringProxy } from '../../kit/altered-amounts.ts'
import type { TestMerchant } from '../../kit/app.ts'
import { eventually } from '../../kit/eventually.ts'
import { customer, minute, openFixture, second } from '../../kit/fixture.ts'
import { useBounds } from '../../kit/use-bounds.ts'

// An operator answers about another payment than it was asked about: a proxy before the simulator changes or
// exchanges the records in its answers. Nothing moves until it answers about the payment itself.
useBounds(limits, { depositWaitMs: 300 })
const proxy = await startAlteringProxy()
const fixture = await openFixture({ OPERATORS_URL: proxy.url })
proxy.target = fixture.simulator.url
afterAll(() => proxy.close())

const alarm = 'alarm: an operator answers about another payment'
/** The errors in the log of the service. */
const errors: unknown[] = []
vi.spyOn(fixture.app.services.log, 'error').mockImplementation((line: unknown, words?: unknown) => {
  errors.push(words === alarm ? words : [words, line])
})
afterEach(() => {
  proxy.alter = null
})

type Fields = Record<string, unknown>
const references = ['requestingOrganisationTransactionReference', 'client_reference']
const referenceIn = (record: Fields) => references.map((name) => record[name]).find(Boolean)

/** Replaces every object of an answer, the inner ones first. */
function each(answer: unknown, replace: (fields: Fields) => unknown): unknown {
  return JSON.parse(JSON.stringify(answer), (_name, value: unknown) =>
    typeof value === 'object' && value !== null && !Array.isArray(value) ? replace(value as Fields) : value,
  )
}

/** Each record has the reference of another payment. */
const otherReference: Alteration = (answer) =>
  each(answer, (record) =>
    Object.fromEntries(
      Object.entries(record).map(([name, value]) => [name, references.includes(name) ? randomUUID() : value]),
    ),
  )

/** Each disbursement was paid to another number. */
const otherPayee: Alteration = (answer) =>
  each(answer, ({ mobile, creditParty, ...record }) => ({
    ...record,
    ...(mobile === undefined ? {} : { mobile: '+22370000099' }),
    ...(creditParty === undefined ? {} : { creditParty: [{ key: 'msisdn', value: '+22370000099' }] }),
  }))

/** Every question leads to this record: by a link, by the state of a request, by an id, by a search. */
function onlyThis(record: Fields): Alteration {
  return (answer, path) => {
    if (path.includes('/search')) return { result: [record] }
    return each(answer, (fields) => {
      if (typeof fields['link'] === 'string')
        return {
          link: fields['link'].replace(
            /[^/]+\/[^/]+$/,
            `transactions/${String(record['transactionReference'])}`,
          ),
        }
      if (fields['serverCorrelationId'] !== undefined)
        return { ...fields, status: 'completed', objectReference: record['transactionReference'] }
      return referenceIn(fields) === undefined ? fields : record
    })
  }
}

/** Makes a paid payment. @returns the record that its operator has of it */
async function recordOfPaid(pay: () => Promise<unknown>, merchant: TestMerchant): Promise<Fields> {
  const records = new Map<unknown, Fields>()
  proxy.alter = (answer) =>
    each(answer, (fields) => {
      const isRecord = referenceIn(fields) !== undefined
      if (isRecord) records.set(referenceIn(fields), fields)
      return fields
    })
  const id = await pay()
  await fixture.advance(10 * second)
  await eventually(async () => expect(await fixture.statusOf(merchant, id)).toBe('success'))
  const record = records.get(await fixture.correlationOf(id))
  if (!record) throw new Error('The operator showed no record of it.')
  proxy.alter = null
  return record
}

async function moved(id: unknown): Promise<string[]> {
  const { rows } = await fixture.database.owner.query<{ line: string }>(
    `SELECT format('%s %s', step, amount) AS line FROM ledger_entry WHERE origin = 'transaction:' || $1
     ORDER BY id`,
    [String(id)],
  )
  return rows.map(({ line }) => line)
}

const collect = async (operator: Provider, merchant: TestMerchant, scenario = '00') => {
  const body = { payment_method: operator, customer_phone: customer(scenario) }
  return (await fixture.paid(merchant, body))['transaction_id']
}
const deposit = async (operator: Provider, merchant: TestMerchant) => {
  const { body } = await fixture.deposit(merchant, {
    payment_method: operator,
    customer_phone: customer('00'),
  })
  return body.data.transaction_id as unknown
}

/**
 * Asks the operator several times about a payment: it stays open, nothing moves, and alarms are raised. Any
 * other error ends the wait too, such as that of a settlement which the database refuses.
 */
async function staysOpen(merchant: TestMerchant, id: unknown, status: string, entries: string[]) {
  const before = errors.length
  for (let round = 1; round <= 2; round++) {
    await fixture.advance(20 * second)
    await eventually(async () => {
      const hasEnded = (await fixture.statusOf(merchant, id)) !== status
      expect(hasEnded || errors.length >= before + round).toBe(true)
    })
  }
  expect(await fixture.statusOf(merchant, id)).toBe(status)
  expect(await moved(id)).toEqual(entries)
  expect([...new Set(errors.slice(before))]).toEqual([alarm])
}

/** The operator answers rightly again: the payment ends once. */
async function endsAs(merchant: TestMerchant, id: unknown, status: string, entries: string[]) {
  proxy.alter = null
  await fixture.advance(2 * minute)
  await eventually(async () => expect(await fixture.statusOf(merchant, id)).toBe(status))
  await fixture.advance(10 * minute)
  expect(await fixture.statusOf(merchant, id)).toBe(status)
  expect(await moved(id)).toEqual(entries)
}

describe.each(providers)('%s answers', (operator) => {
  test('about a collection with another reference: it stays open, and is paid once', async () => {
    const merchant = await fixture.merchant()
    proxy.alter = otherReference
    const id = await collect(operator, merchant)
    await staysOpen(merchant, id, 'pending', [])
    await endsAs(merchant, id, 'success', ['credit 5000'])
    expect(await fixture.available(merchant)).toBe(5_000)
  })

  test('about a declined collection with a paid one: it is not credited, and fails', async () => {
    const merchant = await fixture.merchant()
    proxy.alter = onlyThis(await recordOfPaid(() => collect(operator, merchant), merchant))
    const id = await collect(operator, merchant, '01')
    await staysOpen(merchant, id, 'pending', [])
    expect(await fixture.available(merchant)).toBe(5_000)
    await endsAs(merchant, id, 'failed', [])
  })

  test.each([
    ['with another reference', () => otherReference],
    ['with another payee', () => otherPayee],
    ['with another deposit', (record: Fields) => onlyThis(record)],
  ])('about a deposit %s: its money stays reserved, and leaves once', async (_words, alteration) => {
    const merchant = await fixture.merchant()
    await fixture.fund(merchant, 10_000)
    proxy.alter = alteration(await recordOfPaid(() => deposit(operator, merchant), merchant))
    const id = await deposit(operator, merchant)
    await staysOpen(merchant, id, 'processing', ['reserve 1000'])
    await endsAs(merchant, id, 'success', ['reserve 1000', 'post 1000'])
    expect(await fixture.available(merchant)).toBe(8_000)
  })
})
