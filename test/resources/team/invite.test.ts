import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { passwordBounds } from '../../../src/identity/members/passwords.ts'
import { commands } from '../../../src/terminal/commands.ts'
import { startTestApp, type TestApp, type TestMerchant } from '../../kit/app.ts'
import { eventually } from '../../kit/eventually.ts'
import { useBounds } from '../../kit/use-bounds.ts'

// `passwords.test.ts` tests the cost of a password hash.
useBounds(passwordBounds, { memoryKib: 64, passes: 1 })

let service: TestApp
let shop: TestMerchant
beforeAll(async () => {
  service = await startTestApp()
})
afterAll(() => service.close())
beforeEach(async () => {
  shop = await service.merchant()
})

interface Invitation {
  merchant_id: number
  member_id: number
  role: string
  invitation: string
  link: string
}

const person = { email: 'A@b.ml', name: 'Awa Traoré' }

async function command(name: string, flags: object = {}): Promise<{ answer: Invitation; words: string }> {
  const given = { merchant: String(shop.merchantId), ...person, ...flags }
  const { services } = service.app
  const config = { ...services.config, publicUrl: 'https://pay.test' }
  const done = await commands[name]?.({ ...services, config }, given)
  return done as { answer: Invitation; words: string }
}

async function join(link: string) {
  const document = `mutation ($input: AcceptInvitationInput!) { acceptInvitation(input: $input) {
    ... on SignedIn { memberId name email role } ... on Refusal { code } } }`
  const [, token = ''] = /^https:\/\/pay\.test\/join#([\w-]{43})$/.exec(link) ?? []
  const password = 'le soleil de Bamako'
  const { body } = await service.graphql(document, { input: { token, password } })
  return body['data'].acceptInvitation
}

const lapse = (memberId: number) =>
  service.database.owner.query(
    `UPDATE member_secret SET invitation_expires_at = now() - interval '1 second' WHERE member_id = $1`,
    [memberId],
  )

test('owner invite shows a link with which the owner joins', async () => {
  const { answer, words } = await command('owner invite')
  expect(answer).toEqual({
    merchant_id: shop.merchantId,
    member_id: expect.any(Number),
    role: 'owner',
    invitation: expect.stringMatching(/^[\w-]{43}$/),
    link: `https://pay.test/join#${answer.invitation}`,
  })
  expect(words).toContain(answer.link)
  const owner = { memberId: answer.member_id, name: 'Awa Traoré', email: 'a@b.ml', role: 'OWNER' }
  expect(await join(answer.link)).toEqual(owner)
})

test('member invite shows a link too, for the role that it names', async () => {
  const { answer } = await command('member invite', { role: 'finance' })
  expect(await join(answer.link)).toMatchObject({ role: 'FINANCE' })
})

test('a second invitation replaces the first one, also one that lapsed, and is recorded', async () => {
  const first = await command('owner invite')
  const second = await command('owner invite', { name: 'Awa T.' })
  expect(second.answer).toMatchObject({ member_id: first.answer.member_id, role: 'owner' })
  expect(second.words).toContain('the link before this one stopped working')
  expect(await join(first.answer.link)).toEqual({ code: 'INVALID_INPUT' })
  await lapse(second.answer.member_id)
  expect(await join(second.answer.link)).toEqual({ code: 'INVALID_INPUT' })
  const third = await command('owner invite', { name: 'Awa T.' })
  expect(await join(third.answer.link)).toMatchObject({ name: 'Awa T.', role: 'OWNER' })
  const { rows } = await service.database.owner.query(
    `SELECT operation, actor, after FROM audit_entry WHERE target = $1 AND actor = 'platform' ORDER BY id`,
    [`member:${first.answer.member_id}`],
  )
  expect(rows).toMatchObject([
    { operation: 'owner invite', after: { status: 'invited' } },
    { operation: 'owner invite', after: { name: 'Awa T.', role: 'owner', invitation: 'renewed' } },
    { operation: 'owner invite', after: { name: 'Awa T.', role: 'owner', invitation: 'renewed' } },
  ])
  await eventually(async () => {
    const mails = await service.database.owner.query(
      `SELECT FROM mail WHERE merchant_id = $1 AND template = 'invitation' AND encrypted IS NULL`,
      [shop.merchantId],
    )
    expect(mails.rows).toHaveLength(3)
  })
})

test('a new invitation keeps the role unless the command names one', async () => {
  const roles = []
  for (const [name, flags] of [
    ['member invite', { role: 'finance' }],
    ['member invite', {}],
    ['owner invite', {}],
    ['member invite', {}],
    ['member invite', { role: 'viewer' }],
  ] as const)
    roles.push((await command(name, flags)).answer.role)
  expect(roles).toEqual(['finance', 'finance', 'owner', 'owner', 'viewer'])
})

test('a member who has joined is refused in words, and nothing changes', async () => {
  const { answer } = await command('member invite', { role: 'finance' })
  await join(answer.link)
  const message = expect.stringMatching(/^a@b\.ml has joined the team of merchant \d+ already, as finance/)
  for (const name of ['owner invite', 'member invite'])
    await expect(command(name)).rejects.toMatchObject({ code: 'ALREADY_MEMBER', message })
  const { rows } = await service.database.owner.query(
    `SELECT t.role, s.invitation_hash AS invitation
     FROM team_member t JOIN member_secret s ON s.member_id = t.id WHERE t.id = $1`,
    [answer.member_id],
  )
  expect(rows).toEqual([{ role: 'finance', invitation: null }])
})

test('an acceptance and a new invitation at the same time: the person joins, or has a link', async () => {
  for (let round = 0; round < 5; round += 1) {
    const email = `race${round}@b.ml`
    const { answer } = await command('owner invite', { email })
    const [joined, renewed] = await Promise.all([
      join(answer.link),
      command('owner invite', { email }).catch((error: { code: string }) => error.code),
    ])
    const links = typeof renewed === 'object' ? [renewed.answer.link] : []
    const later = await Promise.all(links.map(join))
    const entered = [joined, ...later].filter(({ memberId }) => memberId === answer.member_id)
    expect(entered).toHaveLength(1)
  }
})

test('a removed member is invited anew, and a merchant that is not there has no team', async () => {
  const { answer } = await command('member invite', { role: 'viewer' })
  await service.database.owner.query('SELECT remove_member($1)', [answer.member_id])
  const again = await command('member invite', { role: 'viewer' })
  expect(again.answer.member_id).not.toBe(answer.member_id)
  await expect(command('owner invite', { merchant: '999999' })).rejects.toMatchObject({ code: 'NOT_FOUND' })
})
