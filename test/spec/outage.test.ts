import { expect, test } from 'vitest'
import { eventually } from '../kit/eventually.ts'
import { customer, openStage, second } from '../kit/stage.ts'

/** Its circuits are tried again soon; apart from that the limits are those of a real operator. */
const stage = await openStage({
  OPERATOR_C_BREAKER_OPEN_MS: '500',
  OPERATOR_C_MAX_INTERACTIVE: '8',
  OPERATOR_C_MAX_BACKGROUND: '4',
  OPERATOR_C_MAX_QUERIES: '8',
  OPERATOR_C_MAX_QUEUE: '32',
})
const shop = await stage.merchant()
const pay = (more: object = {}) => stage.pay(shop, { payment_method: 'OperatorC', ...more })

async function collectOf(operator: string): Promise<string> {
  const { body } = await stage.rest('GET', '/status')
  const row = body['data'].operators.find(
    (each: Record<string, string>) => each['payment_method'] === operator,
  )
  return row.collect as string
}

/** Nothing of an earlier send is still on its way: what takes half a minute, now. */
async function letFencesFall(): Promise<void> {
  await stage.database.owner.query(
    `UPDATE operator_request SET fence_until = now() - interval '1 s', query_after = NULL`,
  )
}

test('an operator comes back: a probe closes its circuit, and what was held goes on, each once', async () => {
  await stage.paid(shop, { payment_method: 'OperatorC' })
  await stage.outage('OperatorC', '5xx')
  const taken = await Promise.all(Array.from({ length: 20 }, () => pay({ customer_phone: customer('00') })))
  const pending = taken.filter(({ status }) => status === 202).map(({ body }) => body['data'])
  const refused = taken.filter(({ status }) => status === 400)
  expect(pending.length + refused.length).toBe(20)
  expect(pending.length).toBeGreaterThanOrEqual(5)
  const sent = await stage.seen('/merchantpay')
  expect(sent.length).toBe(1 + 5)

  // Known to be down: nothing is recorded, and the reference stays free.
  const before = await stage.rowCounts()
  expect((await pay({ reference: 'again' })).status).toBe(400)
  expect(await stage.rowCounts()).toEqual(before)
  expect(await collectOf('OperatorC')).toBe('down')

  await stage.outage('OperatorC', 'none')
  await eventually(async () => expect(await collectOf('OperatorC')).toBe('operational'))
  await letFencesFall()
  await stage.advance(5 * second)
  await eventually(async () => {
    await letFencesFall()
    for (const { transaction_id: id } of pending) expect(await stage.statusOf(shop, id)).toBe('success')
  }, 15_000)
  for (const { transaction_id: id } of pending) expect(await stage.creditsOf(id)).toEqual([5_000])
  expect(await stage.available(shop)).toBe(pending.length * 5_000)
  expect((await pay({ reference: 'again' })).status).toBe(202)
}, 30_000)
