import { describe, expect, test } from 'vitest'
import { createCheckoutDriver } from '../../src/operators/checkout-session.ts'
import { createGsmaDriver } from '../../src/operators/gsma-mm.ts'
import type { DisburseRequest, OperatorDriver } from '../../src/operators/operator.ts'
import { call, checkoutSettings, deps, gsmaSettings, newHandle, simulator } from '../kit/operators.ts'

const drivers: Readonly<Record<string, (url: string) => OperatorDriver>> = {
  OperatorA: (url) => createGsmaDriver(gsmaSettings(url, 'A'), deps),
  OperatorB: (url) => createCheckoutDriver(checkoutSettings(url), deps),
  OperatorC: (url) => createGsmaDriver(gsmaSettings(url, 'C'), deps),
  OperatorD: (url) => createGsmaDriver(gsmaSettings(url, 'D'), deps),
}

/** Faults of the request: what the first answer proves, and whether it takes another to pay. */
const faulty = [
  ['20', 'unknown', 'paid'],
  ['21', 'unknown', 'paid'],
  ['22', 'unknown', 'send again'],
  ['23', 'unknown', 'paid'],
  ['24', 'unknown', 'paid'],
  ['25', 'not_sent', 'send again'],
  ['26', 'unknown', 'send again'],
] as const
/**
 * Faults of callbacks: a query gets the true state, and an operator that answers at once sends no callbacks.
 */
const told = ['30', '31', '32', '33', '34', '35'] as const

describe.each(Object.entries(drivers))('a disbursement at %s', (operator, make) => {
  test('means by every test number what a collection means, and is carried out once', async () => {
    const { url, control, advance } = await simulator()
    const driver = make(url)
    const request = (code: string, attempt = 1, handle = newHandle()): DisburseRequest => ({
      handle,
      amount: 5_000n,
      payee: `+22370${code}0001`,
      callbackUrl: 'http://127.0.0.1:9/callback',
      attempt,
    })
    const asked = await Promise.all(
      [...faulty.map(([code]) => code), ...told, '27', '40', '41', '51'].map(async (code) => {
        const first = request(code)
        const outcome = await driver.disburse(first, call({ ms: code === '21' ? 2_500 : 5_000 }))
        return [code, { first, kind: outcome.kind }] as const
      }),
    )
    const sent = new Map(asked)
    const handleOf = (code: string) => sent.get(code)?.first.handle ?? newHandle()
    const answers = (code: string) => driver.query('disburse', handleOf(code), call())
    const kinds = faulty.map(([code]) => [code, sent.get(code)?.kind])
    expect(kinds).toEqual(faulty.map(([code, kind]) => [code, kind]))
    expect([sent.get('27')?.kind, sent.get('51')?.kind]).toEqual(['not_sent', 'not_sent'])

    for (const [code, , then] of faulty) {
      if (then === 'send again') await driver.disburse(request(code, 2, handleOf(code)), call())
    }
    await advance(5_000)
    for (const code of [...faulty.map(([row]) => row), ...told])
      expect([code, await answers(code)]).toMatchObject([
        code,
        { kind: 'settled', evidence: { amount: 5_000n } },
      ])
    expect(await answers('41')).toMatchObject({ kind: 'settled', evidence: { amount: 4_999n } })
    expect((await answers('40')).kind).toBe('reversed')
    for (const code of ['27', '51']) expect((await answers(code)).kind).toBe('absent')

    const { executions, repeated } = (await control('GET', 'invariants')) as Record<string, unknown[]>
    expect(repeated).toEqual([])
    expect(executions).toHaveLength(asked.length - 2)
    const reversed = { client_reference: handleOf('40').clientRef, reversed: '5000' }
    expect(executions).toContainEqual(expect.objectContaining({ operator, ...reversed }))
    await driver.close()
  })
})
