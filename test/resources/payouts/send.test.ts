import { subjects } from '../../../src/resources/subjects.ts'
import { expect, test } from 'vitest'
import type { Services } from '../../../src/context.ts'
import { openDrains } from '../../../src/jobs/drain.ts'
import type { Leases } from '../../../src/jobs/leases.ts'
import { sendDuePayouts } from '../../../src/resources/payouts/send.ts'
import { fundedMerchant } from '../../kit/money.ts'
import { openPayout } from '../../kit/money-out.ts'
import { scripted, useScriptedOperator } from '../../kit/scripted-operator.ts'

useScriptedOperator()

test('a service that ends begins no payout any more', async () => {
  const merchant = await fundedMerchant(scripted.pool, 20_000n)
  const ending = new AbortController()
  const left = Promise.withResolvers<void>()
  const operator = {
    ...scripted.services.operators.find('OperatorA'),
    canStart: () => ({ ok: true }),
    disburse: () => {
      left.resolve()
      return new Promise(() => undefined)
    },
  }
  const services = {
    ...scripted.services,
    ending: ending.signal,
    drains: openDrains(ending.signal, {} as Leases),
    inFlight: new Map(),
    subjects,
    operators: { find: () => operator },
  } as unknown as Services
  const first = await openPayout(scripted.pool, merchant, { amount: 1_000n })
  const sending = sendDuePayouts(services, 'OperatorA')
  await left.promise
  const second = await openPayout(scripted.pool, merchant, { amount: 1_000n })
  ending.abort()
  await sending
  const { rows } = await scripted.db.owner.query<{ id: bigint; status: string }>(
    'SELECT id, status FROM payout WHERE merchant_id = $1 ORDER BY id',
    [merchant.merchantId],
  )
  expect(rows).toEqual([
    { id: first, status: 'processing' },
    { id: second, status: 'pending' },
  ])
})
