import { describe, expect, test } from 'vitest'
import { approvalsOn, released, sentOnce } from '../../kit/approvals.ts'
import { day, payoutsOn } from '../../kit/payouts.ts'
import { customer, openFixture } from '../../kit/fixture.ts'

// Approvals of payouts (see docs/design/rules.md#approvals): people decide, never alone where two are
// required.
const fixture = await openFixture()
const sibling = await fixture.sibling()
const { payOut, money, record, cancel, emitted, ahead } = payoutsOn(fixture)
const { ask, approvalOf, team, waiting, approve, reject, becomes, paidOut, verdictsOf } = approvalsOn(fixture)
const { owner } = fixture.database

describe('approvePayout', () => {
  test.each(['owner', 'admin', 'finance'] as const)('by a signed-in %s sends the payout', async (role) => {
    const { merchant, person } = await team()
    const payout = await waiting(merchant)
    const by = await person(role)
    expect(await approve(by, payout)).toMatchObject({
      __typename: 'Payout',
      databaseId: payout.id,
      approval: {
        status: 'APPROVED',
        required: 1,
        digest: payout.digest,
        canApprove: false,
        approvedBy: [{ member: { databaseId: by.memberId }, role: role.toUpperCase(), counts: true }],
        rejectedBy: null,
      },
    })
    await becomes(merchant, payout, { status: 'completed', approval: 'approved' })
    expect(await paidOut(payout)).toEqual(sentOnce)
    expect(await emitted(payout.id)).toEqual([
      'payout_pending',
      'approval_given',
      'payout_processing',
      'payout_completed',
    ])
  })

  test('of a scheduled payout sends it on its day', async () => {
    const { merchant, person } = await team()
    const payout = await waiting(merchant, { scheduled_at: ahead(day) })
    expect(await approve(await person(), payout)).toMatchObject({ status: 'PENDING' })
    expect(await paidOut(payout)).toEqual({ requests: 0, steps: [] })
    await fixture.advance(day)
    await becomes(merchant, payout, { status: 'completed' })
    expect(await paidOut(payout)).toEqual(sentOnce)
  })

  test('by one of two people sends nothing, however often', async () => {
    const { merchant, person } = await team(2)
    const payout = await waiting(merchant)
    const [first, second] = [await person(), await person('owner')]
    expect(await approve(first, payout)).toMatchObject({
      status: 'PENDING',
      approval: { status: 'PENDING', required: 2, approvedBy: [{}], canApprove: false },
    })
    expect(await approve(first, payout)).toMatchObject({ code: 'STATE_CONFLICT' })
    expect(await paidOut(payout)).toEqual({ requests: 0, steps: ['reserve'] })
    expect(await approve(second, payout)).toMatchObject({ approval: { status: 'APPROVED' } })
    await becomes(merchant, payout, { status: 'completed' })
    expect(await verdictsOf(payout)).toEqual([`${first.memberId} approved`, `${second.memberId} approved`])
  })

  test('under one Idempotency-Key counts once, and gets the same answer', async () => {
    const { merchant, person } = await team(2)
    const [payout, by] = [await waiting(merchant), await person()]
    const send = () =>
      fetch(`${fixture.url}/graphql`, {
        method: 'POST',
        headers: {
          'Content-Type': 'application/json',
          Authorization: `Bearer ${by.token}`,
          'Idempotency-Key': 'yes',
        },
        body: JSON.stringify({
          query: `mutation { approvePayout(id: ${payout.id}, digest: "${payout.digest}") { __typename } }`,
        }),
      })
    const [first, again] = [await send(), await send()]
    expect(await again.json()).toEqual(await first.json())
    expect(await verdictsOf(payout)).toEqual([`${by.memberId} approved`])
  })

  test('counts to the number that the payout recorded: later settings change nothing of it', async () => {
    const { merchant, person } = await team(1)
    const before = await waiting(merchant)
    await fixture.rest('PUT', '/settings', { token: merchant.token, body: { approvals_required: 3 } })
    const after = await waiting(merchant)
    const by = await person('owner')
    await fixture.rest('PUT', '/settings', { token: by.token, body: { payouts_require_approval: false } })
    expect(await record(merchant, after.id)).toMatchObject({ approval: 'pending' })
    expect(await approve(by, before)).toMatchObject({ approval: { status: 'APPROVED', required: 1 } })
    expect(await approve(by, after)).toMatchObject({ approval: { status: 'PENDING', required: 3 } })
  })
})

