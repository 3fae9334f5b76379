import { afterAll, beforeAll, expect, test } from 'vitest'
import { eventually } from '../../kit/eventually.ts'
import { passwordBounds } from '../../../src/identity/members/passwords.ts'
import { stepOfCode, totpCode } from '../../../src/identity/members/totp.ts'
import { readEmail } from '../../../src/http/pages/mail.ts'
import { deactivateMerchant } from '../../../src/resources/merchants/deactivate.ts'
import { limits } from '../../../src/shared/limits.ts'
import { startTestApp, type TestApp, type TestMerchant } from '../../kit/app.ts'
import { fromBase32 } from '../../kit/base32.ts'
import { type MailServer, startMailServer } from '../../kit/mail-server.ts'
import { useBounds } from '../../kit/use-bounds.ts'

// `passwords.test.ts` tests the cost of a password hash.
useBounds(passwordBounds, { memoryKib: 64, passes: 1 })

let mail: MailServer
let service: TestApp
let shop: TestMerchant
beforeAll(async () => {
  mail = await startMailServer()
  service = await startTestApp({ SMTP_URL: mail.url, MAIL_FROM: 'Paiements <no-reply@pay.test>' })
  shop = await service.merchant('Épicerie')
})
afterAll(async () => {
  await service.close()
  await mail.close()
})

const password = 'le soleil de Bamako'
const tooEasy = {
  message: expect.stringMatching(/^password is too easy to guess/),
  problems: [{ field: 'password' }],
}
let people = 0

/** The token in an email to an address: it stands behind the `#` of its link. */
async function emailTokenFor(address: string, subject: RegExp): Promise<string> {
  const find = () =>
    mail.mails
      .filter(({ to }) => to === address)
      .map(({ data }) => readEmail(data))
      .findLast((message) => subject.test(message.subject))
  await eventually(() => expect(find()).toBeTruthy())
  return /#(\S+)/.exec(find()?.text ?? '')?.[1] ?? ''
}

async function invited(role: string): Promise<{ email: string; token: string }> {
  people += 1
  const email = `fanta${people}@shop.test`
  const body = { name: `Fanta ${people}`, email, role }
  expect(await service.rest('POST', '/team/invite', { token: shop.token, body })).toMatchObject({
    status: 201,
  })
  return { email, token: await emailTokenFor(email, /Invitation/) }
}

const signedInFields =
  '... on SignedIn { token expiresIn merchantId memberId name email role hasSecondFactor }'
const named = '... on InvalidInputError { problems { field } }'
const selections: Readonly<Record<string, string>> = {
  signIn: signedInFields,
  acceptInvitation: `${signedInFields} ${named}`,
  changePassword: named,
  resetPassword: named,
  startTotp: `... on TotpSetup { secret uri } ${named}`,
  confirmTotp: '... on RecoveryCodes { codes }',
}
async function ask(field: string, variables: object, types: string, given: string, token?: string) {
  const selection = `__typename ... on Refusal { code message retryAfter } ${selections[field] ?? ''}`
  const document = `mutation (${types}) { ${field}(${given}) { ${selection} } }`
  const { body } = await service.graphql(document, variables, token)
  return body['data']?.[field] ?? body
}
const signIn = (input: object) => ask('signIn', { input }, '$input: SignInInput!', 'input: $input')
const accept = (input: object) =>
  ask('acceptInvitation', { input }, '$input: AcceptInvitationInput!', 'input: $input')
const reset = (input: object) =>
  ask('resetPassword', { input }, '$input: ResetPasswordInput!', 'input: $input')
const requestReset = (input: object) =>
  ask('requestPasswordReset', { input }, '$input: RequestPasswordResetInput!', 'input: $input')

