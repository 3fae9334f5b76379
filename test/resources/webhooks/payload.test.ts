import { expect, test } from 'vitest'
import { eventIdText, webhookBody } from '../../../src/resources/webhooks/payload.ts'

const occurredAt = new Date('2026-01-31T10:00:00.000Z')

test('an event of a payment has the documented fields, in one order, and no other field of the log', () => {
  const data = { status: 'success', amount: 5_000, reference: 'R-1', transaction_id: 7, late: false }
  const sent = { id: eventIdText(12n), type: 'payment_received', data, occurredAt } as const
  expect(webhookBody({ ...sent, merchantId: 3, position: 41n }).toString()).toBe(
    '{"id":"evt_12","event":"payment_received","data":{"transaction_id":7,"reference":"R-1","amount":5000,' +
      '"late":false},"timestamp":"2026-01-31T10:00:00.000Z","merchant_id":3,"sequence":41}',
  )
})

test('a sample has no position in the log', () => {
  const data = { webhook_id: 4, message: 'Bonjour' }
  const body = webhookBody({
    id: 'evt_test_9',
    type: 'test',
    data,
    occurredAt,
    merchantId: 3,
    position: null,
  })
  expect(JSON.parse(body.toString())).toMatchObject({ event: 'test', data, sequence: null })
})
