import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import type { TestMerchant } from '../../kit/app.ts'
import { type ApprovalAnswer, approvalChanges, approvalsOn } from '../../kit/approvals.ts'
import { batchApprovalsOn } from '../../kit/batch-approvals.ts'
import { day, payoutsOn } from '../../kit/payouts.ts'
import { customer, openFixture } from '../../kit/fixture.ts'

// Reads of approvals: the digest of the payment, the open approvals, and their decisions.
const fixture = await openFixture()
const { payOut, cancel, ahead } = payoutsOn(fixture)
const { ask, team, waiting, approve, reject } = approvalsOn(fixture)
const batches = batchApprovalsOn(fixture)

/** A token of the merchant's key with these scopes alone. */
async function tokenFor({ apiKey, apiSecret }: TestMerchant, ...scopes: string[]): Promise<string> {
  const headers = { 'X-API-Key': apiKey, 'X-API-Secret': apiSecret }
  const { body } = await fixture.rest('POST', '/auth', { headers, body: { scopes } })
  return body['data'].token
}

test('the digest of an approval can be computed from the fields that are read', async () => {
  const { merchant, person } = await team()
  const { merchantId } = merchant
  const scheduled = ahead(2 * day)
  const phone = customer('00')
  const read = async (body: object) => {
    const { digest, id } = await waiting(merchant, { destination_phone: phone, ...body })
    return { digest, id }
  }
  const sha = (...parts: unknown[]) => createHash('sha256').update(parts.join('|')).digest('hex')
  const atOnce = await read({ reference: 'loyer|mars é', amount: 7_000 })
  expect(atOnce.digest).toBe(sha('payout:v1', merchantId, 'OperatorA', phone, 7_000, '', 'loyer|mars é'))
  const later = await read({ reference: 'x', scheduled_at: scheduled })
  const ms = Date.parse(scheduled)
  expect(later.digest).toBe(sha('payout:v1', merchantId, 'OperatorA', phone, 5_000, ms, 'x'))
  for (const payout of [atOnce, later]) await reject(await person(), payout)
})