async function joined(role = 'finance') {
  const { email, token } = await invited(role)
  const member = await accept({ token, password })
  expect(member).toMatchObject({ __typename: 'SignedIn', email })
  return { email, token: member.token as string, memberId: member.memberId as number }
}
const alive = async (token: string) => (await service.rest('GET', '/transactions', { token })).status
async function dead(token: string): Promise<void> {
  await eventually(async () => expect(await alive(token)).toBe(401))
}
/** The types of answers, sorted. */
const kinds = (answers: readonly { __typename: string }[]) =>
  answers.map(({ __typename }) => __typename).toSorted()
/** Removes all waits, so that no sign-in of a test waits. */
const forgive = () => service.database.owner.query('TRUNCATE sign_in_wait')
const eventsOf = async (memberId: number) => {
  const { rows } = await service.database.owner.query<{ type: string; data: { kind?: string } }>(
    `SELECT type, data FROM event WHERE data->>'team_member_id' = $1 ORDER BY id`,
    [String(memberId)],
  )
  return rows
}

test('an invitation is an email in French, accepted once; then signing in works', async () => {
  const { email, token } = await invited('viewer')
  const message = readEmail(mail.mails.find(({ to }) => to === email)?.data ?? '')
  expect(message).toMatchObject({ subject: 'Invitation : Épicerie', to: expect.stringContaining(email) })
  expect(message.text).toContain(`${service.url}/join?lang=fr#${token}`)
  expect(await accept({ token, password: 'short' })).toMatchObject({ code: 'INVALID_INPUT' })
  for (const guess of [`x${email}x`, 'Épicerie-2024', 'fanta 123456', 'motdepasse2024']) {
    expect(await accept({ token, password: guess })).toMatchObject(tooEasy)
  }
  const both = await Promise.all([accept({ token, password }), accept({ token, password })])
  expect(kinds(both)).toEqual(['InvalidInputError', 'SignedIn'])
  const member = await signIn({ email: email.toUpperCase(), password })
  expect(member).toMatchObject({ email, role: 'VIEWER', merchantId: shop.merchantId, expiresIn: 12 * 3_600 })
  expect(await alive(member.token)).toBe(200)
  const me = await service.graphql('{ me { scopes member { email role } } }', {}, member.token)
  expect(me.body['data'].me).toMatchObject({ member: { email, role: 'VIEWER' } })
  const signInEvent = {
    type: 'team_login',
    data: { team_member_id: member.memberId, email, ip: '127.0.0.1' },
  }
  const entered = { type: 'security_alert', data: expect.objectContaining({ kind: 'member_joined' }) }
  expect(await eventsOf(member.memberId)).toEqual([entered, signInEvent, signInEvent])
  const { rows } = await service.database.owner.query('SELECT FROM mail WHERE encrypted IS NOT NULL')
  expect(rows).toHaveLength(0)
})

test('an email that the mail server rejects is sent again', async () => {
  mail.turnAway = 1
  await invited('viewer')
  expect(mail.turnAway).toBe(0)
})

test('an expired invitation is refused', async () => {
  const { email, token } = await invited('viewer')
  await service.database.owner.query(
    `UPDATE member_secret SET invitation_expires_at = now() - interval '1 second'
     WHERE member_id = (SELECT id FROM team_member WHERE email = $1)`,
    [email],
  )
  expect(await accept({ token, password })).toMatchObject({ code: 'INVALID_INPUT' })
})

test('an unknown address, a wrong password, a removed and an invited member get one answer', async () => {
  const { email } = await joined()
  const removed = await joined()
  await service.rest('DELETE', `/team/${removed.memberId}`, { token: shop.token })
  const waiting = await invited('viewer')
  const refused = []
  for (const input of [
    { email, password: 'wrong' },
    { email: 'nobody@shop.test', password },
    { email: removed.email, password },
    { email: waiting.email, password },
    { email, password, merchantId: shop.merchantId + 1_000 },
  ]) {
    await forgive()
    refused.push(await signIn(input))
  }
  expect(refused[0]).toMatchObject({ code: 'CREDENTIALS_REJECTED' })
  expect(new Set(refused.map((answer) => JSON.stringify(answer))).size).toBe(1)
})

