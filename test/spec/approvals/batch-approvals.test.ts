import { createHash } from 'node:crypto'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { TestMerchant } from '../../kit/app.ts'
import { released } from '../../kit/approvals.ts'
import { batchApprovalsOn } from '../../kit/batch-approvals.ts'
import { bulkOn, row } from '../../kit/bulk.ts'
import { eventually } from '../../kit/eventually.ts'
import { day } from '../../kit/payouts.ts'
import { openFixture } from '../../kit/fixture.ts'

// Approvals of batches (see docs/design/rules.md#approvals): as with payouts, and no maker of a batch
// decides.
const fixture = await openFixture()
const { call, draft, process, cancel, ended, money, summary, emitted } = bulkOn(fixture)
const { ask, team, waiting, send, approve, reject, approvalOf, paidOut, verdictsOf } =
  batchApprovalsOn(fixture)
const { owner } = fixture.database

/** A token of an API key that the owner of `token` makes and holds. */
async function keyBy(token: string): Promise<{ token: string }> {
  const document = `mutation { createApiKey(input: { name: "till", scopes: [BULK_PAY] }) {
    ... on IssuedApiKey { key secret } } }`
  const made = await ask(token, document)
  const headers = { 'X-API-Key': String(made['key']), 'X-API-Secret': String(made['secret']) }
  const { body } = await fixture.rest('POST', '/auth', { headers, body: { scopes: ['bulk_pay'] } })
  return { token: body['data'].token }
}

describe('approveBatch', () => {
  test('by another member processes the batch, and every recipient is paid once', async () => {
    const { merchant, person } = await team()
    const batch = await waiting(merchant, [row(), row('00', { amount: 3_000 })])
    expect(await money(merchant)).toEqual({ available: 95_000, reserved: 5_000 })
    expect(await summary(merchant, batch.id)).toMatchObject({
      status: 'pending_approval',
      approval: 'pending',
      approval_expires_at: expect.stringMatching(/Z$/),
    })
    const by = await person()
    expect(await approvalOf(by, batch.id)).toMatchObject({ status: 'PENDING', required: 1, canApprove: true })
    expect(await approve(by, batch)).toMatchObject({
      __typename: 'Batch',
      status: 'PROCESSING',
      approval: {
        status: 'APPROVED',
        canApprove: false,
        approvedBy: [{ member: { databaseId: by.memberId }, role: 'FINANCE', counts: true }],
      },
    })
    expect(await ended(merchant, batch.id)).toMatchObject({ status: 'completed', approval: 'approved' })
    expect(await money(merchant)).toEqual({ available: 95_000, reserved: 0 })
    expect(await paidOut(batch)).toEqual({ requests: 2, steps: ['reserve', 'post', 'post'] })
    expect((await emitted(batch.id)).filter((type) => type !== 'batch_progress')).toEqual([
      'batch_draft',
      'batch_pending_approval',
      'approval_given',
      'batch_processing',
      'bulk_pay_done',
    ])
  })

  test('by one of two people sends nothing, however often', async () => {
    const { merchant, person } = await team(2)
    const batch = await waiting(merchant)
    const [first, second] = [await person(), await person('owner')]
    expect(await approve(first, batch)).toMatchObject({
      status: 'PENDING_APPROVAL',
      approval: { status: 'PENDING', required: 2, approvedBy: [{}] },
    })
    expect(await approve(first, batch)).toMatchObject({ code: 'STATE_CONFLICT' })
    expect(await paidOut(batch)).toEqual({ requests: 0, steps: ['reserve'] })
    expect(await approve(second, batch)).toMatchObject({ approval: { status: 'APPROVED' } })
    await ended(merchant, batch.id)
    expect(await verdictsOf(batch)).toEqual([`${first.memberId} approved`, `${second.memberId} approved`])
  })

  test('is not required under the threshold: the batch is processed at once', async () => {
    const { merchant } = await team()
    const id = await draft(merchant, [row('00', { amount: 1_999 })])
    expect((await process(merchant, id)).body['data']).toMatchObject({ status: 'processing' })
    expect(await ended(merchant, id)).not.toHaveProperty('approval')
  })

  test('has a digest that can be computed from the fields that are read', async () => {
    const { merchant, person } = await team()
    const rows = [row('00', { name: 'Awa|é' }), row('00', { amount: 3_000, payment_method: 'OperatorC' })]
    const batch = await waiting(merchant, rows)
    const head = ['batch:v1', merchant.merchantId, batch.id, 2, 5_000].join('|')
    const line = (of: (typeof rows)[number]) => [of.payment_method, of.account, of.amount, of.name].join('|')
    const words = [head, ...rows.map(line)].join('\n')
    expect(batch.digest).toBe(createHash('sha256').update(words).digest('hex'))
    await reject(await person(), batch)
  })
})

