import { beforeEach, describe, expect, test } from 'vitest'
import { passwordBounds } from '../../../src/identity/members/passwords.ts'
import { makeMemberToken } from '../../../src/identity/members/member-tokens.ts'
import { totpCode } from '../../../src/identity/members/totp.ts'
import { limits } from '../../../src/shared/limits.ts'
import { fromBase32 } from '../../kit/base32.ts'
import type { TestMerchant } from '../../kit/app.ts'
import { makeMember } from '../../kit/members.ts'
import { openFixture } from '../../kit/fixture.ts'
import { useBounds } from '../../kit/use-bounds.ts'

// Failed sign-ins are counted by account and address, so that a stranger who knows an e-mail address does not
// keep its owner out. The proxy names the address of each caller; the test moves the times in the rows.

// `passwords.test.ts` tests the cost of a password hash.
useBounds(passwordBounds, { memoryKib: 64, passes: 1 })

const fixture = await openFixture({ TRUSTED_PROXIES: '127.0.0.1' })
const { owner } = fixture.database
const { access } = fixture.app.services
const password = 'le soleil de Bamako'
const home = '192.0.2.7'
const attacker = '203.0.113.9'
const day = 24 * 60 * 60_000
const strangers = (count: number, from = 1) =>
  Array.from({ length: count }, (_, n) => `198.51.${Math.floor((from + n) / 250)}.${(from + n) % 250}`)

beforeEach(async () => {
  await owner.query('TRUNCATE sign_in_wait, rate_limit')
})

interface Owner {
  email: string
  memberId: number
  shop: TestMerchant
}

/** A member with a password, who signed in from `home`, or nowhere. */
async function member(from: string | null = home): Promise<Owner> {
  const shop = await fixture.merchant()
  const { memberId } = await makeMember(access, shop.merchantId, 'owner')
  const { rows } = await owner.query<{ email: string }>(
    `UPDATE member_secret s SET password_hash = $2 FROM team_member t
     WHERE t.id = s.member_id AND t.id = $1 RETURNING t.email`,
    [memberId, await access.passwords.hash(password)],
  )
  const email = rows[0]?.email ?? ''
  if (from !== null) await signIn(email, password, from)
  return { email, memberId, shop }
}

async function ask(document: string, variables: object, from: string, token?: string) {
  const response = await fetch(`${fixture.url}/graphql`, {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json',
      'X-Forwarded-For': from,
      ...(token && { Authorization: `Bearer ${token}` }),
    },
    body: JSON.stringify({ query: document, variables }),
  })
  const { data } = (await response.json()) as { data: Record<string, Record<string, unknown>> }
  return Object.values(data)[0] ?? {}
}
const signIn = (email: string, given: string, from: string, code?: string) =>
  ask(
    `mutation ($input: SignInInput!) { signIn(input: $input) { ... on SignedIn { memberId token }
       ... on Refusal { code message retryAfter } } }`,
    { input: { email, password: given, code } },
    from,
  )
const requestReset = (email: string, from: string) =>
  ask(
    `mutation ($input: RequestPasswordResetInput!) { requestPasswordReset(input: $input) { __typename
       ... on Refusal { code } } }`,
    { input: { email } },
    from,
  )
const isIn = { memberId: expect.any(Number) }
const rejected = { code: 'CREDENTIALS_REJECTED' }
const waits = { code: 'RATE_LIMITED' }

/** Moves the counts into the past. */
const pass = (ms: number) =>
  owner.query(`UPDATE sign_in_wait SET until = until - $1 * interval '1 millisecond'`, [ms])

const codesOf = (answers: readonly Record<string, unknown>[]) => {
  const codes: Record<string, number> = {}
  for (const { code = 'LET_IN' } of answers) codes[String(code)] = (codes[String(code)] ?? 0) + 1
  return codes
}

