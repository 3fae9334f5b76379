import { hashOfMemberToken } from '../../identity/members/member-tokens.ts'
import type { Role } from '../../identity/members/roles.ts'
import type { Context } from '../../context.ts'
import { asPlatform } from '../../database/as-platform.ts'

/** The reason to read without row-level security. */
const reason = 'no member is signed in yet: the invitation is the credential'

/** The facts of an invitation for the person who got it. */
export interface Invitation {
  merchantId: number
  merchantName: string
  name: string
  email: string
  role: Role
  invitedBy: string | null
  expiresAt: Date
}

/** Finds the invitation with a token. @returns null where the token is unknown, used, replaced or too old */
export async function readInvitation(ctx: Context, token: string): Promise<Invitation | null> {
  const { rows } = await asPlatform(ctx, reason).pool.query<Invitation>(
    `SELECT m.id AS "merchantId", m.name AS "merchantName", t.name, t.email, t.role,
            inviter.name AS "invitedBy", s.invitation_expires_at AS "expiresAt"
     FROM member_secret s JOIN team_member t ON t.id = s.member_id JOIN merchant m ON m.id = t.merchant_id
     LEFT JOIN team_member inviter ON inviter.id = s.invited_by_id
     WHERE s.invitation_hash = $1 AND s.invitation_expires_at > now() AND t.status = 'invited'
       AND m.status = 'active'`,
    [hashOfMemberToken(ctx.access.master, token)],
  )
  return rows[0] ?? null
}
