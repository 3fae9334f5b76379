import type { Caps } from '../../identity/caps.ts'
import { builder } from '../../graphql/builder.ts'
import { inputOf } from '../../graphql/input.ts'
import { PaymentMethod } from '../../graphql/enums.ts'
import { refusalType } from '../../graphql/errors.ts'
import { capsInput } from '../../identity/caps.ts'

const description = {
  maxPerPayment: 'Whole XOF of one deposit, refund or payout.',
  maxPerDay:
    'Whole XOF of deposits, refunds and payouts that are asked for on one day (UTC). What fails or is ' +
    'cancelled later counts too, and a scheduled payout on the day when it is made.',
  paymentMethods: 'The operators that it collects, pays and refunds by.',
  addresses: "Addresses and CIDR ranges that it is used from, on top of the account's whitelist.",
} satisfies Record<keyof Caps, string>

/** What a key or a token is limited to. */
export const KeyLimits = builder.objectRef<Caps>('KeyLimits').implement({
  description: 'What an API key or a token is limited to; what is null is not limited.',
  fields: (t) => ({
    maxPerPayment: t.expose('maxPerPayment', {
      type: 'Amount',
      nullable: true,
      description: description.maxPerPayment,
    }),
    maxPerDay: t.expose('maxPerDay', { type: 'Amount', nullable: true, description: description.maxPerDay }),
    paymentMethods: t.field({
      type: [PaymentMethod],
      nullable: true,
      description: description.paymentMethods,
      resolve: ({ paymentMethods }) => paymentMethods && [...paymentMethods],
    }),
    addresses: t.stringList({
      nullable: true,
      description: description.addresses,
      resolve: ({ addresses }) => addresses && [...addresses],
    }),
  }),
})

/** The same as a wish. */
export const KeyLimitsInput = inputOf('KeyLimitsInput', capsInput, {
  description: 'What an API key or a token is to be limited to; what is left out is not limited.',
  fields: {
    maxPerPayment: description.maxPerPayment,
    maxPerDay: description.maxPerDay,
    paymentMethods: description.paymentMethods,
    addresses: `${description.addresses} 20 at most.`,
  },
})

builder.objectField(refusalType('LIMIT_EXCEEDED'), 'limit', (t) =>
  t.string({
    nullable: true,
    description: 'Which of the `limits` it is: `maxPerPayment`, `maxPerDay` or `paymentMethods`.',
    resolve: ({ detail }) => detail.limit ?? null,
  }),
)
