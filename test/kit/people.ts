import type { Role } from '../../src/identity/members/roles.ts'
import type { TestApp } from './app.ts'
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