describe('a stranger who knows an e-mail address', () => {
  test('tries 6 times a second for 45 s: the owner is let in, few of these tries are checked', async () => {
    const { email } = await member()
    const guesses = []
    const entries = []
    for (let tick = 0; tick < 45 * 6; tick += 1) {
      guesses.push(await signIn(email, 'wrong', attacker))
      if (tick % 15 === 0) entries.push(await signIn(email, password, home))
      await pass(1_000 / 6)
    }
    expect(codesOf(entries)).toEqual({ LET_IN: 18 })
    // Six in the simulated time; real time adds one for each minute that it takes.
    const { CREDENTIALS_REJECTED: checked } = codesOf(guesses)
    expect(checked).toBeGreaterThanOrEqual(6)
    expect(checked).toBeLessThan(9)
  })

  test('does not keep the owner out at an address where the owner never was', async () => {
    const { email } = await member(null)
    expect(await signIn(email, 'wrong', attacker)).toMatchObject(rejected)
    expect(await signIn(email, password, attacker)).toMatchObject(waits)
    expect(await signIn(email, password, home)).toMatchObject(isIn)
  })

  test('has 105 guesses on the first day from one address', async () => {
    const { email } = await member()
    let checked = 0
    for (let atMs = 0; atMs < day; checked += 1) {
      expect(await signIn(email, 'wrong', attacker)).toMatchObject(rejected)
      const { retryAfter } = (await signIn(email, 'wrong', attacker)) as { retryAfter: number }
      atMs += retryAfter * 1_000
      await pass(retryAfter * 1_000)
    }
    expect(checked).toBe(105)
  })

  test.each([
    ['of a member', true],
    ['without a member', false],
  ])('has 100 guesses an hour from all addresses together, at an account %s', async (_whose, isMember) => {
    const { email } = isMember ? await member() : { email: 'nobody-there@shop.test' }
    expect(await signIn(email, 'wrong', attacker)).toMatchObject(rejected)
    // All but three of the hour.
    await owner.query(`UPDATE sign_in_wait SET failures = $1 WHERE name LIKE 'account %'`, [
      limits.signInAccountFailuresMax - 3,
    ])
    const guesses = await Promise.all(strangers(12).map((from) => signIn(email, 'wrong', from)))
    expect(codesOf(guesses)).toEqual({ CREDENTIALS_REJECTED: 3, RATE_LIMITED: 9 })
    const [refused] = guesses.filter(({ code }) => code === 'RATE_LIMITED')
    expect(refused?.['message']).toMatch(/^Too many failed attempts. Wait \d+ seconds\.$/)
    expect(Number(refused?.['retryAfter'])).toBeGreaterThan(3_500)
    expect(await signIn(email, password, '198.51.100.1')).toMatchObject(waits)
    // A refusal is not counted: the address tries other accounts as before.
    const { rows } = await owner.query(
      `SELECT FROM sign_in_wait WHERE name = 'address 198.51.100.1' AND failures > 0`,
    )
    expect(rows).toEqual([])
    expect(await signIn(email, password, home)).toMatchObject(isMember ? isIn : waits)
    await pass(limits.signInAccountWindowMs)
    expect(await signIn(email, 'wrong', '198.51.100.2')).toMatchObject(rejected)
  })

  test('finds the count of the hour unchanged after the owner signed in', async () => {
    const { email } = await member()
    expect(await signIn(email, 'wrong', attacker)).toMatchObject(rejected)
    await owner.query(`UPDATE sign_in_wait SET failures = $1 WHERE name LIKE 'account %'`, [
      limits.signInAccountFailuresMax,
    ])
    expect(await signIn(email, password, home)).toMatchObject(isIn)
    expect(await signIn(email, 'wrong', '198.51.100.1')).toMatchObject(waits)
  })

  test('raises one alert, also where no address fails often', async () => {
    const { email, shop } = await member()
    for (const from of strangers(limits.signInAlertFailures + 2)) await signIn(email, 'wrong', from)
    const { rows } = await owner.query<{ data: object }>(
      `SELECT data FROM event WHERE merchant_id = $1 AND type = 'security_alert'`,
      [shop.merchantId],
    )
    expect(rows).toMatchObject([{ data: { kind: 'auth_failures' } }])
  })
})

