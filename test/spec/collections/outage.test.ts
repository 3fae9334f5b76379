import { expect, test } from 'vitest'
import { eventually } from '../../kit/eventually.ts'
import { customer, openFixture, second } from '../../kit/fixture.ts'

/** Its circuits are tried again soon; otherwise the limits are those of a real operator. */
const fixture = await openFixture({
  OPERATOR_C_BREAKER_OPEN_MS: '500',
  OPERATOR_C_MAX_INTERACTIVE: '8',
  OPERATOR_C_MAX_BACKGROUND: '4',
  OPERATOR_C_MAX_QUERIES: '8',
  OPERATOR_C_MAX_QUEUE: '32',
})
const shop = await fixture.merchant()
const pay = (more: object = {}) => fixture.pay(shop, { payment_method: 'OperatorC', ...more })

async function collectOf(operator: string): Promise<string> {
  const { body } = await fixture.rest('GET', '/status')
  const row = body['data'].operators.find(
    (each: Record<string, string>) => each['payment_method'] === operator,
  )
  return row.collect as string
}

/** Ends the half minute in which an earlier send may still arrive. */
async function letFencesFall(): Promise<void> {
  await fixture.database.owner.query(
    `UPDATE operator_request SET fence_until = now() - interval '1 s', query_after = NULL`,
  )
}

test('an operator comes back: a probe closes its circuit, and its payments go on, each once', async () => {
  await fixture.paid(shop, { payment_method: 'OperatorC' })
  await fixture.outage('OperatorC', '5xx')
  const taken = await Promise.all(Array.from({ length: 20 }, () => pay({ customer_phone: customer('00') })))
  const pending = taken.filter(({ status }) => status === 202).map(({ body }) => body['data'])
  const refused = taken.filter(({ status }) => status === 400)
  expect(pending.length + refused.length).toBe(20)
  expect(pending.length).toBeGreaterThanOrEqual(5)
  const sent = await fixture.seen('/merchantpay')
  expect(sent.length).toBe(1 + 5)

  // Known to be down: nothing is recorded, and the reference stays free.
  const before = await fixture.rowCounts()
  expect((await pay({ reference: 'again' })).status).toBe(400)
  expect(await fixture.rowCounts()).toEqual(before)
  expect(await collectOf('OperatorC')).toBe('down')

  await fixture.outage('OperatorC', 'none')
  await eventually(async () => expect(await collectOf('OperatorC')).toBe('operational'))
  await letFencesFall()
  await fixture.advance(5 * second)
  await eventually(async () => {
    await letFencesFall()
    for (const { transaction_id: id } of pending) expect(await fixture.statusOf(shop, id)).toBe('success')
  })
  for (const { transaction_id: id } of pending) expect(await fixture.creditsOf(id)).toEqual([5_000])
  expect(await fixture.available(shop)).toBe(pending.length * 5_000)
  expect((await pay({ reference: 'again' })).status).toBe(202)
})