test('of 10 guesses at once one is checked; each failure doubles the wait, known or not', async () => {
  const { email } = await joined()
  for (const address of [email, 'nobody-at-all@shop.test']) {
    await forgive()
    const guesses = await Promise.all(
      Array.from({ length: 10 }, () => signIn({ email: address, password: 'wrong' })),
    )
    const codes = guesses.map(({ code }) => String(code)).toSorted()
    expect(codes).toEqual(['CREDENTIALS_REJECTED', ...Array.from({ length: 9 }, () => 'RATE_LIMITED')])
    const waits = []
    for (let failures = 2; failures <= 12; failures += 1) {
      await service.database.owner.query(`UPDATE sign_in_wait SET until = now() WHERE failures < 99`)
      expect(await signIn({ email: address, password: 'wrong' })).toMatchObject({
        code: 'CREDENTIALS_REJECTED',
      })
      waits.push((await signIn({ email: address, password })).retryAfter)
    }
    expect(waits).toEqual([2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900])
  }
  await forgive()
  expect(await signIn({ email, password })).toMatchObject({ __typename: 'SignedIn' })
})

test('the 10th failure in a row raises one alert; a success resets the count', async () => {
  const { email, memberId } = await joined()
  const alerts = async () =>
    (await eventsOf(memberId)).filter(
      ({ type, data }) => type === 'security_alert' && data.kind !== 'member_joined',
    )
  await forgive()
  await signIn({ email, password: 'wrong' })
  await service.database.owner.query(`UPDATE sign_in_wait SET until = now(), failures = 9`)
  expect(await alerts()).toEqual([])
  for (let more = 0; more < 2; more += 1) {
    await signIn({ email, password: 'wrong' })
    await service.database.owner.query('UPDATE sign_in_wait SET until = now()')
  }
  expect(await alerts()).toMatchObject([{ data: { kind: 'auth_failures', ip: '127.0.0.1' } }])
  expect(await signIn({ email, password })).toMatchObject({ __typename: 'SignedIn' })
  const { rows } = await service.database.owner.query(
    `SELECT FROM sign_in_wait WHERE name LIKE 'here%' AND failures > 0`,
  )
  expect(rows).toHaveLength(0)
})

test('an address may fail ten times without a wait, for any accounts; then it waits too', async () => {
  await forgive()
  for (let n = 1; n <= limits.signInAddressFailuresFree; n += 1) {
    expect(await signIn({ email: `guess${n}@shop.test`, password })).toMatchObject({
      code: 'CREDENTIALS_REJECTED',
    })
  }
  await signIn({ email: 'guess11@shop.test', password })
  expect(await signIn({ email: 'guess12@shop.test', password })).toMatchObject({ code: 'RATE_LIMITED' })
  await forgive()
})

test('a new password by email: once, sessions end, and no answer reveals an address', async () => {
  const { email, token } = await joined()
  const unknown = await requestReset({ email: 'nobody-here@shop.test' })
  expect(await requestReset({ email })).toEqual(unknown)
  expect(unknown).toEqual({ __typename: 'Acknowledgement' })
  const memberToken = await emailTokenFor(email, /mot de passe/)
  expect(await reset({ token: memberToken, password: 'Chez Épicerie 1' })).toMatchObject(tooEasy)
  const chosen = 'le fleuve Niger est long'
  const both = await Promise.all([
    reset({ token: memberToken, password: chosen }),
    reset({ token: memberToken, password }),
  ])
  expect(kinds(both)).toEqual(['Acknowledgement', 'InvalidInputError'])
  await dead(token)
  const won = kinds(both.slice(0, 1))[0] === 'Acknowledgement' ? chosen : password
  expect(await signIn({ email, password: won })).toMatchObject({ __typename: 'SignedIn' })
  for (let n = 1; n < limits.resetsPerAccountMax; n += 1) await requestReset({ email })
  expect(await requestReset({ email })).toMatchObject({ code: 'RATE_LIMITED' })
})