describe('an approval is refused', () => {
  test('by a member who made the batch, added to it or sent it, also by way of an API key', async () => {
    const { merchant, person } = await team()
    const [maker, adder, sender, holder, other] = [
      await person(),
      await person('admin'),
      await person('owner'),
      await person('owner'),
      await person(),
    ]
    const id = await draft(maker as unknown as TestMerchant, [row()])
    for (const { token } of [adder, await keyBy(holder.token)]) {
      const more = { recipients: [row()] }
      expect(await call({ token } as TestMerchant, 'POST', `/${id}/recipients`, more)).toMatchObject({
        status: 200,
      })
    }
    const batch = await send(sender, id)
    for (const behind of [maker, adder, sender, holder]) {
      expect(await approvalOf(behind, id)).toMatchObject({ canApprove: false })
      expect(await approve(behind, batch)).toMatchObject({ code: 'FORBIDDEN' })
      expect(await reject(behind, batch)).toMatchObject({ code: 'FORBIDDEN' })
    }
    expect(await verdictsOf(batch)).toEqual([])
    expect(await approve(other, batch)).toMatchObject({ approval: { status: 'APPROVED' } })
    expect(await ended(merchant, id)).toMatchObject({ status: 'completed' })
  })

  test('by an API token, by a member who may only read, or by another merchant', async () => {
    const { merchant, person } = await team()
    const batch = await waiting(merchant)
    for (const answer of [await approve(merchant, batch), await reject(merchant, batch)]) {
      expect(answer).toMatchObject({ code: 'FORBIDDEN', message: expect.stringContaining('signed-in') })
    }
    expect(await approve(await person('viewer'), batch)).toEqual({ code: 'FORBIDDEN' })
    const stranger = await (await team()).person()
    for (const id of [batch.id, 2_147_483_647, 9_999_999_999_999]) {
      expect(await approve(stranger, { ...batch, id })).toMatchObject({ code: 'NOT_FOUND' })
      expect(await reject(stranger, { id })).toMatchObject({ code: 'NOT_FOUND' })
    }
    expect(await paidOut(batch)).toEqual({ requests: 0, steps: ['reserve'] })
  })

  test('with the digest of something else', async () => {
    const { merchant, person } = await team()
    const [batch, other] = [await waiting(merchant), await waiting(merchant)]
    const by = await person()
    for (const digest of [other.digest, '0'.repeat(64)]) {
      expect(await approve(by, { ...batch, digest })).toMatchObject({ code: 'STATE_CONFLICT' })
    }
    expect(await approve(by, { ...batch, digest: 'x' })).toMatchObject({
      code: 'INVALID_INPUT',
      problems: [{ field: 'digest' }],
    })
    // A trigger keeps the recipients fixed; it is off here, as an attacker with access to the database could
    // do.
    const change = (more: number) =>
      owner.query('UPDATE batch_recipient SET amount = amount + $2 WHERE batch_id = $1', [batch.id, more])
    await owner.query('ALTER TABLE batch_recipient DISABLE TRIGGER batch_recipient_guard')
    onTestFinished(
      async () =>
        void (await owner.query('ALTER TABLE batch_recipient ENABLE TRIGGER batch_recipient_guard')),
    )
    await change(1)
    expect(await approve(by, batch)).toMatchObject({ code: 'STATE_CONFLICT' })
    await change(-1)
    expect(await verdictsOf(batch)).toEqual([])
    expect(await approve(by, batch)).toMatchObject({ status: 'PROCESSING' })
  })

  test('with the approval of a member who was removed since', async () => {
    const { merchant, person } = await team(2)
    const batch = await waiting(merchant)
    const [boss, removed, second, third] = [
      await person('owner'),
      await person(),
      await person(),
      await person(),
    ]
    await approve(removed, batch)
    await ask(boss.token, `mutation { removeMember(id: ${removed.memberId}) { __typename } }`)
    expect(await approve(second, batch)).toMatchObject({
      status: 'PENDING_APPROVAL',
      approval: { approvedBy: [{ counts: false }, { counts: true }] },
    })
    expect(await approve(third, batch)).toMatchObject({ approval: { status: 'APPROVED' } })
    expect(await ended(merchant, batch.id)).toMatchObject({ status: 'completed' })
  })

  test('of a batch that does not wait, or no longer does', async () => {
    const { merchant, person } = await team()
    const by = await person()
    const never = { id: await draft(merchant, [row()]), digest: '0'.repeat(64) }
    const cancelled = await waiting(merchant)
    expect((await cancel(merchant, cancelled.id)).status).toBe(200)
    for (const batch of [never, cancelled]) {
      expect(await approve(by, batch)).toMatchObject({ code: 'STATE_CONFLICT' })
      expect(await reject(by, batch)).toMatchObject({ code: 'STATE_CONFLICT' })
    }
    expect(await paidOut(cancelled)).toEqual(released)
  })

  test('by the database itself: with too few approvals, or that of a maker', async () => {
    const { merchant, person } = await team(2)
    const [maker, by] = [await person(), await person()]
    const batch = await waiting(maker)
    await approve(by, batch)
    await owner.query(
      `INSERT INTO approval_verdict (merchant_id, batch_id, member_id, role, verdict, digest, created_at)
       SELECT merchant_id, id, $2, 'finance', 'approved', approval_digest, now() FROM batch WHERE id = $1`,
      [batch.id, maker.memberId],
    )
    const force = (change: string) => owner.query(`UPDATE batch SET ${change} WHERE id = $1`, [batch.id])
    const going = `status = 'processing', started_at = now()`
    await expect(force(`approval = 'approved', ${going}`)).rejects.toMatchObject({
      constraint: 'batch_approvals',
    })
    await expect(force(going)).rejects.toMatchObject({ constraint: 'batch_approval' })
    await expect(force(`approval = 'not_required', ${going}`)).rejects.toMatchObject({ code: '23000' })
    await expect(force('approvals_required = 1')).rejects.toMatchObject({ code: '23000' })
    await expect(force(`maker_member_ids = '{}'`)).rejects.toMatchObject({ code: '23000' })
    expect(await summary(merchant, batch.id)).toMatchObject({ status: 'pending_approval' })
  })
})

