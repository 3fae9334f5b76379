import { type FailureReason, failureReasons } from '../operators/failure-reasons.ts'
import { builder } from './builder.ts'
import { wordEnum } from './enums.ts'

const FailureParty = wordEnum(
  'FailureParty',
  ['customer', 'merchant', 'platform', 'operator'],
  'Who can do something about it.',
)
const RetryAdvice = wordEnum('RetryAdvice', ['now', 'later', 'no'], 'When another try makes sense.')

/** Why something was not paid, with words for the person who asks. */
export const Failure = builder.objectRef<FailureReason>('Failure').implement({
  description: 'Why something was not paid, and what can be done.',
  fields: (t) => ({
    reason: t.string({
      description: 'What programs branch on.',
      resolve: (reason) => reason,
    }),
    who: t.field({ type: FailureParty, resolve: (reason) => failureReasons[reason].who }),
    again: t.field({ type: RetryAdvice, resolve: (reason) => failureReasons[reason].again }),
    messageFr: t.string({ resolve: (reason) => failureReasons[reason].messageFr }),
    messageEn: t.string({ resolve: (reason) => failureReasons[reason].messageEn }),
  }),
})
