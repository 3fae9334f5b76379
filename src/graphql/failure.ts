import { type FailureReason, failureReasons } from '../operators/failure-reasons.ts'
import { builder } from './builder.ts'
import { nameEnum, wordEnum } from './enums.ts'

const FailureParty = wordEnum(
  'FailureParty',
  {
    customer: 'The customer or payee, for example by adding money to the account.',
    merchant: 'The merchant, for example by correcting the number.',
    operator: 'The mobile-money operator.',
    platform: 'The people who run this service.',
  },
  'The party that can solve a failure.',
)
const RetryAdvice = wordEnum(
  'RetryAdvice',
  {
    later: 'A new try may succeed later.',
    no: 'A new try with the same data would fail again.',
    now: 'A new try may succeed at once.',
  },
  'Advice when to try a failed payment again.',
)

/** The codes of failures: the same words in REST and in the events. */
export const FailureReasonEnum = nameEnum(
  'FailureReason',
  Object.fromEntries(
    Object.entries(failureReasons).map(([reason, { messageEn }]) => [reason, messageEn]),
  ) as Record<FailureReason, string>,
  'The reason why a payment failed.',
)

/**
 * The GraphQL type of the reason of a failed payment, with explanations for the merchant in French and
 * English.
 */
export const Failure = builder.objectRef<FailureReason>('Failure').implement({
  description: 'The reason why a payment failed, and the advice what to do.',
  fields: (t) => ({
    reason: t.field({
      type: FailureReasonEnum,
      description: 'The code of the failure, for programs: `PAYER_INSUFFICIENT_FUNDS`.',
      resolve: (reason) => reason,
    }),
    who: t.field({
      type: FailureParty,
      description: 'The party that can solve the problem.',
      resolve: (reason) => failureReasons[reason].who,
    }),
    again: t.field({
      type: RetryAdvice,
      description: 'The advice when to try again.',
      resolve: (reason) => failureReasons[reason].again,
    }),
    messageFr: t.string({
      description: 'An explanation in French, for the merchant.',
      resolve: (reason) => failureReasons[reason].messageFr,
    }),
    messageEn: t.string({
      description: 'An explanation in English, for the merchant.',
      resolve: (reason) => failureReasons[reason].messageEn,
    }),
  }),
})
