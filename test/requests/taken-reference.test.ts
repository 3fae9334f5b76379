import { describe, expect, test, vi } from 'vitest'
import { deadlineIn } from '../../src/operators/call-limits.ts'
import { sendRequest } from '../../src/requests/send.ts'
import { openDeposit } from '../kit/money-out.ts'
import { balanceOf, fundMerchant, problemsOf } from '../kit/money.ts'
import {
  accepted,
  answers,
  ask,
  credited,
  evidence,
  fresh,
  minute,
  says,
  script,
  scripted,
  stands,
  useScriptedOperator,
} from '../kit/scripted-operator.ts'

// One reference of an operator proves one of its payments: an operator that answers about a payment with the
// record of another payment credits no merchant twice.
useScriptedOperator()

const alarm = 'alarm: an operator names the reference of another payment as proof'
const settledAs = (operatorRef: string) => ({ ...answers.settled, evidence: { ...evidence, operatorRef } })

/** The alarms of the log while this runs. */
async function alarmsDuring(run: () => Promise<unknown>): Promise<unknown[]> {
  const spy = vi.spyOn(scripted.services.log, 'error')
  await run()
  const told = spy.mock.calls.filter(([, words]) => words === alarm).map(([facts]) => facts)
  spy.mockRestore()
  return told
}

describe('a reference that another payment has', () => {
  test('credits nothing when the operator is asked: it is asked again, and pays once', async () => {
    const [paid, other] = [await accepted(), await accepted()]
    await ask(paid, settledAs('A-1'))
    const told = await alarmsDuring(async () => {
      expect(await ask(other, settledAs('A-1'))).toMatchObject({ status: 'pending' })
    })
    expect(told).toEqual([
      { about: `transaction:${other.transactionId}`, provider: 'OperatorA', reference: 'A-1' },
    ])
    expect(await stands(other)).toMatchObject({
      status: 'pending',
      state: 'accepted',
      nextS: expect.any(Number),
    })
    expect(await credited()).toBe(5_000n)
    expect(await ask(other, settledAs('A-2'))).toMatchObject({ status: 'success' })
    expect(await credited()).toBe(10_000n)
  })

  test('credits nothing as the first answer: the outcome is in doubt', async () => {
    await ask(await accepted(), settledAs('B-1'))
    const opened = await fresh()
    script.collect = [{ ...says.settled, evidence: { ...evidence, operatorRef: 'B-1' } }]
    const told = await alarmsDuring(() =>
      sendRequest(scripted.services, opened.request, 'interactive', deadlineIn(10_000)),
    )
    expect(told).toHaveLength(1)
    expect(await stands(opened)).toMatchObject({ status: 'pending', state: 'doubt' })
    expect(await credited()).toBe(5_000n)
  })

  test('credits no payment that had failed', async () => {
    await ask(await accepted(), settledAs('C-1'))
    const declined = await accepted()
    await ask(declined, answers.refused)
    await scripted.clock.advance(minute)
    await scripted.db.owner.query('UPDATE operator_request SET next_check_at = now() WHERE id = $1', [
      declined.requestId,
    ])
    expect(await alarmsDuring(() => ask(declined, settledAs('C-1')))).toHaveLength(1)
    expect(await stands(declined)).toMatchObject({ status: 'failed' })
    expect(await credited()).toBe(5_000n)
  })

  test('keeps the money of a deposit reserved', async () => {
    const { pool, merchant } = scripted
    await ask(await accepted(), settledAs('D-1'))
    await fundMerchant(pool, merchant.merchantId, 1_000n)
    const { transactionId, requestId } = await openDeposit(pool, merchant)
    const opened = { transactionId, requestId, correlationId: '' }
    const settled = { ...answers.settled, evidence: { ...evidence, amount: 1_000n, operatorRef: 'D-1' } }
    expect(await alarmsDuring(() => ask(opened, settled))).toHaveLength(1)
    expect(await balanceOf(pool, merchant.merchantId)).toEqual({ available: 5_000n, reserved: 1_000n })
    expect(await problemsOf(pool, merchant.merchantId)).toEqual([])
  })

  test('is another operator’s own: two operators may use the same', async () => {
    await scripted.db.owner.query(
      `INSERT INTO operator_reference (provider, reference, request_id) VALUES ('OperatorB', 'E-1', 1)`,
    )
    expect(await ask(await accepted(), settledAs('E-1'))).toMatchObject({ status: 'success' })
  })
})
