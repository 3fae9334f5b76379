import { describe, expect, test } from 'vitest'
import type { TestMerchant } from '../../kit/app.ts'
import { type ApprovalAnswer, approvalChanges, approvalsOn } from '../../kit/approvals.ts'
import { batchApprovalsOn } from '../../kit/batch-approvals.ts'
import { bulkOn, row } from '../../kit/bulk.ts'
import { makeMember, type TestMember } from '../../kit/members.ts'
import { day, payoutsOn } from '../../kit/payouts.ts'
import { hour, openFixture } from '../../kit/fixture.ts'

// The author and the time of a request that waits for an approval (see docs/design/rules.md#approvals).
const fixture = await openFixture()
const { owner } = fixture.database
const { access } = fixture.app.services
const { ask, approve, waiting, reject } = approvalsOn(fixture)
const { payOut } = payoutsOn(fixture)
const batches = batchApprovalsOn(fixture)
const { call, draft, process, cancel, ended } = bulkOn(fixture)

type Token = Pick<TestMerchant, 'token'>
const author = '{ actor kind name member { databaseId name } }'
const request = `requestedBy ${author} requestedAt expiresAt`

/** A merchant with money whose deposits, payouts and batches of 2,000 F and more wait for one approval. */
async function shopWithApprovals(): Promise<TestMerchant> {
  const shop = await fixture.merchant()
  await fixture.fund(shop, 1_000_000)
  const body = { payouts_require_approval: true, approval_threshold: 2_000, approvals_cover_deposits: true }
  expect(await fixture.rest('PUT', '/settings', { token: shop.token, body })).toMatchObject({ status: 200 })
  return shop
}

const person = ({ merchantId }: TestMerchant, name: string, role: 'owner' | 'finance' = 'owner') =>
  makeMember(access, merchantId, role, name)

const scopes = ['payout', 'bulk_pay', 'deposit', 'balance']
const credentials = '{ ... on IssuedApiKey { key secret apiKey { databaseId } } }'
/** Makes a token of the key that a mutation issues. */
async function tokenOf(issued: ApprovalAnswer): Promise<{ token: string; keyId: number }> {
  const headers = { 'X-API-Key': String(issued['key']), 'X-API-Secret': String(issued['secret']) }
  const { body } = await fixture.rest('POST', '/auth', { headers, body: { scopes } })
  const { databaseId } = issued['apiKey'] as { databaseId: number }
  return { token: body['data'].token, keyId: databaseId }
}
/** Makes an API key with the name "till", whose secret goes to the member. */
const keyBy = async ({ token }: Token) =>
  tokenOf(
    await ask(
      token,
      `mutation { createApiKey(input: { name: "till", scopes: [${scopes.join(' ').toUpperCase()}] })
        ${credentials} }`,
    ),
  )
/** Gives the secret of a key to another member. */
const regenerate = async ({ token }: Token, keyId: number) =>
  tokenOf(
    await ask(token, `mutation ($id: ID!) { regenerateApiKey(id: $id) ${credentials} }`, {
      id: String(keyId),
    }),
  )

const memberAuthor = ({ memberId }: TestMember, name: string) => ({
  actor: `member:${memberId}`,
  kind: 'MEMBER',
  name,
  member: { databaseId: memberId, name },
})
const keyAuthor = (keyId: number, holder: { memberId: number; name: string } | null) => ({
  actor: `api_key:${keyId}`,
  kind: 'API_KEY',
  name: 'till',
  member: holder && { databaseId: holder.memberId, name: holder.name },
})

const read = async ({ token }: Token, field: string, id: number, selection: string) =>
  (await ask(
    token,
    `query ($id: ${field === 'batch' ? 'ID!' : 'ID'}) { ${field}(id: $id) { ${selection} } }`,
    { id: String(id) },
  )) as {
    approval: ApprovalAnswer
    createdBy: ApprovalAnswer
    createdAt: string
  }
const payoutOf = (by: Token, id: number) =>
  read(by, 'payout', id, `createdAt createdBy ${author} approval { ${request} }`)
const batchOf = (by: Token, id: number) =>
  read(by, 'batch', id, `createdAt createdBy ${author} approval { ${request} }`)
const depositOf = (by: Token, id: number) => read(by, 'transaction', id, `createdAt approval { ${request} }`)