test("a changed password ends the other sessions; signing out ends the caller's own", async () => {
  const { email, token } = await joined()
  const other = await signIn({ email, password })
  const change = (current: string, chosen: string) =>
    ask(
      'changePassword',
      { current, password: chosen },
      '$current: String!, $password: String!',
      'current: $current, password: $password',
      token,
    )
  expect(await change('wrong', 'une autre nuit à Mopti')).toMatchObject({ code: 'CREDENTIALS_REJECTED' })
  await forgive()
  expect(await change(password, 'azertyuiop123')).toMatchObject(tooEasy)
  expect(await change('', 'une autre nuit à Mopti')).toMatchObject({ problems: [{ field: 'current' }] })
  expect(await change(password, 'une autre nuit à Mopti')).toMatchObject({ __typename: 'Acknowledgement' })
  await dead(other.token)
  expect(await alive(token)).toBe(200)
  const { body } = await service.graphql('mutation { signOut { __typename } }', {}, token)
  expect(body['data'].signOut).toEqual({ __typename: 'Acknowledgement' })
  expect(await alive(token)).toBe(401)
})

test('signing out everywhere ends all sessions of the person, and no other', async () => {
  const [{ email, token }, colleague] = [await joined(), await joined()]
  const other = await signIn({ email, password })
  const { body } = await service.graphql('mutation { signOutEverywhere { __typename } }', {}, token)
  expect(body['data'].signOutEverywhere).toEqual({ __typename: 'Acknowledgement' })
  expect(await alive(token)).toBe(401)
  await dead(other.token)
  expect(await alive(colleague.token)).toBe(200)
  expect(await signIn({ email, password })).toMatchObject({ __typename: 'SignedIn' })
})

test('a person sees the accounts of all the teams, each with a password of its own', async () => {
  const { email, token } = await joined('finance')
  const listed = async (of: string) => (await service.graphql(accounts, {}, of)).body['data'].accounts
  const accounts = '{ accounts { merchantId merchantName role } }'
  const here = { merchantId: shop.merchantId, merchantName: 'Épicerie', role: 'FINANCE' }
  expect(await listed(token)).toEqual([here])
  const second = await service.merchant('Pharmacie')
  const body = { name: 'Fanta', email, role: 'viewer' }
  await service.rest('POST', '/team/invite', { token: second.token, body })
  expect(await listed(token)).toEqual([here])
  await accept({ token: await emailTokenFor(email, /Invitation : Pharmacie/), password: 'une autre nuit' })
  const there = { merchantId: second.merchantId, merchantName: 'Pharmacie', role: 'VIEWER' }
  expect(await listed(token)).toEqual([here, there])
  await forgive()
  const { merchantId } = second
  expect(await signIn({ email, password, merchantId })).toMatchObject({ code: 'CREDENTIALS_REJECTED' })
  await forgive()
  const signedIn = await signIn({ email, password: 'une autre nuit', merchantId })
  expect(await listed(signedIn.token)).toEqual([there, here])
  expect(await listed(second.token)).toEqual([])
  await deactivateMerchant(service.app.services, merchantId)
  expect(await listed(token)).toEqual([here])
})

