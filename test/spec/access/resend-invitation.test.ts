import { afterAll, expect, test } from 'vitest'
import { passwordBounds } from '../../../src/identity/members/passwords.ts'
import { readEmail } from '../../../src/http/pages/mail.ts'
import { eventually } from '../../kit/eventually.ts'
import { openFixture } from '../../kit/fixture.ts'
import { type MailServer, startMailServer } from '../../kit/mail-server.ts'
import { makePerson } from '../../kit/people.ts'
import { useBounds } from '../../kit/use-bounds.ts'

// An invitation that was not accepted is sent again: only its latest letter works.

// `passwords.test.ts` tests the cost of a password hash.
useBounds(passwordBounds, { memoryKib: 64, passes: 1 })

const mail: MailServer = await startMailServer()
const fixture = await openFixture({ SMTP_URL: mail.url, MAIL_FROM: 'Paiements <no-reply@pay.test>' })
afterAll(() => mail.close())

const email = 'moussa@shop.test'
/** Returns the token in the letter with a number, the first being 1. */
const tokenOf = (letter: number) =>
  eventually(() => {
    const received = mail.mails.filter(({ to }) => to === email)[letter - 1]
    const [, token] = /\/join\?lang=fr#(\S+)/.exec(received ? readEmail(received.data).text : '') ?? []
    return token === undefined ? Promise.reject(new Error('no letter yet')) : Promise.resolve(token)
  })
async function run(document: string, variables: object, token?: string) {
  const { body } = await fixture.graphql(document, variables, token)
  return body['data'] ? Object.values(body['data'] as object)[0] : body['errors'][0]
}
const invite = (token: string) =>
  run(
    `mutation ($email: String!) { inviteMember(input: { name: "Moussa", email: $email, role: FINANCE }) {
       ... on TeamMember { databaseId } } }`,
    { email },
    token,
  )
const resendInvitation = (id: number, token: string) =>
  run(
    `mutation ($id: ID!) { resendInvitation(id: $id) {
       __typename ... on TeamMember { status } ... on Refusal { code message } } }`,
    { id },
    token,
  )
const remove = (id: number, token: string) =>
  run('mutation ($id: ID!) { removeMember(id: $id) { __typename } }', { id }, token)
const read = (token: string) =>
  run('query ($token: String!) { invitation(token: $token) { role invitedBy } }', { token })
const join = (token: string) =>
  run(
    `mutation ($token: String!) {
       acceptInvitation(input: { token: $token, password: "le soleil de Bamako" }) {
         __typename ... on Refusal { code } } }`,
    { token },
  )
const refused = { code: 'INVALID_INPUT' }

test('an expired invitation is sent again; no letter works twice, nor an earlier one', async () => {
  const shop = await fixture.merchant()
  const awa = await makePerson(fixture, shop.merchantId, { name: 'Awa Traoré' })
  const fanta = await makePerson(fixture, shop.merchantId, { role: 'admin', name: 'Fanta Diarra' })
  const { databaseId: id } = await invite(awa.token)
  const first = await tokenOf(1)
  const expire = 'UPDATE member_secret SET invitation_expires_at = now() WHERE member_id = $1'
  await fixture.database.owner.query(expire, [id])
  expect(await join(first)).toMatchObject(refused)

  expect(await resendInvitation(id, fanta.token)).toEqual({ __typename: 'TeamMember', status: 'INVITED' })
  const second = await tokenOf(2)
  expect(await read(first)).toBeNull()
  expect(await read(second)).toEqual({ role: 'FINANCE', invitedBy: 'Fanta Diarra' })
  expect(await join(first)).toMatchObject(refused)
  expect(await join(second)).toEqual({ __typename: 'SignedIn' })

  expect(await resendInvitation(id, awa.token)).toMatchObject({
    code: 'ALREADY_MEMBER',
    message: 'The member has joined the team already.',
  })
  expect(await join(second)).toMatchObject(refused)
  await remove(id, awa.token)
  expect(await resendInvitation(id, awa.token)).toMatchObject({ code: 'NOT_FOUND' })
  expect(mail.mails.filter(({ to }) => to === email)).toHaveLength(2)
})

test('a person who joins while the invitation is sent again joins, or needs the new letter', async () => {
  const shop = await fixture.merchant()
  const awa = await makePerson(fixture, shop.merchantId)
  const { databaseId: id } = await invite(awa.token)
  const letters = mail.mails.filter(({ to }) => to === email).length
  const first = await tokenOf(letters + 1)
  const [sent, joined] = await Promise.all([resendInvitation(id, awa.token), join(first)])
  const hasJoined = joined.__typename === 'SignedIn'
  expect(sent).toMatchObject(hasJoined ? { code: 'ALREADY_MEMBER' } : { status: 'INVITED' })
  const { rows } = await fixture.database.owner.query(
    `SELECT status, invitation_hash IS NULL AS "isUsed" FROM team_member m
     JOIN member_secret s ON s.member_id = m.id WHERE m.id = $1`,
    [id],
  )
  expect(rows).toEqual([{ status: hasJoined ? 'active' : 'invited', isUsed: hasJoined }])
})

test('one address gets three more letters an hour, however often they are asked for', async () => {
  const shop = await fixture.merchant()
  const awa = await makePerson(fixture, shop.merchantId)
  const { databaseId: id } = await invite(awa.token)
  const sent = await Promise.all(Array.from({ length: 20 }, () => resendInvitation(id, awa.token)))
  expect(sent.filter(({ __typename: type }) => type === 'TeamMember')).toHaveLength(3)
  expect(sent.filter(({ code }) => code === 'RATE_LIMITED')).toHaveLength(17)
  const { rows } = await fixture.database.owner.query(
    `SELECT FROM audit_entry WHERE merchant_id = $1 AND operation = 'resendInvitation'`,
    [shop.merchantId],
  )
  expect(rows).toHaveLength(3)
})