describe('approvalsWaiting', () => {
  const document = `query ($first: Int, $after: String) { approvalsWaiting(first: $first, after: $after) {
    totalCount nodes { ... on Payout { databaseId approval { canApprove } } }
    edges { cursor node { __typename } } pageInfo { hasNextPage hasPreviousPage endCursor } } }`

  test('lists the open approvals, the first to expire first, and marks the caller’s own', async () => {
    const { merchant, person } = await team(2)
    const [one, two] = [await person(), await person()]
    const first = await waiting(merchant)
    const own = await waiting(one)
    const seen = await waiting(merchant)
    await approve(one, seen)
    await payOut(merchant, { amount: 1_000 })
    const over = await waiting(merchant)
    await reject(one, over)
    const marks = async (token: string) => {
      const { nodes, totalCount } = (await ask(token, document, {})) as {
        nodes: ApprovalAnswer[]
        totalCount: number
      }
      expect(totalCount).toBe(3)
      return nodes.map(({ databaseId, approval }) => [databaseId, (approval as ApprovalAnswer)['canApprove']])
    }
    const ids = [first.id, own.id, seen.id]
    expect(await marks(one.token)).toEqual(ids.map((id, n) => [id, n === 0]))
    expect(await marks(two.token)).toEqual(ids.map((id) => [id, true]))
    expect(await marks(merchant.token)).toEqual(ids.map((id) => [id, false]))
    const page = await ask(one.token, document, { first: 2 })
    expect(page).toMatchObject({
      nodes: [{ databaseId: first.id }, { databaseId: own.id }],
      pageInfo: { hasNextPage: true },
    })
    const { endCursor: after } = page['pageInfo'] as { endCursor: string }
    expect(await ask(one.token, document, { first: 2, after })).toMatchObject({
      nodes: [{ databaseId: seen.id }],
      pageInfo: { hasNextPage: false, hasPreviousPage: true },
    })
    for (const wrong of ['x', '1_', btoa('1'), `${'9'.repeat(15)}_1`]) {
      expect(await ask(one.token, document, { after: wrong })).toEqual({ code: 'INVALID_INPUT' })
    }
    expect(await ask(one.token, document, { after: `${'9'.repeat(14)}_1` })).toMatchObject({ nodes: [] })
  })

  const both = `query ($first: Int, $after: String) { approvalsWaiting(first: $first, after: $after) {
    totalCount edges { cursor node { kind: __typename } } } }`

  interface Page {
    totalCount: number
    edges: { cursor: string; node: { kind: string } }[]
  }

  test('lists payouts and batches in one order, page by page, even with equal expiry', async () => {
    const { merchant } = await team()
    const made = []
    for (const kind of ['b', 'p', 'p', 'b', 'p', 'b'] as const) {
      const { id } = kind === 'p' ? await waiting(merchant) : await batches.waiting(merchant)
      made.push({ kind, id })
    }
    // A trigger keeps expiry times fixed; it is off here, so that all but the first two expire at one moment.
    const moment = new Date(Date.now() + 30 * day)
    const tables = { p: 'payout', b: 'batch' }
    for (const { kind, id } of made.slice(2)) {
      const table = tables[kind]
      await fixture.database.owner.query(`ALTER TABLE ${table} DISABLE TRIGGER ${table}_guard`)
      await fixture.database.owner.query(`UPDATE ${table} SET approval_expires_at = $2 WHERE id = $1`, [
        id,
        moment,
      ])
      await fixture.database.owner.query(`ALTER TABLE ${table} ENABLE TRIGGER ${table}_guard`)
    }
    const [first, second, ...same] = made
    const ordered = [first, second, ...same.filter(({ kind }) => kind === 'p')]
    ordered.push(...same.filter(({ kind }) => kind === 'b'))
    const expected = ordered.map((one) => `${one?.kind === 'b' ? 'b' : ''}${one?.id}`)
    for (const size of [1, 2, 4, 6]) {
      const seen: string[] = []
      for (let after: string | null = null; seen.length < 6; ) {
        const page = (await ask(merchant.token, both, { first: size, after })) as unknown as Page
        expect(page.totalCount).toBe(6)
        expect(page.edges.length).toBe(Math.min(size, 6 - seen.length))
        seen.push(...page.edges.map(({ cursor }) => cursor.split('_')[1] ?? ''))
        after = page.edges.at(-1)?.cursor ?? null
      }
      expect(seen).toEqual(expected)
    }
  })

  test('lists the kinds that the token may see, and refuses a token that may see neither', async () => {
    const { merchant } = await team()
    const batch = await batches.waiting(merchant)
    const payout = await waiting(merchant)
    const seenBy = async (...scopes: string[]) => {
      const page = (await ask(await tokenFor(merchant, ...scopes), both)) as unknown as Page
      return [page.totalCount, ...page.edges.map(({ node }) => node.kind)]
    }
    expect(await seenBy('payout')).toEqual([1, 'Payout'])
    expect(await seenBy('bulk_pay')).toEqual([1, 'Batch'])
    expect(await seenBy('bulk_pay', 'payout')).toEqual([2, 'Batch', 'Payout'])
    const neither = await tokenFor(merchant, 'pay')
    expect(await ask(neither, both)).toEqual({ code: 'FORBIDDEN' })
    expect(await ask(await tokenFor(merchant, 'payout'), batchesOnly)).toEqual({ code: 'FORBIDDEN' })
    expect(await ask(await tokenFor(merchant, 'bulk_pay'), batchesOnly)).toEqual({
      nodes: [{ databaseId: batch.id, approval: { digest: batch.digest, canApprove: false } }],
    })
    expect(payout.id).toBeGreaterThan(0)
  })

  const batchesOnly = `{ approvalsWaiting { nodes { ... on Batch { databaseId
    approval { digest canApprove } } } } }`
})

test('approvalsChanged delivers each request, decision and end, in order', async () => {
  const { merchant, person } = await team(2)
  const [one, two] = [await person(), await person()]
  const query = `subscription { approvalsChanged(after: "0") { type status approvals memberId reason
    payout { databaseId approval { canApprove } } } }`
  const [good, bad, cancelled] = [await waiting(merchant), await waiting(merchant), await waiting(merchant)]
  await payOut(merchant, { amount: 1_000 })
  await approve(one, good)
  await reject(one, bad, 'no')
  await approve(two, good)
  await cancel(merchant, cancelled.id)
  const changes = (await firstChanges(one.token, query, 7)).map(
    ({ type, payout, status, approvals, memberId, reason }) => [
      type,
      (payout as ApprovalAnswer)['databaseId'],
      status,
      approvals,
      memberId,
      reason,
    ],
  )
  expect(changes).toEqual([
    ['PAYOUT_PENDING', good.id, 'PENDING', null, null, null],
    ['PAYOUT_PENDING', bad.id, 'PENDING', null, null, null],
    ['PAYOUT_PENDING', cancelled.id, 'PENDING', null, null, null],
    ['APPROVAL_GIVEN', good.id, 'PENDING', 1, one.memberId, null],
    ['PAYOUT_CANCELLED', bad.id, 'REJECTED', null, one.memberId, 'no'],
    ['APPROVAL_GIVEN', good.id, 'APPROVED', 2, two.memberId, null],
    ['PAYOUT_CANCELLED', cancelled.id, 'PENDING', null, null, null],
  ])
})

