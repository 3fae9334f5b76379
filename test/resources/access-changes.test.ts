import { afterEach, describe, expect, test } from 'vitest'
import type pg from 'pg'
import { accessPace } from '../../src/limits/request-limits.ts'
import { borrow } from '../kit/client.ts'
import { openFixture } from '../kit/fixture.ts'
import type { TestMerchant } from '../kit/app.ts'

// A merchant that changes the access to its account delays its own payments, and no other merchant's.

const fixture = await openFixture()
const { owner } = fixture.database
const paths = ['/pay', '/deposit', '/payouts'] as const
let accessSession: pg.PoolClient | null = null

/** Holds the lock of a session that changes the access, until `letGo`. */
async function lockAccess({ merchantId }: TestMerchant): Promise<pg.PoolClient> {
  accessSession = await borrow(owner)
  await accessSession.query('BEGIN')
  await accessSession.query('SELECT pg_advisory_xact_lock(72707373, $1)', [merchantId])
  return accessSession
}
async function unlockAccess(): Promise<void> {
  await accessSession?.query('COMMIT')
  accessSession?.release()
  accessSession = null
}
afterEach(unlockAccess)

async function funded(): Promise<TestMerchant> {
  const merchant = await fixture.merchant()
  await fixture.fund(merchant, 1_000_000)
  return merchant
}
const ask = (path: (typeof paths)[number], { token }: TestMerchant) => {
  const phone = '70000001'
  const to = path === '/payouts' ? { destination_phone: phone } : { customer_phone: phone }
  return fixture.rest('POST', path, { token, body: { amount: 1_000, payment_method: 'OperatorA', ...to } })
}
const times = <T>(count: number, act: () => Promise<T>) => Promise.all(Array.from({ length: count }, act))
const statuses = async (answers: Promise<{ status: number }[]>) => (await answers).map(({ status }) => status)

describe.each(paths)('while the access to one merchant is being changed, %s', (path) => {
  const taken = { '/pay': 202, '/deposit': 200, '/payouts': 201 }[path]

  test('of another merchant is answered, however many requests of the first one wait', async () => {
    const [changing, other] = [await funded(), await funded()]
    await lockAccess(changing)
    const waitingAnswers = times(5, () => ask(path, changing))
    await fixture.database.untilWaiting(1)
    expect(await statuses(times(5, () => ask(path, other)))).toEqual(Array(5).fill(taken))
    await unlockAccess()
    await waitingAnswers
    expect((await ask(path, changing)).status).toBe(taken)
  })

  test.each([
    ['as before, where nothing was changed', 'SELECT $1::int', taken],
    ['with the access that is left', 'UPDATE api_key SET version = version + 1 WHERE merchant_id = $1', 401],
  ])('of that merchant waits, and is then decided %s', async (_how, change, status) => {
    const changing = await funded()
    const session = await lockAccess(changing)
    const waitingAnswers = times(5, () => ask(path, changing))
    await fixture.database.untilWaiting(1)
    await session.query(change, [changing.merchantId])
    await unlockAccess()
    expect(await statuses(waitingAnswers)).toEqual(Array(5).fill(status))
  })
})

test("a merchant may change its access once a second on average, and a minute's worth at once", async () => {
  const { token } = await fixture.merchant()
  const document = `mutation { createApiKey(input: { name: "x", scopes: [PAY] }) { __typename
    ... on Refusal { code retryAfter } } }`
  const answers: { __typename: string; code?: string; retryAfter?: number }[] = []
  for (let n = 0; n < accessPace.max + 2; n += 1) {
    const { body } = await fixture.graphql(document, {}, token)
    answers.push(body['data']?.createApiKey ?? body['errors'][0].extensions)
  }
  expect(answers.slice(0, accessPace.max).every(({ code }) => code === undefined)).toBe(true)
  expect(answers.slice(accessPace.max)).toMatchObject([{ code: 'RATE_LIMITED' }, { code: 'RATE_LIMITED' }])
  const other = await fixture.merchant()
  expect((await fixture.graphql(document, {}, other.token)).body['data'].createApiKey.code).toBeUndefined()
})
