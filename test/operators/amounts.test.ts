import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { createCheckoutDriver } from '../../src/operators/checkout-session.ts'
import { createGsmaDriver } from '../../src/operators/gsma-mm.ts'
import type { OperatorDriver } from '../../src/operators/operator.ts'
import { createLog } from '../../src/telemetry/log.ts'
import {
  checkoutSettings,
  call,
  deps,
  gsmaSettings,
  newHandle,
  reply,
  scriptedOperator,
} from '../kit/operators.ts'

// The amounts of an operator that count, in every answer that names one, by both drivers.

interface Fixture {
  driver: OperatorDriver
  errors: [Record<string, unknown>, string][]
}

/** A driver of an operator that reports this amount in every answer. */
const fixtures: Readonly<Record<string, (said: unknown) => Promise<Fixture>>> = {
  'gsma-mm': (said) => {
    const record = {
      transactionReference: 'R1',
      transactionStatus: 'completed',
      amount: said,
      currency: 'XOF',
    }
    const line = { ...record, type: 'merchantpay', displayType: 'in', creationDate: '2026-01-30T10:00:00Z' }
    return fixture(
      (path) => (path.includes('/statemententries') ? [line] : record),
      (url, log) => createGsmaDriver(gsmaSettings(url), { ...deps, log }),
    )
  },
  'checkout-session': (said) => {
    const session = { id: 'S1', checkout_status: 'complete', payment_status: 'succeeded', amount: said }
    const payout = { id: 'P1', status: 'succeeded', receive_amount: said, currency: 'XOF' }
    const line = { transaction_id: 'T1', transaction_type: 'merchant_payment', amount: said }
    const page = {
      items: [{ ...line, timestamp: '2026-01-30T10:00:00Z' }],
      page_info: { has_next_page: false },
    }
    return fixture(
      (path) => {
        if (path.startsWith('/op-b/v1/transactions')) return page
        const record = path.includes('payout') ? payout : session
        return path.includes('/search') ? { result: [record] } : record
      },
      (url, log) => createCheckoutDriver(checkoutSettings(url), { ...deps, log }),
    )
  },
}

async function fixture(
  answer: (path: string) => unknown,
  open: (url: string, log: typeof deps.log) => OperatorDriver,
): Promise<Fixture> {
  const script = await scriptedOperator((response, seen) => reply(200, answer(seen.path))(response, seen))
  const log = createLog('silent')
  const errors: Fixture['errors'] = []
  vi.spyOn(log, 'error').mockImplementation((...line: unknown[]) => {
    errors.push(line as Fixture['errors'][number])
  })
  const driver = open(script.url, log)
  onTestFinished(() => driver.close())
  return { driver, errors }
}

const phone = '+22370000001'
function asked() {
  const addresses = {
    callbackUrl: 'http://127.0.0.1:9/x',
    successUrl: 'http://x.test',
    cancelUrl: 'http://x.test',
  }
  return { handle: newHandle(), amount: 5_000n, payer: phone, payee: phone, attempt: 1, ...addresses }
}

const movements = {
  'the first answer of a collection': (driver: OperatorDriver) => driver.collect(asked(), call()),
  'the first answer of a disbursement': (driver: OperatorDriver) => driver.disburse(asked(), call()),
  'the answer about a collection': (driver: OperatorDriver) => driver.query('collect', newHandle(), call()),
  'the answer about a disbursement': (driver: OperatorDriver) =>
    driver.query('disburse', newHandle(), call()),
} as const

const countable = ['1', '4960', '5000', '5000.00', 5_000, '500000', '10000000000']
const absurd = ['10000000001', '9007199254740992', '999999999999999999', '9'.repeat(40), 1e18]
const uncountable = [
  '0',
  '0.00',
  '-5000',
  -5_000,
  '5000.5',
  5_000.5,
  '5e3',
  '5,000',
  'NaN',
  '',
  null,
  ...absurd,
]

describe.each(Object.keys(fixtures))('%s', (name) => {
  const open = async (said: unknown) => {
    const made = await fixtures[name]?.(said)
    if (!made) throw new Error(name)
    return made
  }

  describe.each(Object.entries(movements))('%s', (_words, ask) => {
    test('counts whole francs from 1 to the bound', async () => {
      for (const said of countable) {
        const { driver, errors } = await open(said)
        const outcome = await ask(driver)
        expect({ said, outcome }).toMatchObject({
          outcome: { kind: 'settled', evidence: { amount: BigInt(String(said).replace('.00', '')) } },
        })
        expect(errors).toEqual([])
      }
    })

    test('is unreadable beyond, and raises an alarm', async () => {
      for (const said of uncountable) {
        const { driver, errors } = await open(said)
        const { kind, ...rest } = await ask(driver)
        expect({ said, kind, ...rest }).toMatchObject({
          kind: expect.stringMatching(/^(unknown|unreachable)$/),
          cause: 'unreadable_amount',
        })
        expect(errors).toEqual([
          [
            expect.objectContaining({ provider: driver.provider, correlationId: expect.any(String) }),
            'alarm: an operator reports an amount that cannot be read',
          ],
        ])
      }
    })
  })

  test('a statement with such a line is unreadable as a whole', async () => {
    const day = async (said: unknown) => (await open(said)).driver.statement('2026-01-30', call())
    expect(await day('5000')).toMatchObject({ kind: 'statement', lines: [{ amount: 5_000n }] })
    // In a statement of the hosted checkout the sign is the direction.
    const signed = name === 'checkout-session' ? ['-5000', -5_000] : []
    for (const said of uncountable.filter((each) => !signed.includes(each as string))) {
      expect({ said, ...(await day(said)) }).toMatchObject({ said, kind: 'unreachable', cause: 'unreadable' })
    }
  })
})
