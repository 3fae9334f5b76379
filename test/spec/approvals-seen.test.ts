import { createHash } from 'node:crypto'
import { createClient } from 'graphql-ws'
import { describe, expect, onTestFinished, test } from 'vitest'
import { WebSocket } from 'ws'
import { type Answer, approvalsOn } from './approvals-ground.ts'
import { day, payoutsOn } from './payouts-ground.ts'
import { customer, openStage } from './stage.ts'

// What people see of approvals: the digest of what they approve, what waits, and what becomes of it.
const stage = await openStage()
const { payOut, cancel, ahead } = payoutsOn(stage)
const { ask, team, waiting, approve, reject } = approvalsOn(stage)

test('what is approved can be computed from what is read', async () => {
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

  test('lists what waits, what expires first before the rest, and marks the caller’s', async () => {
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
        nodes: Answer[]
        totalCount: number
      }
      expect(totalCount).toBe(3)
      return nodes.map(({ databaseId, approval }) => [databaseId, (approval as Answer)['canApprove']])
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
})

test('approvalsChanged tells what waits, who decided, and how it ended, in order', async () => {
  const { merchant, person } = await team(2)
  const [one, two] = [await person(), await person()]
  const client = createClient({
    url: `${stage.url.replace('http', 'ws')}/graphql`,
    webSocketImpl: WebSocket,
    connectionParams: { authorization: `Bearer ${one.token}` },
  })
  onTestFinished(() => void client.dispose())
  const query = `subscription { approvalsChanged(after: "0") { type status approvals memberId reason
    payout { databaseId approval { canApprove } } } }`
  const [good, bad, gone] = [await waiting(merchant), await waiting(merchant), await waiting(merchant)]
  await payOut(merchant, { amount: 1_000 })
  await approve(one, good)
  await reject(one, bad, 'no')
  await approve(two, good)
  await cancel(merchant, gone.id)
  const heard: unknown[] = []
  for await (const { data, errors } of client.iterate({ query })) {
    expect(errors).toBeUndefined()
    const { payout, ...change } = (data ?? {})['approvalsChanged'] as Answer
    const { type, status, approvals, memberId, reason } = change
    heard.push([type, (payout as Answer)['databaseId'], status, approvals, memberId, reason])
    if (heard.length === 7) break
  }
  expect(heard).toEqual([
    ['PAYOUT_PENDING', good.id, 'PENDING', null, null, null],
    ['PAYOUT_PENDING', bad.id, 'PENDING', null, null, null],
    ['PAYOUT_PENDING', gone.id, 'PENDING', null, null, null],
    ['APPROVAL_GIVEN', good.id, 'PENDING', 1, one.memberId, null],
    ['PAYOUT_CANCELLED', bad.id, 'REJECTED', null, one.memberId, 'no'],
    ['APPROVAL_GIVEN', good.id, 'APPROVED', 2, two.memberId, null],
    ['PAYOUT_CANCELLED', gone.id, 'PENDING', null, null, null],
  ])
})
