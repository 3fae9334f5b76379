import type { Pool } from 'pg'
import { transact } from '../../src/database/transact.ts'
import type { Access } from '../../src/identity/callers/authenticate.ts'
import { type Role, roles } from '../../src/identity/members/roles.ts'

/** A member of a merchant's team, and the member's session. */
export interface TestMember {
  merchantId: number
  memberId: number
  sessionId: number
  token: string
}

let people = 0
function nextName(role: Role): string {
  people += 1
  return `${role}-${people}-${Date.now()}`
}

/** Makes a member that joined two days ago and signed in now, without the work of a password. */
export async function makeMember(
  { pool, tokens }: Pick<Access, 'pool' | 'tokens'>,
  merchantId: number,
  role: Role,
  name: string = nextName(role),
): Promise<TestMember> {
  const { memberId, sessionId } = await transact({ pool }, async (tx) => {
    // The service may not write these tables: only its functions may.
    await tx.query('SET LOCAL ROLE payments_owner')
    const member = await tx.query<{ id: number }>(
      `WITH member AS (
         INSERT INTO team_member (merchant_id, name, email, role, status, joined_at, approver_since)
         VALUES ($1, $2, $2 || '@shop.test', $3, 'active', now(), now() - interval '2 days')
         RETURNING id, merchant_id)
       INSERT INTO member_secret (member_id, merchant_id) SELECT id, merchant_id FROM member
       RETURNING member_id AS id`,
      [merchantId, name, role],
    )
    const id = member.rows[0]?.id ?? 0
    const session = await tx.query<{ id: number }>(
      `INSERT INTO session (merchant_id, member_id, expires_at)
       VALUES ($1, $2, now() + interval '12 hours') RETURNING id`,
      [merchantId, id],
    )
    return { memberId: id, sessionId: session.rows[0]?.id ?? 0 }
  })
  const scopes = roles[role].scopes
  const grant = { merchantId, apiKeyId: sessionId, apiKeyVersion: 1, scopes, hours: 12 }
  return { merchantId, memberId, sessionId, token: (await tokens.issueToken(grant)).token }
}

/** Names a holder for the API keys of a merchant, so that other members may approve the keys' payments. */
export async function nameHolder(
  owner: Pool,
  access: Parameters<typeof makeMember>[0],
  merchantId: number,
): Promise<void> {
  const { memberId } = await makeMember(access, merchantId, 'owner')
  await owner.query(`UPDATE api_key SET issued_to_id = $2 WHERE merchant_id = $1`, [merchantId, memberId])
}