test('approvalsChanged delivers batches too, limited to the kinds of the token', async () => {
  const { merchant, person } = await team(2)
  const [one, two] = [await person(), await person()]
  const good = await batches.waiting(merchant)
  const bad = await batches.waiting(merchant)
  await batches.approve(one, good)
  const payout = await waiting(merchant)
  await batches.reject(two, bad, 'no')
  await batches.approve(two, good)
  const cancelled = await batches.waiting(merchant)
  await fixture.rest('POST', `/bulk/batches/${cancelled.id}/cancel`, { token: merchant.token })
  await cancel(merchant, payout.id)
  const query = `subscription { approvalsChanged(after: "0") { type status approvals memberId
    payout { databaseId } batch { databaseId approval { required } } } }`
  const line = ({ type, status, approvals, memberId, payout: paid, batch }: ApprovalAnswer) => [
    type,
    ((batch ?? paid) as ApprovalAnswer)['databaseId'],
    status,
    approvals,
    memberId,
  ]
  const expectedChanges = [
    ['BATCH_PENDING_APPROVAL', good.id, 'PENDING', null, null],
    ['BATCH_PENDING_APPROVAL', bad.id, 'PENDING', null, null],
    ['APPROVAL_GIVEN', good.id, 'PENDING', 1, one.memberId],
    ['PAYOUT_PENDING', payout.id, 'PENDING', null, null],
    ['BATCH_CANCELLED', bad.id, 'REJECTED', null, two.memberId],
    ['APPROVAL_GIVEN', good.id, 'APPROVED', 2, two.memberId],
    ['BATCH_PENDING_APPROVAL', cancelled.id, 'PENDING', null, null],
    ['BATCH_CANCELLED', cancelled.id, 'PENDING', null, null],
    ['PAYOUT_CANCELLED', payout.id, 'PENDING', null, null],
  ]
  expect((await firstChanges(one.token, query, expectedChanges.length)).map(line)).toEqual(expectedChanges)
  const typeOnly = 'subscription { approvalsChanged(after: "0") { type } }'
  const typesHeardBy = async (scope: string, count: number) =>
    (await firstChanges(await tokenFor(merchant, scope), typeOnly, count)).map(({ type }) => type)
  expect(await typesHeardBy('payout', 2)).toEqual(['PAYOUT_PENDING', 'PAYOUT_CANCELLED'])
  const ofBatches = expectedChanges.filter(([, id]) => id !== payout.id).map(([type]) => type)
  expect(await typesHeardBy('bulk_pay', ofBatches.length)).toEqual(ofBatches)
})

test('two members with the same subscription each get their own canApprove', async () => {
  const { merchant, person } = await team()
  const [maker, other] = [await person(), await person()]
  const query = `subscription { approvalsChanged(after: "0") {
    payout { databaseId approval { canApprove } } } }`
  const readers = [maker, other, merchant].map(({ token }) => approvalChanges(fixture, token, query))
  const heardByAll = async () => {
    const changes = await Promise.all(
      readers.map(async (reader) => (await reader.next()).value as ApprovalAnswer),
    )
    return changes.map(({ payout }) => {
      const { databaseId, approval } = payout as ApprovalAnswer
      return [databaseId, (approval as ApprovalAnswer)['canApprove']]
    })
  }
  // Each reader has caught up once it has received its first change; later changes reach all readers live.
  for (let round = 1; round <= 4; round += 1) {
    const { id } = await waiting(maker)
    expect(await heardByAll()).toEqual([
      [id, false],
      [id, true],
      [id, false],
    ])
  }
})

/** The first changes that a client of WebSockets receives. */
async function firstChanges(token: string, query: string, count: number): Promise<ApprovalAnswer[]> {
  const changes: ApprovalAnswer[] = []
  for await (const change of approvalChanges(fixture, token, query)) {
    changes.push(change)
    if (changes.length === count) break
  }
  return changes
}
