import { expect, test } from 'vitest'
import { checkoutRefusal } from '../../src/operators/checkout-session-errors.ts'
import { failureReasons } from '../../src/operators/failure-reasons.ts'
import { gsmaRefusal } from '../../src/operators/gsma-mm-errors.ts'

const kinds = ['collect', 'disburse', 'reverse'] as const

test('there are 28 reasons, each with a whole sentence in French and in English', () => {
  expect(Object.keys(failureReasons)).toHaveLength(28)
  for (const { messageFr, messageEn } of Object.values(failureReasons)) {
    expect(messageFr).toMatch(/^[A-ZÀ-Ý].+\.$/)
    expect(messageEn).toMatch(/^[A-Z].+\.$/)
  }
})

test('the message for a person at the till never names a fault that only the platform can cure', () => {
  for (const reason of ['FLOAT_INSUFFICIENT', 'PLATFORM_LIMIT_REACHED', 'CREDENTIALS_REJECTED'] as const) {
    expect(failureReasons[reason].messageEn).toBe('The service is temporarily unavailable.')
  }
})

test('a collection never blames a payee, a disbursement never a payer', () => {
  const codes = [
    'requestDeclined',
    'identifierError',
    'incorrectState',
    'insufficientFunds',
    'dailyValueLimitExceeded',
    'maxBalanceExceeded',
  ]
  for (const kind of kinds) {
    const wrong = kind === 'collect' ? /^PAYEE/ : /^PAYER/
    for (const code of codes) {
      const error = {
        category: 'businessrule',
        code,
        key: code.toLowerCase(),
        message: undefined,
        detail: undefined,
      }
      const { reason } = gsmaRefusal(error, kind, '')
      expect(reason).not.toMatch(wrong)
      expect(reason).not.toBe('UNSPECIFIED')
    }
    const { reason } = checkoutRefusal({ code: 'insufficient-funds', message: undefined }, kind, '') ?? {}
    expect(reason).not.toMatch(wrong)
  }
})