test("sessions are listed and revoked: one's own, and by an owner or admin those of others", async () => {
  const [viewer, admin, owner] = [await joined('viewer'), await joined('admin'), await joined('owner')]
  const list = async (token: string, memberId?: number) => {
    const document = 'query ($id: ID) { sessions(memberId: $id) { databaseId isCurrent lastUsedFrom } }'
    const { body } = await service.graphql(document, { id: memberId && String(memberId) }, token)
    return body['data']?.sessions ?? body['errors'][0].extensions.code
  }
  const revoke = (id: unknown, token: string) =>
    ask('revokeSession', { id: String(id) }, '$id: ID!', 'id: $id', token)
  const [own] = await list(viewer.token)
  expect(own).toMatchObject({ isCurrent: true, lastUsedFrom: '127.0.0.1' })
  expect(await list(viewer.token, admin.memberId)).toBe('FORBIDDEN')
  expect(await list(admin.token, owner.memberId)).toBe('FORBIDDEN')
  expect(await list(admin.token, viewer.memberId)).toHaveLength(1)
  const [bosss] = await list(owner.token)
  expect(await revoke(bosss.databaseId, admin.token)).toMatchObject({ code: 'FORBIDDEN' })
  expect(await revoke(bosss.databaseId, viewer.token)).toMatchObject({ code: 'FORBIDDEN' })
  expect(await revoke(own.databaseId, admin.token)).toMatchObject({ __typename: 'Acknowledgement' })
  await dead(viewer.token)
})

test('a second factor: each code once; a recovery code once; then off again', async () => {
  const { email, token } = await joined()
  const withPassword = (field: string, given: string) =>
    ask(field, { password: given }, '$password: String!', 'password: $password', token)
  expect(await withPassword('startTotp', '\ud800')).toMatchObject({ problems: [{ field: 'password' }] })
  expect(await withPassword('startTotp', 'wrong')).toMatchObject({ code: 'CREDENTIALS_REJECTED' })
  await forgive()
  const setup = await withPassword('startTotp', password)
  const secret = fromBase32(setup.secret)
  const now = BigInt(Math.floor(Date.now() / 30_000))
  const confirm = (code: string) => ask('confirmTotp', { code }, '$code: String!', 'code: $code', token)
  expect(await confirm('000000x')).toMatchObject({ code: 'INVALID_INPUT' })
  const { codes } = await confirm(totpCode(secret, now))
  expect(codes).toHaveLength(10)
  expect(await signIn({ email, password })).toMatchObject({ code: 'SECOND_FACTOR_REQUIRED' })
  const used = totpCode(secret, now)
  expect(await signIn({ email, password, code: used })).toMatchObject({ code: 'CREDENTIALS_REJECTED' })
  await forgive()
  const next = totpCode(secret, now + 1n)
  expect(stepOfCode(secret, next)).not.toBeNull()
  expect(await signIn({ email, password, code: next })).toMatchObject({ hasSecondFactor: true })
  expect(await signIn({ email, password, code: codes[0].toLowerCase() })).toMatchObject({
    __typename: 'SignedIn',
  })
  expect(await signIn({ email, password, code: codes[0] })).toMatchObject({ code: 'CREDENTIALS_REJECTED' })
  await forgive()
  const off = { password, code: codes[1] }
  const types = '$password: String!, $code: String!'
  expect(await ask('disableTotp', off, types, 'password: $password, code: $code', token)).toMatchObject({
    __typename: 'Acknowledgement',
  })
  expect(await signIn({ email, password })).toMatchObject({ hasSecondFactor: false })
})

test('an API key has no personal account, and a session of finance no team rights', async () => {
  const { token } = await joined('finance')
  const { body } = await service.graphql(
    'mutation { signOut { __typename ... on Refusal { code } } }',
    {},
    shop.token,
  )
  expect(body['data'].signOut).toMatchObject({ code: 'FORBIDDEN' })
  expect(await service.rest('GET', '/team', { token })).toMatchObject({ status: 403 })
})

test('neither passwords nor tokens of emails are stored in the database', async () => {
  const { token } = await invited('viewer')
  const { rows } = await service.database.owner.query<{ text: string }>(
    `SELECT query_to_xml('SELECT * FROM ' || quote_ident(relname), true, false, '')::text AS text
     FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'
       AND relname <> 'rate_limit'`,
  )
  const dump = rows.map(({ text }) => text).join()
  expect(dump).toContain('argon2id')
  for (const secret of [
    token,
    Buffer.from(token).toString('hex'),
    password,
    Buffer.from(password).toString('base64'),
  ])
    expect(dump).not.toContain(secret)
})
