import { expect, test } from 'vitest'
import type { TestMerchant } from '../../kit/app.ts'
import { operatorCalls } from '../../kit/operator-calls.ts'
import { bulkOn, row } from '../../kit/bulk.ts'
import { eventually } from '../../kit/eventually.ts'
import { customer, openFixture } from '../../kit/fixture.ts'

// Counted by the operator: the calls between the request of a checkout and its own call.

/** So few that a busy machine records a request before the operator got many calls of others. */
const perSecond = 4
const rps = String(perSecond)
/**
 * Choice: the calls that may pass while the requests are recorded; the number of recipients does not change
 * it.
 */
const overtakenMax = 10

const fixture = await openFixture({ OPERATOR_A_RPS: rps, OPERATOR_D_RPS: rps })
const { shop, draft, process, cancel, summary } = bulkOn(fixture)

type Operator = 'OperatorA' | 'OperatorD'

async function callsOf(wanted: Operator) {
  const all = await operatorCalls(fixture.simulator.url, fixture.controlToken)
  return all.filter(({ operator }) => operator === wanted)
}

/**
 * All merchants pay at once. @returns how many other calls the operator got before the last of their calls
 */
async function overtaken(operator: Operator, by: readonly TestMerchant[]): Promise<number> {
  const before = (await callsOf(operator)).length
  const phones = await Promise.all(
    by.map(async (merchant) => {
      const body = { customer_phone: customer('00'), payment_method: operator }
      expect((await fixture.pay(merchant, body)).status).toBe(202)
      return body.customer_phone
    }),
  )
  const calls = (await callsOf(operator)).slice(before)
  const isOwn = calls.map(({ op, msisdn }) => op === 'collect' && phones.includes(msisdn))
  expect(isOwn.filter(Boolean)).toHaveLength(by.length)
  return isOwn.slice(0, isOwn.lastIndexOf(true)).filter((own) => !own).length
}

test.each([
  { operator: 'OperatorA', batches: 1, merchants: 1, size: 1_000 },
  { operator: 'OperatorD', batches: 20, merchants: 4, size: 50 },
] as const)(
  'beside $batches batches of $size on the same operator a checkout is among its next calls',
  async ({ operator, batches, merchants, size }) => {
    const shops = await Promise.all(Array.from({ length: merchants }, () => shop(10_000_000)))
    const someone = (n: number) => shops[n % merchants] as TestMerchant
    const people = () =>
      Array.from({ length: size }, () => row('00', { account: customer('00'), payment_method: operator }))
    const made = await Promise.all(
      Array.from({ length: batches }, async (_, n) => ({
        merchant: someone(n),
        id: await draft(someone(n), people()),
      })),
    )
    await Promise.all(made.map(({ merchant, id }) => process(merchant, id)))
    // Until the rate of background calls is used up, and all other recipients wait.
    await eventually(async () => expect((await callsOf(operator)).length).toBeGreaterThan(perSecond))
    for (let n = 0; n < 3; n += 1)
      expect(await overtaken(operator, [someone(n)])).toBeLessThanOrEqual(overtakenMax)
    // More checkouts than the reserved rate: these wait as well, but in front of all recipients.
    const load = Array.from({ length: perSecond + 10 }, (_, n) => someone(n))
    expect(await overtaken(operator, load)).toBeLessThanOrEqual(overtakenMax)
    await Promise.all(
      made.map(async ({ merchant, id }) => {
        expect(await summary(merchant, id)).toMatchObject({ status: 'processing' })
        await cancel(merchant, id)
      }),
    )
  },
)
