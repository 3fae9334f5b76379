import { builder } from '../../graphql/builder.ts'
import { Currency, PaymentMethod } from '../../graphql/enums.ts'
import type { FieldProblem } from '../../shared/errors.ts'
import { limits } from '../../shared/limits.ts'
import { currency } from '../../shared/money.ts'
import type { Duplicate } from './duplicates.ts'
import type { BatchPreview, OperatorShare } from './preview.ts'

export const InputWarning = builder.objectRef<FieldProblem>('InputWarning').implement({
  description: 'A possible mistake in one field of accepted input.',
  fields: (t) => ({
    field: t.exposeString('field', {
      description: 'The path of the field, for example `recipients[3].account`.',
    }),
    message: t.exposeString('message', {
      description: 'An explanation of the possible mistake, for people.',
    }),
  }),
})

export const DuplicateAccount = builder.objectRef<Duplicate>('DuplicateAccount').implement({
  description: 'An account that occurs more than once in a batch.',
  fields: (t) => ({
    account: t.exposeString('account', { description: 'The phone number in E.164 format: +22370000000.' }),
    recipientCount: t.exposeInt('recipientCount', { description: 'Number of recipients with this account.' }),
    totalAmount: t.expose('totalAmount', {
      type: 'Amount',
      description: 'Sum of their amounts, in whole XOF.',
    }),
  }),
})

const Share = builder.objectRef<OperatorShare>('BatchOperatorShare').implement({
  description: 'The part of a batch that one operator would pay.',
  fields: (t) => ({
    paymentMethod: t.expose('paymentMethod', { type: PaymentMethod, description: 'The operator.' }),
    recipientCount: t.exposeInt('recipientCount', {
      description: 'Number of recipients that this operator would pay.',
    }),
    totalAmount: t.expose('totalAmount', {
      type: 'Amount',
      description: 'Sum of their amounts, in whole XOF.',
    }),
  }),
})

export const BatchForecast = builder.objectRef<BatchPreview>('BatchForecast').implement({
  description: 'The result of a dry run: the effect that a batch would have. Nothing was written.',
  fields: (t) => ({
    recipientCount: t.exposeInt('recipientCount', { description: 'Number of recipients in the batch.' }),
    totalAmount: t.expose('totalAmount', {
      type: 'Amount',
      description: 'Sum of the amounts of all recipients, in whole XOF.',
    }),
    currency: t.field({
      type: Currency,
      description: 'The currency of the amounts: always `XOF`.',
      resolve: () => currency,
    }),
    fees: t.expose('fees', { type: 'Amount', description: 'Fees on top of the total, in whole XOF.' }),
    availableNow: t.expose('availableNow', {
      type: 'Amount',
      description: 'Available amount before the batch, in whole XOF.',
    }),
    availableAfter: t.expose('availableAfter', {
      type: 'Amount',
      description:
        'Available amount after the batch is reserved, in whole XOF. Negative when the balance ' +
        'is too small.',
    }),
    approvalRequired: t.exposeBoolean('approvalRequired', {
      description: 'True when members must approve the batch before it is paid.',
    }),
    operators: t.field({
      type: [Share],
      description: 'The share of each operator in the batch.',
      resolve: ({ operators }) => [...operators],
    }),
    duplicates: t.field({
      type: [DuplicateAccount],
      description:
        'Accounts that occur more than once, at most the first 100. Each occurrence would be paid.',
      resolve: ({ duplicates }) => [...duplicates],
      extensions: { lengthMax: limits.batchDuplicatesShown },
    }),
    unknownNumbers: t.stringList({
      description: 'Accounts that their operator does not know, among the accounts that were checked.',
      resolve: ({ unknownNumbers }) => [...unknownNumbers],
    }),
    numbersChecked: t.exposeInt('numbersChecked', {
      description:
        'Number of accounts that operators confirmed or denied. The service checks at most 100 accounts ' +
        'at each operator, and stops after three seconds.',
    }),
    operatorsWithoutLookup: t.field({
      type: [PaymentMethod],
      description: 'Operators that cannot say whether an account exists.',
      resolve: ({ operatorsWithoutLookup }) => [...operatorsWithoutLookup],
    }),
    operatorsDown: t.field({
      type: [PaymentMethod],
      description:
        'Operators that cannot be used now. Their recipients would wait until the operator is back.',
      resolve: ({ operatorsDown }) => [...operatorsDown],
    }),
  }),
})
