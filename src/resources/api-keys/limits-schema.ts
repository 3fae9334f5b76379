import type { KeyLimitSet } from '../../identity/keys/key-limits.ts'
import { builder } from '../../graphql/builder.ts'
import { inputOf } from '../../graphql/input.ts'
import { PaymentMethod } from '../../graphql/enums.ts'
import { refusalType } from '../../graphql/errors.ts'
import { keyLimitsInput } from '../../identity/keys/key-limits.ts'

const description = {
  maxPerPayment: 'Highest amount of one deposit, refund or payout, in whole XOF.',
  maxPerDay:
    'Highest total per UTC day of deposits, refunds and payouts, in whole XOF. Failed and cancelled ' +
    'payments count, and a scheduled payout counts on the day when it is created.',
  paymentMethods: 'The only operators that can be used.',
  addresses:
    'IP addresses and CIDR ranges from which it can be used. The whitelist of the account applies too.',
} satisfies Record<keyof KeyLimitSet, string>

/** The limits of an API key or token, as the API returns them. */
export const KeyLimits = builder.objectRef<KeyLimitSet>('KeyLimits').implement({
  description: 'Limits of an API key or token. A limit that is null does not apply.',
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

/** The same limits as input. */
inputOf('KeyLimitsInput', keyLimitsInput, {
  description: 'Limits for an API key or token. A limit that is left out does not apply.',
  fields: {
    maxPerPayment: description.maxPerPayment,
    maxPerDay: description.maxPerDay,
    paymentMethods: description.paymentMethods,
    addresses: `${description.addresses} At most 20.`,
  },
})

/** The values are the fields of `KeyLimits`, which REST writes in its own words. */
const KeyLimit = builder.enumType('KeyLimit', {
  description: 'A limit of an API key or token that can refuse a payment.',
  values: {
    MAX_PER_DAY: { value: 'maxPerDay', description: description.maxPerDay },
    MAX_PER_PAYMENT: { value: 'maxPerPayment', description: description.maxPerPayment },
    PAYMENT_METHODS: { value: 'paymentMethods', description: description.paymentMethods },
  },
})

builder.objectField(refusalType('LIMIT_EXCEEDED'), 'limit', (t) =>
  t.field({
    type: KeyLimit,
    nullable: true,
    description: 'The limit that refused the payment.',
    resolve: ({ detail }) => (detail.limit ?? null) as typeof KeyLimit.$inferType | null,
  }),
)