describe('an approval is refused', () => {
  test('by an API token, with any scopes', async () => {
    const { merchant } = await team()
    const payout = await waiting(merchant)
    for (const answer of [await approve(merchant, payout), await reject(merchant, payout)]) {
      expect(answer).toMatchObject({ code: 'FORBIDDEN', message: expect.stringContaining('signed-in') })
    }
    expect(await approvalOf(merchant.token, payout.id)).toMatchObject({ canApprove: false })
  })

  test('by a member who may only read', async () => {
    const { merchant, person } = await team()
    const payout = await waiting(merchant)
    const viewer = await person('viewer')
    expect(await approve(viewer, payout)).toEqual({ code: 'FORBIDDEN' })
    expect(await reject(viewer, payout)).toEqual({ code: 'FORBIDDEN' })
    expect(await approvalOf(viewer.token, payout.id)).toMatchObject({ canApprove: false, status: 'PENDING' })
  })

  test('by its maker, in any session', async () => {
    const { merchant, person } = await team()
    const maker = await person('owner')
    const payout = await waiting(maker)
    expect(await approve(maker, payout)).toMatchObject({ code: 'FORBIDDEN' })
    expect(await reject(maker, payout)).toMatchObject({ code: 'FORBIDDEN' })
    expect(await approvalOf(maker.token, payout.id)).toMatchObject({ canApprove: false })
    expect(await verdictsOf(payout)).toEqual([])
    const other = await person()
    expect(await approvalOf(other.token, payout.id)).toMatchObject({ canApprove: true })
    expect(await approve(other, payout)).toMatchObject({ approval: { status: 'APPROVED' } })
    await becomes(merchant, payout, { status: 'completed' })
  })

  test('by a member who was shown the API key that made it, also by way of another key', async () => {
    const { person } = await team()
    const [holder, other] = [await person('owner'), await person('owner')]
    const first = await keyBy(holder.token, 'createApiKey(input: { name: "a", scopes: [PAYOUT, SETTINGS] })')
    const second = await keyBy(first.token, 'createApiKey(input: { name: "b", scopes: [PAYOUT] })')
    for (const key of [first, second]) {
      const payout = await waiting(key)
      expect(await approve(holder, payout)).toMatchObject({ code: 'FORBIDDEN' })
      expect(await approve(other, payout)).toMatchObject({ approval: { status: 'APPROVED' } })
    }
    const before = await waiting(second)
    const regenerated = await keyBy(other.token, `regenerateApiKey(id: ${second.id})`)
    const payout = await waiting(regenerated)
    expect(await approve(other, payout)).toMatchObject({ code: 'FORBIDDEN' })
    expect(await approve(holder, payout)).toMatchObject({ approval: { status: 'APPROVED' } })
    // The holder at the time of the payout counts, not the holder now.
    expect(await approve(holder, before)).toMatchObject({ code: 'FORBIDDEN' })
  })

  test('with a stale digest, or a wrong one', async () => {
    const { merchant, person } = await team()
    const phone = customer('00')
    const payout = await waiting(merchant, { destination_phone: phone })
    const other = await waiting(merchant, { destination_phone: phone, amount: 5_001 })
    const by = await person()
    for (const digest of [other.digest, '0'.repeat(64)]) {
      expect(await approve(by, { ...payout, digest })).toMatchObject({ code: 'STATE_CONFLICT' })
    }
    for (const digest of ['', payout.digest.slice(2), `${payout.digest}00`, 'x'.repeat(64)]) {
      expect(await approve(by, { ...payout, digest })).toMatchObject({
        code: 'INVALID_INPUT',
        problems: [{ field: 'digest' }],
      })
    }
    // A trigger keeps the approved fields fixed; it is off here, as an attacker with access to the database
    // could do.
    await owner.query('ALTER TABLE payout DISABLE TRIGGER payout_guard')
    await owner.query(`UPDATE payout SET destination_phone = '+22370000099' WHERE id = $1`, [payout.id])
    expect(await approve(by, payout)).toMatchObject({ code: 'STATE_CONFLICT' })
    expect(await verdictsOf(payout)).toEqual([])
    await owner.query('UPDATE payout SET destination_phone = $2 WHERE id = $1', [payout.id, phone])
    await owner.query('ALTER TABLE payout ENABLE TRIGGER payout_guard')
    expect(await reject(by, payout)).toMatchObject({ status: 'CANCELLED' })
  })

  test('by a removed member, on any service, from that moment on', async () => {
    const { merchant, person } = await team()
    const [payout, boss, removed] = [await waiting(merchant), await person('owner'), await person()]
    // Both services know the session.
    for (const url of [fixture.url, sibling]) await ask(removed.token, '{ me { role } }', {}, url)
    const removal = `mutation { removeMember(id: ${removed.memberId}) { __typename } }`
    expect(await ask(boss.token, removal, {})).toEqual({ __typename: 'TeamMember' })
    const answers = await Promise.all([fixture.url, sibling].map((url) => approve(removed, payout, url)))
    for (const answer of answers) expect(answer).toMatchObject({ code: 'UNAUTHENTICATED' })
    expect(await verdictsOf(payout)).toEqual([])
  })

  test('by a member who was made a viewer, from that moment on', async () => {
    const { merchant, person } = await team()
    const [payout, boss, lowered] = [await waiting(merchant), await person('owner'), await person()]
    await ask(lowered.token, '{ me { role } }', {}, sibling)
    await ask(
      boss.token,
      `mutation { changeMemberRole(id: ${lowered.memberId}, role: VIEWER) { __typename } }`,
      {},
    )
    expect(await approve(lowered, payout, sibling)).toMatchObject({ code: 'UNAUTHENTICATED' })
    expect(await verdictsOf(payout)).toEqual([])
  })

  test('with the approval of a member who was removed since', async () => {
    const { merchant, person } = await team(2)
    const payout = await waiting(merchant)
    const [boss, removed, second, third] = [
      await person('owner'),
      await person(),
      await person(),
      await person(),
    ]
    await approve(removed, payout)
    await ask(boss.token, `mutation { removeMember(id: ${removed.memberId}) { __typename } }`, {})
    expect(await approve(second, payout)).toMatchObject({
      approval: { status: 'PENDING', approvedBy: [{ counts: false }, { counts: true }] },
    })
    expect(await approve(third, payout)).toMatchObject({ approval: { status: 'APPROVED' } })
    await becomes(merchant, payout, { status: 'completed' })
  })

  test('of a payout that does not wait, or belongs to another merchant', async () => {
    const { merchant, person } = await team()
    const by = await person()
    const { body } = await payOut(merchant, { amount: 1_000 })
    const never = { id: body['data'].id as number, digest: '0'.repeat(64) }
    expect(await approvalOf(by.token, never.id)).toMatchObject({
      status: 'NOT_REQUIRED',
      required: 0,
      digest: null,
      canApprove: false,
      approvedBy: [],
    })
    const cancelled = await waiting(merchant)
    await cancel(merchant, cancelled.id)
    for (const payout of [never, cancelled]) {
      expect(await approve(by, payout)).toMatchObject({ code: 'STATE_CONFLICT' })
      expect(await reject(by, payout)).toMatchObject({ code: 'STATE_CONFLICT' })
    }
    const stranger = await (await team()).person()
    for (const id of [cancelled.id, 999_999_999]) {
      expect(await approve(stranger, { ...cancelled, id })).toMatchObject({ code: 'NOT_FOUND' })
      expect(await reject(stranger, { id })).toMatchObject({ code: 'NOT_FOUND' })
    }
  })
})