/** `POST /deposit` that waits. @returns the id of its transaction */
async function depositBy(by: Token): Promise<number> {
  const { status, body } = await fixture.deposit(by, { amount: 5_000 })
  expect(status).toBe(202)
  return body.data.transaction_id
}

/** The time of the request follows from the time at which the approval expires. */
const weekBefore = ({ expiresAt }: ApprovalAnswer) =>
  new Date(Date.parse(String(expiresAt)) - 7 * day).toISOString()

describe('a payout names who requested it', () => {
  test('a member, at the time of its creation, also after the member was removed', async () => {
    const shop = await shopWithApprovals()
    const [boss, awa] = [await person(shop, 'moussa'), await person(shop, 'awa', 'finance')]
    const { id } = await waiting(awa)
    const seen = await payoutOf(boss, id)
    const expected = memberAuthor(awa, 'awa')
    expect(seen).toMatchObject({ createdBy: expected, approval: { requestedBy: expected } })
    expect(seen.approval['requestedAt']).toBe(seen.createdAt)
    expect(seen.createdAt).toBe(weekBefore(seen.approval))
    const removed = await ask(boss.token, 'mutation ($id: ID!) { removeMember(id: $id) { __typename } }', {
      id: String(awa.memberId),
    })
    expect(removed).not.toHaveProperty('code')
    expect(await payoutOf(boss, id)).toEqual(seen)
  })

  test('an API key, and the member who had its secret then, not the later holder', async () => {
    const shop = await shopWithApprovals()
    const [awa, moussa] = [await person(shop, 'awa'), await person(shop, 'moussa')]
    const till = await keyBy(awa)
    const { id, digest } = await waiting(till)
    await regenerate(moussa, till.keyId)
    const expected = keyAuthor(till.keyId, { memberId: awa.memberId, name: 'awa' })
    expect(await payoutOf(moussa, id)).toMatchObject({
      createdBy: expected,
      approval: { requestedBy: expected },
    })
    expect(await approve(awa, { id, digest })).toMatchObject({ code: 'FORBIDDEN' })
    expect(await approve(moussa, { id, digest })).toMatchObject({ __typename: 'Payout' })
    expect((await payoutOf(moussa, id)).approval).toMatchObject({ requestedBy: expected })
  })

  test('an API key alone, where no member is known to have received its secret', async () => {
    const shop = await shopWithApprovals()
    const boss = await person(shop, 'moussa')
    const { id } = await waiting(shop)
    const { approval } = await payoutOf(boss, id)
    expect(approval['requestedBy']).toMatchObject({ kind: 'API_KEY', name: expect.any(String), member: null })
    await reject(boss, { id })
  })

  test('only as its creator, where it needs no approval', async () => {
    const shop = await shopWithApprovals()
    const awa = await person(shop, 'awa')
    const till = await keyBy(awa)
    for (const [by, createdBy] of [
      [awa, memberAuthor(awa, 'awa')],
      [till, keyAuthor(till.keyId, null)],
    ] as const) {
      const { body } = await payOut(by as unknown as TestMerchant, { amount: 1_000 })
      expect(await payoutOf(awa, body['data'].id)).toMatchObject({
        createdBy,
        approval: { requestedBy: null, requestedAt: null, expiresAt: null },
      })
    }
  })

  test('in a list by that author, in the form of the filter', async () => {
    const shop = await shopWithApprovals()
    const [awa, moussa] = [await person(shop, 'awa'), await person(shop, 'moussa')]
    const [own] = [await waiting(awa), await waiting(moussa)]
    const { createdBy } = await payoutOf(moussa, own.id)
    const document = `query ($by: String) { payouts(filter: { createdBy: $by }) { nodes { databaseId } } }`
    expect(await ask(moussa.token, document, { by: createdBy['actor'] })).toEqual({
      nodes: [{ databaseId: own.id }],
    })
  })
})

