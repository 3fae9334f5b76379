import { builder } from '../../graphql/builder.ts'
import { PaymentMethod } from '../../graphql/enums.ts'
import type { FieldProblem } from '../../shared/errors.ts'
import { limits } from '../../shared/limits.ts'
import { currency } from '../../shared/money.ts'
import type { Duplicate } from './duplicates.ts'
import type { Forecast, OperatorShare } from './forecast.ts'

export const InputWarning = builder.objectRef<FieldProblem>('InputWarning').implement({
  description: 'What was taken of one field, and may be a mistake.',
  fields: (t) => ({
    field: t.exposeString('field', { description: 'Path of the field, as in `recipients[3].account`.' }),
    message: t.exposeString('message'),
  }),
})

export const DuplicateAccount = builder.objectRef<Duplicate>('DuplicateAccount').implement({
  description: 'An account that a batch has more than once.',
  fields: (t) => ({
    account: t.exposeString('account', { description: 'E.164.' }),
    recipientCount: t.exposeInt('recipientCount', { description: 'How often.' }),
    totalAmount: t.expose('totalAmount', { type: 'Amount', description: 'Whole XOF, of all of them.' }),
  }),
})

const Share = builder.objectRef<OperatorShare>('BatchOperatorShare').implement({
  description: 'What one operator would pay of a batch.',
  fields: (t) => ({
    paymentMethod: t.expose('paymentMethod', { type: PaymentMethod }),
    recipientCount: t.exposeInt('recipientCount'),
    totalAmount: t.expose('totalAmount', { type: 'Amount', description: 'Whole XOF.' }),
  }),
})

export const BatchForecast = builder.objectRef<Forecast>('BatchForecast').implement({
  description: 'What a batch would come to. Nothing of it was written.',
  fields: (t) => ({
    recipientCount: t.exposeInt('recipientCount'),
    totalAmount: t.expose('totalAmount', { type: 'Amount', description: 'Whole XOF, of all of them.' }),
    currency: t.string({ resolve: () => currency }),
    fees: t.expose('fees', { type: 'Amount', description: 'Whole XOF beside that.' }),
    availableNow: t.expose('availableNow', { type: 'Amount', description: 'Whole XOF before it.' }),
    availableAfter: t.expose('availableAfter', {
      type: 'Amount',
      description: 'Whole XOF once it is set aside; below 0 by what is short.',
    }),
    approvalRequired: t.exposeBoolean('approvalRequired', {
      description: 'Whether people decide before anybody is paid.',
    }),
    operators: t.field({ type: [Share], resolve: ({ operators }) => [...operators] }),
    duplicates: t.field({
      type: [DuplicateAccount],
      description: 'Accounts that come more than once, all of which would be paid: the first 100.',
      resolve: ({ duplicates }) => [...duplicates],
      extensions: { lengthMax: limits.batchDuplicatesShown },
    }),
    unknownNumbers: t.stringList({
      description: 'Accounts that their operator does not know, of those that it was asked about.',
      resolve: ({ unknownNumbers }) => [...unknownNumbers],
    }),
    numbersChecked: t.exposeInt('numbersChecked', {
      description:
        'About how many accounts operators were asked, and answered: 100 each at most, for seconds.',
    }),
    operatorsWithoutLookup: t.field({
      type: [PaymentMethod],
      description: 'Those that cannot be asked about accounts.',
      resolve: ({ operatorsWithoutLookup }) => [...operatorsWithoutLookup],
    }),
    operatorsDown: t.field({
      type: [PaymentMethod],
      description: 'Those that would be sent nothing now; their recipients wait until they are back.',
      resolve: ({ operatorsDown }) => [...operatorsDown],
    }),
  }),
})
