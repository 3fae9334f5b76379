import { getNullableType, isInputObjectType, isNonNullType } from 'graphql'
import type { Field } from './hostile-inputs.ts'

/** Values that the service accepts, by the names of their fields. Each call is made with them once. */
export const plain: Record<string, unknown> = {
  amount: 5_000,
  customerPhone: '70000001',
  paymentMethod: 'OperatorA',
  reference: 'order-1',
  by: 'PT1S',
  name: 'Awa',
  email: 'plain@shop.test',
  role: 'finance',
  scopes: ['balance'],
  password: 'le soleil de Bamako',
  current: 'le soleil de Bamako',
  token: 'A'.repeat(43),
  code: '123456',
  digest: 'a'.repeat(64),
  reason: 'Inconnu',
  account: '70000001',
  recipients: [{ name: 'Awa', account: '70000001', amount: 1_000, paymentMethod: 'OperatorA' }],
  title: 'Sac de riz',
  url: 'http://127.0.0.1:1/plain',
  events: ['payment_received'],
  from: '2026-01-01T00:00:00Z',
  id: 1,
}

/** Values of optional fields without which a call would be refused, by the names of calls. */
export const optional: Record<string, Record<string, unknown>> = {
  createBatch: { recipients: plain['recipients'] },
  createPayout: { destinationPhone: '70000001', paymentMethod: 'OperatorA' },
  payout: { id: btoa('Payout:1') },
  replayEvents: { ids: ['evt_1'] },
  transaction: { reference: 'order-1' },
  updateBeneficiary: { name: 'Awa Traoré' },
  updatePaymentLink: { title: 'Mil' },
  updateSettings: { businessName: 'Chez Awa' },
  updateWebhook: { url: 'http://127.0.0.1:1/other' },
}

/** Returns the fields of a plain call: those that it requires, and its optional ones. */
export function plainFields(call: string, given: readonly Field[]): Record<string, unknown> {
  const more = optional[call] ?? {}
  return Object.fromEntries(
    given.flatMap(({ name, type }) => {
      const bare = getNullableType(type)
      if (isInputObjectType(bare) && isNonNullType(type))
        return [[name, plainFields(call, Object.values(bare.getFields()))]]
      if (name in more) return [[name, more[name]]]
      return isNonNullType(type) ? [[name, plain[name]]] : []
    }),
  )
}