describe('a batch names who requested its processing', () => {
  test('another member than the creator, at the time of that request', async () => {
    const shop = await shopWithApprovals()
    const [awa, moussa] = [await person(shop, 'awa', 'finance'), await person(shop, 'moussa', 'finance')]
    const till = await keyBy(await person(shop, 'fatou'))
    const id = await draft(till as unknown as TestMerchant, [row()])
    // A dry run writes nothing.
    expect((await call(shop, 'POST', `/${id}/process`, { dry_run: true })).status).toBe(200)
    expect(await batchOf(awa, id)).toMatchObject({ approval: { requestedBy: null, requestedAt: null } })
    await fixture.advance(hour)
    await batches.send(moussa, id)
    await fixture.advance(hour)
    const { createdBy, createdAt, approval } = await batchOf(awa, id)
    expect(createdBy).toMatchObject({ actor: `api_key:${till.keyId}`, member: { name: 'fatou' } })
    expect(approval['requestedBy']).toEqual(memberAuthor(moussa, 'moussa'))
    expect(approval['requestedAt']).toBe(weekBefore(approval))
    expect(Date.parse(String(approval['requestedAt'])) - Date.parse(createdAt)).toBeGreaterThanOrEqual(hour)
  })

  test('an API key, and the member who had its secret then', async () => {
    const shop = await shopWithApprovals()
    const [awa, moussa] = [await person(shop, 'awa'), await person(shop, 'moussa')]
    const till = await keyBy(awa)
    const id = await draft(moussa as unknown as TestMerchant, [row()])
    await batches.send(till, id)
    await regenerate(moussa, till.keyId)
    const { createdBy, approval } = await batchOf(moussa, id)
    expect(createdBy).toEqual(memberAuthor(moussa, 'moussa'))
    expect(approval['requestedBy']).toEqual(keyAuthor(till.keyId, { memberId: awa.memberId, name: 'awa' }))
  })

  test('the creator alone, where the batch needs no approval or is still a draft', async () => {
    const shop = await fixture.merchant()
    await fixture.fund(shop, 100_000)
    const [awa, moussa] = [await person(shop, 'awa'), await person(shop, 'moussa')]
    const id = await draft(awa as unknown as TestMerchant, [row('01')])
    expect((await process(moussa as unknown as TestMerchant, id)).status).toBe(202)
    await ended(shop, id)
    const none = { requestedBy: null, requestedAt: null, expiresAt: null }
    expect(await batchOf(awa, id)).toMatchObject({ createdBy: memberAuthor(awa, 'awa'), approval: none })
    // The draft that retries the failed recipients has its own creator.
    const retry = await ask(
      moussa.token,
      `mutation ($id: ID!) { retryFailed(batchId: $id) { ... on BatchPayload { batch {
        createdBy ${author} approval { ${request} } } } } }`,
      { id: String(id) },
    )
    expect(retry['batch']).toMatchObject({ createdBy: memberAuthor(moussa, 'moussa'), approval: none })
  })

  test('also after it was cancelled, and no statement changes that', async () => {
    const shop = await shopWithApprovals()
    const [awa, moussa] = [await person(shop, 'awa'), await person(shop, 'moussa')]
    const { id } = await batches.waiting(awa)
    for (const change of [
      `approval_requested_by = 'member:${moussa.memberId}'`,
      `approval_requester_id = ${moussa.memberId}`,
      `approval_requested_at = approval_requested_at + interval '1 day'`,
      'approval_requested_by = NULL, approval_requested_at = NULL, approval_requester_id = NULL',
    ]) {
      const forged = owner.query(`UPDATE batch SET ${change} WHERE id = $1`, [id])
      await expect(forged).rejects.toMatchObject({ code: '23000' })
    }
    expect((await cancel(shop, id)).status).toBe(200)
    expect((await batchOf(moussa, id)).approval['requestedBy']).toEqual(memberAuthor(awa, 'awa'))
  })
})

describe('a deposit names who requested it', () => {
  test('a member or an API key, at the time of its creation', async () => {
    const shop = await shopWithApprovals()
    const [boss, awa] = [await person(shop, 'moussa'), await person(shop, 'awa', 'finance')]
    const till = await keyBy(boss)
    for (const [by, requestedBy] of [
      [awa, memberAuthor(awa, 'awa')],
      [till, keyAuthor(till.keyId, { memberId: boss.memberId, name: 'moussa' })],
    ] as const) {
      const { createdAt, approval } = await depositOf(boss, await depositBy(by))
      expect(approval).toMatchObject({ requestedBy, requestedAt: createdAt })
      expect(createdAt).toBe(weekBefore(approval))
    }
  })
})

