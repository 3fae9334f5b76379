import { eventually } from '../../kit/eventually.ts'
import { commands } from '../../../src/terminal/commands.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { makeMember, type TestMember } from '../../kit/members.ts'
import { startTestApp, type TestApp, type TestMerchant } from '../../kit/app.ts'

let service: TestApp
let shop: TestMerchant
beforeAll(async () => {
  service = await startTestApp()
  shop = await service.merchant('Épicerie')
})
afterAll(() => service.close())

let people = 0
const newPerson = (role?: string) => {
  people += 1
  return { name: `Awa ${people}`, email: `awa${people}@shop.test`, ...(role && { role }) }
}
const invite = (body: object, token = shop.token) => service.rest('POST', '/team/invite', { token, body })
const member = (merchantId: number, role: Parameters<typeof makeMember>[2]) =>
  makeMember(service.app.services.access, merchantId, role)
const setRole = (id: unknown, role: string, token = shop.token) =>
  service.rest('PUT', `/team/${String(id)}/role`, { token, body: { role } })
const remove = (id: unknown, token = shop.token) => service.rest('DELETE', `/team/${String(id)}`, { token })
const find = (id: unknown, token = shop.token) => service.rest('GET', `/team/${String(id)}`, { token })
const alive = async ({ token }: TestMember) => (await service.rest('GET', '/transactions', { token })).status

test('an invitation is 201 with the envelope alone and a Location; a known address is 409', async () => {
  const person = newPerson('finance')
  const { status, headers, body } = await invite(person)
  expect({ status, body }).toEqual({ status: 201, body: { success: true, request_id: expect.any(String) } })
  const location = headers.get('location') ?? ''
  expect(location).toMatch(/^\/merchant\/api\/team\/\d+$/)
  const { body: found } = await find(location.split('/').at(-1))
  expect(found['data']).toEqual({
    id: expect.any(Number),
    ...person,
    status: 'invited',
    created_at: expect.any(String),
  })
  const again = await invite({ ...person, email: person.email.toUpperCase() })
  expect(again).toMatchObject({ status: 409, body: { success: false } })
  // The address is free at another merchant.
  expect(await invite(person, (await service.merchant()).token)).toMatchObject({ status: 201 })
})

test('50 invitations of one address at once are one', async () => {
  const person = newPerson()
  const answers = await Promise.all(Array.from({ length: 50 }, () => invite(person)))
  expect(answers.filter(({ status }) => status === 201)).toHaveLength(1)
  expect(answers.filter(({ status }) => status === 409)).toHaveLength(49)
})

test('an invitation under an Idempotency-Key is one, and its repeat gets the same Location', async () => {
  const once = { token: shop.token, body: newPerson(), headers: { 'Idempotency-Key': 'invite-once' } }
  const first = await service.rest('POST', '/team/invite', once)
  const repeat = await service.rest('POST', '/team/invite', once)
  expect([first.status, repeat.status]).toEqual([201, 201])
  expect(repeat.headers.get('location')).toBe(first.headers.get('location'))
})

test('a missing or wrong field is 400, with its name', async () => {
  const { status, body } = await invite({ email: 'nobody', role: 'king' })
  expect(status).toBe(400)
  expect(body['errors'].map(({ field }: { field: string }) => field)).toEqual(['name', 'email', 'role'])
  expect(await setRole(1, 'king')).toMatchObject({ status: 400, body: { errors: [{ field: 'role' }] } })
})

test('the team is a bare array, newest first, a page at a time', async () => {
  const { token, merchantId } = await service.merchant()
  for (const role of ['owner', 'admin', 'viewer'] as const) await member(merchantId, role)
  const { headers, body } = await service.rest('GET', '/team?limit=2', { token })
  expect(body['data'].map(({ role }: { role: string }) => role)).toEqual(['viewer', 'admin'])
  expect(headers.get('x-total-count')).toBe('3')
  expect(headers.get('link')).toContain('rel="next"')
})

test('another role ends the sessions of a member, and a higher one raises an alert', async () => {
  const finance = await member(shop.merchantId, 'finance')
  expect(await alive(finance)).toBe(200)
  const { status, body } = await setRole(finance.memberId, 'admin')
  expect({ status, body }).toEqual({ status: 200, body: { success: true, request_id: expect.any(String) } })
  await eventually(async () => expect(await alive(finance)).toBe(401))
  const { rows } = await service.database.owner.query(
    `SELECT data FROM event WHERE type = 'security_alert' AND data->>'team_member_id' = $1`,
    [String(finance.memberId)],
  )
  expect(rows).toMatchObject([{ data: { kind: 'role_raised', ip: '127.0.0.1' } }])
})

