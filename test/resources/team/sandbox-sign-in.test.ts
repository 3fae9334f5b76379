import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { makeMemberToken } from '../../../src/identity/members/member-tokens.ts'
import { createFirstMerchant } from '../../../src/resources/merchants/create.ts'
import { offerSandboxSignIn } from '../../../src/resources/team/sandbox-sign-in.ts'
import { startTestApp, type TestApp, type TestMerchant } from '../../kit/app.ts'
import { borrow } from '../../kit/client.ts'
import { eventually } from '../../kit/eventually.ts'
import { makeMember } from '../../kit/members.ts'

let service: TestApp
let shop: TestMerchant
beforeAll(async () => {
  service = await startTestApp()
})
afterAll(() => service.close())
beforeEach(async () => {
  shop = await service.merchant()
})

const offer = async (merchantId = shop.merchantId) =>
  (await offerSandboxSignIn(service.app.services, merchantId)) ?? ''

const document = `mutation ($input: SandboxSignInInput!) { sandboxSignIn(input: $input) {
  __typename ... on SignedIn { token merchantId memberId name email role }
  ... on InvalidInputError { code problems { field message } } ... on Refusal { code } } }`

async function use(token: string) {
  const { body } = await service.graphql(document, { input: { token } })
  return body['data']?.sandboxSignIn ?? body
}

/** The types of answers, sorted. */
const kindsOf = (answers: readonly { __typename: string }[]) =>
  answers.map(({ __typename }) => __typename).toSorted()

const unusable = {
  code: 'INVALID_INPUT',
  problems: [{ field: 'token', message: expect.stringContaining('is not a valid sign-in token') }],
}

const entriesOf = async (merchantId: number) => {
  const { rows } = await service.database.owner.query<{ operation: string; actor: string; target: string }>(
    'SELECT operation, actor, target FROM audit_entry WHERE merchant_id = $1 ORDER BY id',
    [merchantId],
  )
  return rows
}

const secretOf = async (merchantId: number) => {
  const { rows } = await service.database.owner.query<{ hash: Buffer | null; password: string | null }>(
    'SELECT sign_in_hash AS hash, password_hash AS password FROM member_secret WHERE merchant_id = $1',
    [merchantId],
  )
  return rows
}

test('the link adds an owner without a password, signs in once, and leaves entries in the log', async () => {
  const token = await offer()
  expect(token).toMatch(/^[\w-]{43}$/)
  expect(await secretOf(shop.merchantId)).toEqual([{ hash: expect.any(Buffer), password: null }])
  const owner = await use(token)
  expect(owner).toMatchObject({
    __typename: 'SignedIn',
    merchantId: shop.merchantId,
    name: 'Awa Traoré',
    email: 'owner@sandbox.example',
    role: 'OWNER',
  })
  const { body } = await service.graphql('{ me { member { email role } } }', {}, owner.token)
  expect(body['data'].me.member).toEqual({ email: 'owner@sandbox.example', role: 'OWNER' })
  expect(await secretOf(shop.merchantId)).toEqual([{ hash: null, password: null }])
  expect(await use(token)).toMatchObject(unusable)
  const who = `member:${owner.memberId}`
  expect((await entriesOf(shop.merchantId)).slice(-2)).toEqual([
    { operation: 'sandbox owner', actor: 'platform', target: who },
    { operation: 'sandboxSignIn', actor: who, target: expect.stringMatching(/^session:\d+$/) },
  ])
})

test('of two calls at the same time with one link, exactly one signs in', async () => {
  const token = await offer()
  const answers = await Promise.all([use(token), use(token), use(token), use(token)])
  expect(kindsOf(answers)).toEqual([...Array(3).fill('InvalidInputError'), 'SignedIn'])
  const { rows } = await service.database.owner.query('SELECT FROM session s WHERE merchant_id = $1', [
    shop.merchantId,
  ])
  expect(rows).toHaveLength(1)
})

test('of two calls that have both read the member, one opens a session', async () => {
  const token = await offer()
  const client = await borrow(service.database.owner)
  await client.query('BEGIN')
  await client.query('SELECT FROM member_secret WHERE merchant_id = $1 FOR UPDATE', [shop.merchantId])
  const both = [use(token), use(token)]
  await waitingFor(2)
  await client.query('COMMIT')
  expect(kindsOf(await Promise.all(both))).toEqual(['InvalidInputError', 'SignedIn'])
})

test('each start makes a new link, and the one before stops working; the owner stays one', async () => {
  const [first, second] = [await offer(), await offer()]
  expect(await use(first)).toMatchObject(unusable)
  expect(await use(second)).toMatchObject({ __typename: 'SignedIn' })
  expect(await secretOf(shop.merchantId)).toHaveLength(1)
})

test('nodes that start at once add one owner, and one of their links works', async () => {
  const tokens = await Promise.all([offer(), offer(), offer()])
  expect(await secretOf(shop.merchantId)).toHaveLength(1)
  const answers = []
  for (const token of tokens) answers.push(await use(token))
  expect(kindsOf(answers)).toEqual(['InvalidInputError', 'InvalidInputError', 'SignedIn'])
})