test('a change of the settings names the member who requested it', async () => {
  const shop = await shopWithApprovals()
  const [boss, awa] = [await person(shop, 'moussa'), await person(shop, 'awa')]
  const body = { approval_threshold: 5_000 }
  expect((await fixture.rest('PUT', '/settings', { token: awa.token, body })).status).toBe(202)
  const { pendingChange } = await ask(
    boss.token,
    `{ settings { pendingChange { createdAt approval { ${request} } } } }`,
  )
  const { createdAt, approval } = pendingChange as { createdAt: string; approval: ApprovalAnswer }
  expect(approval).toMatchObject({ requestedBy: memberAuthor(awa, 'awa'), requestedAt: createdAt })
  expect(createdAt).toBe(weekBefore(approval))
})

test('approvalsWaiting names who requested each item of the four kinds', async () => {
  const shop = await shopWithApprovals()
  const boss = await person(shop, 'moussa')
  const people = await Promise.all(['awa', 'fatou', 'sira', 'bintou'].map((name) => person(shop, name)))
  const [awa, fatou, sira, bintou] = people as [TestMember, TestMember, TestMember, TestMember]
  await waiting(awa)
  await batches.waiting(fatou)
  const body = { approval_threshold: 5_000 }
  expect((await fixture.rest('PUT', '/settings', { token: sira.token, body })).status).toBe(202)
  await depositBy(bintou)
  const each = ['Payout', 'Batch', 'SettingsChange', 'DepositApproval'].map(
    (kind) => `... on ${kind} { approval { ${request} } }`,
  )
  const { nodes } = (await ask(
    boss.token,
    `{ approvalsWaiting { nodes { __typename ${each.join(' ')} } } }`,
  )) as {
    nodes: { __typename: string; approval: ApprovalAnswer }[]
  }
  expect(nodes.map(({ __typename, approval }) => [__typename, approval['requestedBy']])).toEqual([
    ['Payout', memberAuthor(awa, 'awa')],
    ['Batch', memberAuthor(fatou, 'fatou')],
    ['SettingsChange', memberAuthor(sira, 'sira')],
    ['DepositApproval', memberAuthor(bintou, 'bintou')],
  ])
  for (const { approval } of nodes) expect(approval['requestedAt']).toBe(weekBefore(approval))
})

test('approvalsChanged names who requested the payout, the same for each reader', async () => {
  const shop = await shopWithApprovals()
  const [awa, moussa] = [await person(shop, 'awa'), await person(shop, 'moussa')]
  const query = `subscription { approvalsChanged(after: "0") {
    payout { databaseId createdBy { name }
      approval { requestedBy { name member { name } } requestedAt } } } }`
  const readers = [awa, moussa, shop].map(({ token }) => approvalChanges(fixture, token, query))
  // Each reader has caught up once it has received its first change; later changes reach all readers live.
  for (let round = 1; round <= 3; round += 1) {
    const { id } = await waiting(awa)
    const { createdAt: requestedAt } = await payoutOf(awa, id)
    const requestedBy = { name: 'awa', member: { name: 'awa' } }
    const payout = { databaseId: id, createdBy: { name: 'awa' }, approval: { requestedBy, requestedAt } }
    const heard = await Promise.all(readers.map(async (reader) => (await reader.next()).value))
    expect(heard).toEqual([{ payout }, { payout }, { payout }])
  }
})

test('a name of another merchant is never read, even where a row names its member or its key', async () => {
  const [shop, other] = [await shopWithApprovals(), await shopWithApprovals()]
  const stranger = await person(other, 'stranger')
  const strangeKey = await keyBy(stranger)
  const boss = await person(shop, 'moussa')
  for (const actor of [`member:${stranger.memberId}`, `api_key:${strangeKey.keyId}`, 'unknown']) {
    const { id } = await waiting(boss)
    // A trigger keeps the maker fixed; it is off here, to make a row that no statement of the service makes.
    await owner.query('ALTER TABLE payout DISABLE TRIGGER payout_guard')
    await owner.query('UPDATE payout SET maker = $2 WHERE id = $1', [id, actor])
    await owner.query('ALTER TABLE payout ENABLE TRIGGER payout_guard')
    expect((await payoutOf(boss, id)).createdBy).toMatchObject({ actor, name: actor })
    await reject(boss, { id })
  }
})
