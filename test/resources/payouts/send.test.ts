import { subjects } from '../../../src/resources/subjects.ts'
import { expect, test } from 'vitest'
import type { Services } from '../../../src/context.ts'
import { openDrains } from '../../../src/jobs/drain.ts'
import type { LaneHolds } from '../../../src/jobs/lane-holds.ts'
import { sendDuePayouts } from '../../../src/resources/payouts/send.ts'
import { fundedMerchant } from '../../kit/money.ts'
import { openPayout } from '../../kit/money-out.ts'
import { scene, useScene } from '../../kit/scripted-operator.ts'

useScene()

test('once the service ends, no payout is begun any more', async () => {
  const merchant = await fundedMerchant(scene.pool, 20_000n)
  const ending = new AbortController()
  const left = Promise.withResolvers<void>()
  const operator = {
    ...scene.services.operators.find('OperatorA'),
    canStart: () => ({ ok: true }),
    disburse: () => {
      left.resolve()
      return new Promise(() => undefined)
    },
  }
  const services = {
    ...scene.services,
    ending: ending.signal,
    drains: openDrains(ending.signal, {} as LaneHolds),
    flights: new Map(),
    subjects,
    operators: { find: () => operator },
  } as unknown as Services
  const first = await openPayout(scene.pool, merchant, { amount: 1_000n })
  const lane = sendDuePayouts(services, 'OperatorA')
  await left.promise
  const second = await openPayout(scene.pool, merchant, { amount: 1_000n })
  ending.abort()
  await lane
  const { rows } = await scene.db.owner.query<{ id: bigint; status: string }>(
    'SELECT id, status FROM payout WHERE merchant_id = $1 ORDER BY id',
    [merchant.merchantId],
  )
  expect(rows).toEqual([
    { id: first, status: 'processing' },
    { id: second, status: 'pending' },
  ])
})
