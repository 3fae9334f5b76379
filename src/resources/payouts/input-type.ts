import { inputOf, replacedBy } from '../../graphql/input.ts'
import { referenceLengthMax } from '../../shared/input.ts'
import { limits } from '../../shared/limits.ts'
import { grouped } from '../../shared/money.ts'
import { createPayoutInput, mobileAccountInput, payoutDestinationInput } from './create.ts'

// An input is made after the inputs that it contains.

inputOf('PayoutMobileAccount', mobileAccountInput, {
  description: 'The mobile-money account that a payout pays.',
  fields: {
    phone: 'The mobile number in Mali, for example +223 70 00 00 00.',
    paymentMethod: 'The operator of the number.',
  },
})

inputOf('PayoutDestination', payoutDestinationInput, {
  description: 'The destination of a payout: a mobile-money account, or that of a beneficiary.',
  isOneOf: true,
  fields: {
    mobile: 'The mobile-money account to pay.',
    beneficiaryId: 'The beneficiary to pay: its global id, or its id in REST.',
  },
})

export const CreatePayoutInput = inputOf('CreatePayoutInput', createPayoutInput, {
  description: 'A payout to a phone number or to a saved beneficiary. Same as POST /payouts in REST.',
  fields: {
    amount:
      `The amount in whole XOF, ${grouped(limits.disburseAmountMinXof)} to ` +
      `${grouped(limits.payoutAmountMaxXof)}.`,
    destination: 'The account to pay, or the beneficiary.',
    paymentMethod: 'The operator. BankTransfer is not supported yet.',
    destinationPhone: 'The mobile number in Mali to pay.',
    destinationAccount: 'A bank account. It is not supported yet and is refused.',
    beneficiaryId: 'The beneficiary to pay: its global id, or its id in REST.',
    reference:
      `Your own reference, 1 to ${referenceLengthMax} characters, unique among the payouts of the ` +
      'merchant. Default: the service makes one.',
    scheduledAt:
      'The moment to send the payout, at most 366 days ahead. The money is reserved at that ' +
      'moment. Default: now.',
    currency: 'The currency: only `XOF`.',
  },
  deprecated: {
    paymentMethod: replacedBy('destination'),
    destinationPhone: replacedBy('destination'),
    beneficiaryId: replacedBy('destination'),
  },
})