describe('a batch without approval is cancelled, and its money is free again', () => {
  test('when one person rejects it, with a reason', async () => {
    const { merchant, person } = await team(3)
    const batch = await waiting(merchant, [row(), row()])
    const [yes, no] = [await person(), await person('admin')]
    await approve(yes, batch)
    expect(await reject(no, batch, 'Mauvais mois')).toMatchObject({
      status: 'CANCELLED',
      approval: {
        status: 'REJECTED',
        reason: 'Mauvais mois',
        rejectedBy: { member: { databaseId: no.memberId } },
        approvedBy: [{ member: { databaseId: yes.memberId } }],
      },
    })
    expect(await summary(merchant, batch.id)).toMatchObject({ status: 'cancelled', cancelled_count: 2 })
    expect(await money(merchant)).toEqual({ available: 100_000, reserved: 0 })
    expect(await paidOut(batch)).toEqual(released)
    const { rows } = await owner.query(
      `SELECT data FROM event WHERE data->>'batch_id' = $1 AND type = 'batch_cancelled'`,
      [String(batch.id)],
    )
    expect(rows).toMatchObject([
      { data: { approval: 'rejected', rejected_by: no.memberId, rejection_reason: 'Mauvais mois' } },
    ])
    expect(await reject(yes, batch)).toMatchObject({ code: 'STATE_CONFLICT' })
  })

  test('when no person decides in seven days', async () => {
    const { merchant, person } = await team()
    const [batch, second] = [await waiting(merchant), await waiting(merchant)]
    await fixture.advance(7 * day)
    for (const { id } of [batch, second]) {
      await eventually(async () =>
        expect(await summary(merchant, id)).toMatchObject({ status: 'cancelled', approval: 'expired' }),
      )
    }
    expect(await money(merchant)).toEqual({ available: 100_000, reserved: 0 })
    expect(await approve(await person(), batch)).toMatchObject({ code: 'STATE_CONFLICT' })
  })
})