describe('an address from which the member signed in', () => {
  test('has a count of its own: it waits longer after each wrong password there', async () => {
    const { email } = await member()
    for (const seconds of [1, 2, 4]) {
      expect(await signIn(email, 'wrong', home)).toMatchObject(rejected)
      // A minute more, so that the wait is not over before the next try.
      await pass(-60_000)
      const { code, retryAfter } = await signIn(email, password, home)
      expect({ code }).toEqual(waits)
      expect([60 + seconds - 1, 60 + seconds]).toContain(retryAfter)
      await pass(60_000 + seconds * 1_000)
    }
    expect(await signIn(email, password, home)).toMatchObject(isIn)
  })

  test('lets the member in while others at the same address have failed at other accounts', async () => {
    const { email } = await member()
    for (let n = 0; n <= limits.signInAddressFailuresFree + 3; n += 1)
      await signIn(`guess${n}@shop.test`, 'wrong', home)
    expect(await signIn('another@shop.test', 'wrong', home)).toMatchObject(waits)
    expect(await signIn(email, password, home)).toMatchObject(isIn)
  })

  test('of IPv6 is its network of 64 bits', async () => {
    const { email } = await member('2001:db8:1:2::1')
    await signIn(email, 'wrong', attacker)
    await owner.query('UPDATE sign_in_wait SET failures = 100')
    expect(await signIn(email, password, '2001:db8:1:2:ffff::9')).toMatchObject(isIn)
    expect(await signIn(email, password, '2001:db8:1:3::1')).toMatchObject(waits)
  })
})

test('codes of the second factor: 10 an hour from all new addresses; known ones count apart', async () => {
  const { email, memberId } = await member()
  const { token } = (await signIn(email, password, home)) as { token: string }
  const start = `mutation ($password: String!) { startTotp(password: $password) {
    ... on TotpSetup { secret } } }`
  const { secret } = (await ask(start, { password }, home, token)) as { secret: string }
  const key = fromBase32(secret)
  const step = () => BigInt(Math.floor(Date.now() / 30_000))
  const confirm = `mutation ($code: String!) { confirmTotp(code: $code) { __typename } }`
  await ask(confirm, { code: totpCode(key, step()) }, home, token)
  const guesses = await Promise.all(
    strangers(limits.secondFactorFailuresMax + 4).map((from) => signIn(email, password, from, '12345x')),
  )
  expect(codesOf(guesses)).toEqual({ CREDENTIALS_REJECTED: limits.secondFactorFailuresMax, RATE_LIMITED: 4 })
  expect(await signIn(email, password, home, totpCode(key, step() + 1n))).toMatchObject({ memberId })
})

describe('an email for a new password', () => {
  test('makes the address where it is used the only known one, and strangers go on waiting', async () => {
    const { email, memberId } = await member()
    await signIn(email, 'wrong', attacker)
    await owner.query(
      `UPDATE sign_in_wait SET failures = 100, until = now() + interval '10 minutes' WHERE failures > 0`,
    )
    const { token, hash } = makeMemberToken(access.master)
    await owner.query(
      `UPDATE member_secret SET reset_hash = $2, reset_expires_at = now() + interval '1 hour'
       WHERE member_id = $1`,
      [memberId, hash],
    )
    const [chosen, here] = ['le fleuve Niger est long', '192.0.2.99']
    expect(await signIn(email, password, here)).toMatchObject(waits)
    const reset = `mutation ($input: ResetPasswordInput!) { resetPassword(input: $input) { __typename } }`
    expect(await ask(reset, { input: { token, password: chosen } }, here)).toEqual({
      __typename: 'Acknowledgement',
    })
    expect(await signIn(email, chosen, here)).toMatchObject(isIn)
    expect(await signIn(email, chosen, attacker)).toMatchObject(waits)
    const { rows } = await owner.query<{ known: number }>(
      'SELECT count(*)::int AS known FROM sign_in_address',
    )
    await signIn(email, chosen, home)
    const after = await owner.query<{ known: number }>('SELECT count(*)::int AS known FROM sign_in_address')
    expect((after.rows[0]?.known ?? 0) - (rows[0]?.known ?? 0)).toBe(1)
  })

  test('can be requested from a known address while a stranger requests it', async () => {
    const { email } = await member()
    const asked = await Promise.all(strangers(6).map((from) => requestReset(email, from)))
    expect(codesOf(asked)).toEqual({ LET_IN: limits.resetsPerAccountMax, RATE_LIMITED: 3 })
    expect(await requestReset(email, home)).toEqual({ __typename: 'Acknowledgement' })
    const withoutMember = await Promise.all(
      strangers(6).map((from) => requestReset('nobody-at@shop.test', from)),
    )
    expect(codesOf(withoutMember)).toEqual(codesOf(asked))
  })
})
