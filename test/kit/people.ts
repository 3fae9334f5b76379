import type { Role } from '../../src/identity/members/roles.ts'
import { totpCode } from '../../src/identity/members/totp.ts'
import type { TestApp } from './app.ts'
import { fromBase32 } from './base32.ts'
import { makeMember, type TestMember } from './members.ts'

/** A member who can sign in by password. */
export interface PasswordMember extends TestMember {
  email: string
  password: string
}

/** Makes a member with a password, whose e-mail address and name are the test's own. */
export async function makePerson(
  service: TestApp,
  merchantId: number,
  { role = 'owner', name, email }: { role?: Role; name?: string; email?: string } = {},
): Promise<PasswordMember> {
  const { access } = service.app.services
  const member = await makeMember(access, merchantId, role)
  const password = 'le soleil de Bamako'
  const { rows } = await service.database.owner.query<{ email: string }>(
    `WITH secret AS (UPDATE member_secret SET password_hash = $2 WHERE member_id = $1)
     UPDATE team_member SET name = coalesce($3, name), email = coalesce($4, email) WHERE id = $1
     RETURNING email`,
    [member.memberId, await access.passwords.hash(password), name ?? null, email ?? null],
  )
  return { ...member, email: rows[0]?.email ?? '', password }
}

/** Switches the second factor of a person on. @returns a maker of codes, and the recovery codes */
export async function secondFactor(
  service: TestApp,
  { token, password }: Pick<PasswordMember, 'token' | 'password'>,
): Promise<{ code: (step?: number) => string; codes: string[] }> {
  const run = async (document: string, variables: object) =>
    (await service.graphql(document, variables, token)).body['data']
  const start =
    'mutation ($password: String!) { startTotp(password: $password) { ... on TotpSetup { secret } } }'
  const { secret } = (await run(start, { password })).startTotp
  const code = (step = 0) => totpCode(fromBase32(secret), BigInt(Math.floor(Date.now() / 30_000) + step))
  const confirm = 'mutation ($code: String!) { confirmTotp(code: $code) { ... on RecoveryCodes { codes } } }'
  const { codes } = (await run(confirm, { code: code(-1) })).confirmTotp as { codes: string[] }
  return { code, codes }
}