test('a removed member soon loses access, and may be invited again', async () => {
  const removed = await member(shop.merchantId, 'admin')
  const { body } = await find(removed.memberId)
  expect(await remove(removed.memberId)).toMatchObject({ status: 200, body: { success: true } })
  await eventually(async () => expect(await alive(removed)).toBe(401))
  expect(await find(removed.memberId)).toMatchObject({ status: 404 })
  expect(await remove(removed.memberId)).toMatchObject({ status: 404 })
  expect(await setRole(removed.memberId, 'viewer')).toMatchObject({ status: 404 })
  expect(await invite({ ...newPerson(), email: body['data'].email })).toMatchObject({ status: 201 })
})

test('the last owner is neither demoted nor removed; of two tried 20 times at once, one stays', async () => {
  const { token, merchantId } = await service.merchant()
  const owners = [await member(merchantId, 'owner'), await member(merchantId, 'owner')]
  const boss = await member(merchantId, 'owner')
  expect(await remove(boss.memberId, boss.token)).toMatchObject({ status: 200 })
  const [first, second] = owners as [TestMember, TestMember]
  const tries = await Promise.all(
    Array.from({ length: 20 }, (_, n) =>
      n % 2 === 0 ? setRole(second.memberId, 'admin', first.token) : remove(first.memberId, second.token),
    ),
  )
  expect(tries.filter(({ status }) => status === 200).length).toBeGreaterThan(0)
  const { body } = await service.rest('GET', '/team', { token })
  const left = body['data'].filter(({ role }: { role: string }) => role === 'owner')
  expect(left).toHaveLength(1)
  const last = owners.find(({ memberId }) => memberId === left[0].id) as TestMember
  expect(await remove(last.memberId, last.token)).toMatchObject({ status: 409 })
  expect(await setRole(last.memberId, 'admin', last.token)).toMatchObject({ status: 409 })
})

test('of two owners who remove each other at once one stays, in each of five teams', async () => {
  for (let team = 0; team < 5; team += 1) {
    const { merchantId } = await service.merchant()
    const [first, second] = [await member(merchantId, 'owner'), await member(merchantId, 'owner')]
    const tries = await Promise.all([
      remove(second.memberId, first.token),
      remove(first.memberId, second.token),
    ])
    const statuses = tries.map(({ status }) => status).toSorted((a, b) => a - b)
    // The second is the last owner by then, or has been removed itself before its request began.
    expect([
      [200, 401],
      [200, 409],
    ]).toContainEqual(statuses)
    const { rows } = await service.database.owner.query(
      `SELECT FROM team_member WHERE merchant_id = $1 AND role = 'owner' AND status = 'active'`,
      [merchantId],
    )
    expect(rows).toHaveLength(1)
  }
})

test('an admin manages all but owners; an API key names the first owner; finance has no team', async () => {
  const { token, merchantId } = await service.merchant()
  expect(await invite(newPerson('owner'), token)).toMatchObject({ status: 201 })
  expect(await invite(newPerson('owner'), token)).toMatchObject({ status: 403 })
  const [owner, admin] = [await member(merchantId, 'owner'), await member(merchantId, 'admin')]
  expect(await setRole(owner.memberId, 'viewer', token)).toMatchObject({ status: 403 })
  expect(await setRole(owner.memberId, 'viewer', admin.token)).toMatchObject({ status: 403 })
  expect(await remove(owner.memberId, admin.token)).toMatchObject({ status: 403 })
  expect(await setRole(admin.memberId, 'owner', admin.token)).toMatchObject({ status: 403 })
  expect(await invite(newPerson('owner'), admin.token)).toMatchObject({ status: 403 })
  expect(await invite(newPerson('admin'), admin.token)).toMatchObject({ status: 201 })
  expect(await invite(newPerson('owner'), owner.token)).toMatchObject({ status: 201 })
  const finance = await member(merchantId, 'finance')
  expect(await invite(newPerson(), finance.token)).toMatchObject({
    status: 403,
    body: { required_scopes: ['team'] },
  })
})

test('a sandbox without a mail server shows its emails; by their links a person joins', async () => {
  const person = newPerson()
  await invite(person)
  const read = async () => (await fetch(`${service.url}/mail?lang=en`)).text()
  await eventually(async () => expect(await read()).toContain(person.email))
  const shown = await read()
  expect(shown).toContain('Invitation : Épicerie')
  const [, link = ''] = /href="([^"]*\/join\?lang=fr#[\w-]{43})"/.exec(shown) ?? []
  const page = await fetch(link)
  expect(page.headers.get('content-security-policy')).toContain("default-src 'none'")
  expect(await page.text()).toContain('acceptInvitation')
})

test('the platform invites the first owner, and shows the invitation', async () => {
  const { merchantId } = await service.merchant()
  const flags = { merchant: String(merchantId), email: 'Boss@Shop.test', name: 'Boss', role: 'owner' }
  const invited = commands['member invite']?.(service.app.services, flags)
  const { answer } = (await invited) ?? {}
  expect(answer).toEqual({
    merchant_id: merchantId,
    member_id: expect.any(Number),
    role: 'owner',
    invitation: expect.stringMatching(/^[\w-]{43}$/),
    link: expect.stringMatching(/\/join#[\w-]{43}$/),
  })
})