test('a link that is a day old is refused', async () => {
  const token = await offer()
  const { rows } = await service.database.owner.query<{ hours: number }>(
    `UPDATE member_secret SET sign_in_expires_at = sign_in_expires_at - interval '24 hours'
     WHERE merchant_id = $1
     RETURNING extract(epoch FROM now() - sign_in_expires_at)::float / 3600 AS hours`,
    [shop.merchantId],
  )
  // It works until the last moment of its 24 hours: now it is as old as this test.
  expect(rows[0]?.hours).toBeGreaterThanOrEqual(0)
  expect(rows[0]?.hours).toBeLessThan(1)
  expect(await use(token)).toMatchObject(unusable)
})

test.each(['invitation', 'reset'])('a token made for the %s of a member is refused', async (kind) => {
  const { access } = service.app.services
  const { memberId } = await makeMember(access, shop.merchantId, 'owner')
  const { token, hash } = makeMemberToken(access.master)
  await service.database.owner.query(
    `UPDATE member_secret SET ${kind}_hash = $2, ${kind}_expires_at = now() + interval '1 hour'
     WHERE member_id = $1`,
    [memberId, hash],
  )
  expect(await use(token)).toMatchObject(unusable)
})

test('the link of the sandbox neither joins a team nor sets a password', async () => {
  const token = await offer()
  const password = 'le soleil de Bamako'
  const other = (field: string, type: string) =>
    service.graphql(`mutation ($input: ${type}!) { ${field}(input: $input) { ... on Refusal { code } } }`, {
      input: { token, password },
    })
  const joined = await other('acceptInvitation', 'AcceptInvitationInput')
  expect(joined.body['data'].acceptInvitation).toEqual({ code: 'INVALID_INPUT' })
  const reset = await other('resetPassword', 'ResetPasswordInput')
  expect(reset.body['data'].resetPassword).toEqual({ code: 'INVALID_INPUT' })
  expect(await use(token)).toMatchObject({ __typename: 'SignedIn' })
})

test('an owner that the account has already is signed in, and none is added', async () => {
  const { memberId } = await makeMember(service.app.services.access, shop.merchantId, 'owner')
  expect(await use(await offer())).toMatchObject({ memberId, role: 'OWNER' })
  expect(await secretOf(shop.merchantId)).toHaveLength(1)
})

test('an account that is inactive, gone, or whose address of the owner is taken gets no link', async () => {
  const { owner } = service.database
  const token = await offer()
  await owner.query(`UPDATE merchant SET status = 'inactive' WHERE id = $1`, [shop.merchantId])
  expect(await use(token)).toMatchObject({ code: 'ACCOUNT_INACTIVE' })
  expect(await offerSandboxSignIn(service.app.services, shop.merchantId)).toBeNull()
  expect(await offerSandboxSignIn(service.app.services, 999_999)).toBeNull()
  const { merchantId } = await service.merchant()
  await owner.query(
    `INSERT INTO team_member (merchant_id, name, email, role)
     VALUES ($1, 'X', 'owner@sandbox.example', 'viewer')`,
    [merchantId],
  )
  expect(await offerSandboxSignIn(service.app.services, merchantId)).toBeNull()
})

test('an address that the account does not allow is refused, and the link stays', async () => {
  const token = await offer()
  const allow = (list: string[]) =>
    service.database.owner.query('UPDATE merchant SET ip_whitelist = $2 WHERE id = $1', [
      shop.merchantId,
      list,
    ])
  await allow(['192.0.2.1'])
  expect(await use(token)).toMatchObject({ code: 'ADDRESS_NOT_ALLOWED' })
  await allow([])
  expect(await use(token)).toMatchObject({ __typename: 'SignedIn' })
})

test('a new password and the removal of the owner end the link', async () => {
  const { owner } = service.database
  for (const end of ['change_password(id, $2, 0)', 'remove_member(id)']) {
    const { merchantId } = await service.merchant()
    const token = await offer(merchantId)
    await makeMember(service.app.services.access, merchantId, 'owner')
    await owner.query(
      `SELECT ${end} FROM team_member WHERE merchant_id = $1 AND email = 'owner@sandbox.example'
       AND $2::text IS NOT NULL`,
      [merchantId, 'x'],
    )
    expect(await use(token)).toMatchObject(unusable)
  }
})

test('the first merchant is the one that a start signs in to', async () => {
  expect(await createFirstMerchant(service.app.services, 'Second', 1n)).toBeNull()
  const { rows } = await service.database.owner.query<{ id: number }>('SELECT min(id) AS id FROM merchant')
  const token = (await offerSandboxSignIn(service.app.services)) ?? ''
  expect(await use(token)).toMatchObject({ merchantId: rows[0]?.id })
})

test('where the service is no sandbox, the operation answers as an unknown path does', async () => {
  const token = await offer()
  const { services } = service.app
  const { sandbox } = services
  services.sandbox = null
  try {
    expect(await use(token)).toMatchObject({ errors: [{ extensions: { code: 'NOT_FOUND' } }] })
  } finally {
    services.sandbox = sandbox
  }
  expect(await use(token)).toMatchObject({ __typename: 'SignedIn' })
})

/** Waits until as many statements of the service wait for a lock of the test's own transaction. */
async function waitingFor(count: number): Promise<void> {
  await eventually(async () => {
    const { rows } = await service.database.owner.query(
      `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
    )
    expect(rows.length).toBeGreaterThanOrEqual(count)
  })
}
