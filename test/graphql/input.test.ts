import { buildSchema, type GraphQLInputObjectType, isInputObjectType } from 'graphql'
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { inputOf } from '../../src/graphql/input.ts'
import { amount } from '../../src/shared/input.ts'

const published = buildSchema(readFileSync(new URL('../../schema.graphql', import.meta.url), 'utf8'))
const fieldsOf = (name: string) => {
  const type = published.getType(name)
  expect(isInputObjectType(type)).toBe(true)
  return Object.fromEntries(
    Object.values((type as GraphQLInputObjectType).getFields()).map((field) => [
      field.name,
      String(field.type),
    ]),
  )
}

test('a field has the type, and is as required, as its verb reads it', () => {
  expect(fieldsOf('CollectPaymentInput')).toEqual({
    amount: 'Amount!',
    cancelUrl: 'String',
    currency: 'Currency',
    customerEmail: 'String',
    customerPhone: 'String!',
    description: 'String',
    paymentMethod: 'PaymentMethod!',
    reference: 'String',
    returnUrl: 'String',
  })
  expect(fieldsOf('CreatePayoutInput')).toMatchObject({
    beneficiaryId: 'ID',
    destinationAccount: 'String',
    paymentMethod: 'PayoutMethod',
    scheduledAt: 'DateTime',
  })
  expect(fieldsOf('CreateApiKeyInput')).toMatchObject({ limits: 'KeyLimitsInput', scopes: '[Scope!]!' })
  expect(fieldsOf('RecipientInput')).not.toHaveProperty('currency')
})

test('a description of a field that the input lacks stops the start', () => {
  const input = z.object({ amount: amount({ min: 1, max: 2 }) })
  expect(() => inputOf('SomeInput', input, { description: '', fields: { title: 'A title.' } })).toThrow(
    'SomeInput has no title',
  )
})