describe('rejectPayout', () => {
  test('by one person is enough: the payout is cancelled, its money free, and the reason given', async () => {
    const { merchant, person } = await team(3)
    const payout = await waiting(merchant, { amount: 30_000 })
    const [yes, no] = [await person(), await person('admin')]
    await approve(yes, payout)
    expect(await reject(no, payout, 'Montant trop élevé')).toMatchObject({
      status: 'CANCELLED',
      approval: {
        status: 'REJECTED',
        reason: 'Montant trop élevé',
        rejectedBy: { member: { databaseId: no.memberId }, role: 'ADMIN' },
        approvedBy: [{ member: { databaseId: yes.memberId } }],
      },
    })
    expect(await money(merchant)).toEqual({ available: 100_000, reserved: 0 })
    expect(await paidOut(payout)).toEqual(released)
    const { rows } = await owner.query(
      `SELECT data FROM event WHERE data->>'payout_id' = $1 AND type = 'payout_cancelled'`,
      [String(payout.id)],
    )
    expect(rows).toMatchObject([
      { data: { approval: 'rejected', rejected_by: no.memberId, rejection_reason: 'Montant trop élevé' } },
    ])
    expect(await reject(yes, payout)).toMatchObject({ code: 'STATE_CONFLICT' })
  })

  test('is open to a member who approved it before', async () => {
    const { merchant, person } = await team(2)
    const [payout, by] = [await waiting(merchant), await person()]
    await approve(by, payout)
    expect(await reject(by, payout)).toMatchObject({ status: 'CANCELLED' })
  })

  test.each(['', '   ', 'x'.repeat(201), 'a\u0000b'])('takes a reason: not %j', async (reason) => {
    const { merchant, person } = await team()
    const payout = await waiting(merchant)
    expect(await reject(await person(), payout, reason)).toMatchObject({
      code: 'INVALID_INPUT',
      problems: [{ field: 'reason' }],
    })
  })
})

/** A key that the owner of `token` makes by `mutation`, and a token of that key. */
async function keyBy(token: string, mutation: string): Promise<{ id: number; token: string }> {
  const fields = '{ ... on IssuedApiKey { key secret apiKey { databaseId } } }'
  const made = await ask(token, `mutation { ${mutation} ${fields} }`, {})
  const headers = { 'X-API-Key': String(made['key']), 'X-API-Secret': String(made['secret']) }
  const scopes = mutation.includes('SETTINGS') ? ['payout', 'settings'] : ['payout']
  const { body } = await fixture.rest('POST', '/auth', { headers, body: { scopes } })
  return { id: (made['apiKey'] as { databaseId: number }).databaseId, token: body['data'].token }
}
