import { expect, onTestFinished, test, vi } from 'vitest'
import type { Subject } from '../../src/requests/open-request.ts'
import { claimSend } from '../../src/requests/store.ts'
import { checkRequest } from '../../src/requests/check.ts'
import { sendRequest } from '../../src/requests/send.ts'
import { fundedMerchant, openCollection } from '../kit/money.ts'
import { beginRecipients, openBatch, payees } from '../kit/money-bulk.ts'
import { beginPayouts, openDeposit, openPayout } from '../kit/money-out.ts'
import { take } from '../kit/scripted-disbursement.ts'
import {
  answers,
  lowerFence,
  says,
  scripted,
  script,
  second,
  useScriptedOperator,
} from '../kit/scripted-operator.ts'

// An operator that accepted an operation may deny later that it knows it. It may have executed it all the
// same, so the operation is never sent a second time: the operator is asked until it says more.

useScriptedOperator()

/** Puts one request of the kind on record. @returns its id */
const begin: Record<Subject, () => Promise<bigint>> = {
  collection: async () => (await openCollection(scripted.pool, scripted.merchant)).requestId,
  deposit: async () => (await openDeposit(scripted.pool, scripted.merchant)).requestId,
  payout: async () => {
    await openPayout(scripted.pool, scripted.merchant)
    return (await beginPayouts(scripted.pool))[0]?.requestId ?? 0n
  },
  recipient: async () => {
    await openBatch(scripted.pool, scripted.merchant, payees(1))
    return (await beginRecipients(scripted.pool))[0]?.requestId ?? 0n
  },
}

test.each(Object.entries(begin))('%s: accepted, then absent: not sent again', async (subject, make) => {
  scripted.merchant = await fundedMerchant(scripted.pool, 20_000n)
  const requestId = await make()
  const it = { requestId, subject: 'deposit' as const, id: 0n, merchantId: scripted.merchant.merchantId }
  Object.assign(script, { collect: [says.accepted], disburse: [says.accepted] })
  const request = { ...(await take(it)), state: 'sending' as const }
  expect(request.subject).toBe(subject)
  await sendRequest(scripted.services, request, 'interactive', new Date(Date.now() + 10 * second))
  const warn = vi.spyOn(scripted.services.log, 'warn')
  onTestFinished(() => warn.mockRestore())
  const sends = () => script.sent.length + script.paidOut.length
  expect(sends()).toBe(1)

  for (let asked = 1; asked <= 3; asked += 1) {
    // No earlier send can arrive any more, and the operator would take another one.
    await lowerFence({ requestId })
    Object.assign(script, { query: [answers.absent], collect: [says.accepted], disburse: [says.accepted] })
    await checkRequest(scripted.services, await take(it))
    expect([script.asked, sends()]).toEqual([asked, 1])
    expect(warn.mock.lastCall?.[1]).toBe('the operator lost a request that it had accepted')
    expect(warn).toHaveBeenCalledTimes(asked)
    // A node that knows less, or an answer that is recorded late, gets no right to send either.
    await lowerFence({ requestId })
    expect(await claimSend(scripted.pool, { id: requestId, attempt: 1 })).toBeNull()
  }
  const { rows } = await scripted.db.owner.query(
    'SELECT state, attempt, next_check_at IS NOT NULL AS watched FROM operator_request WHERE id = $1',
    [requestId],
  )
  expect(rows).toEqual([{ state: 'accepted', attempt: 1, watched: true }])
})
