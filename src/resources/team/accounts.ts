import { actorOf } from '../../identity/callers/actor.ts'
import type { Role } from '../../identity/members/roles.ts'
import type { Context } from '../../context.ts'
import { asPlatform } from '../../database/as-platform.ts'

/** The reason to read without row-level security. */
const reason = 'the accounts of one person belong to several merchants'

/** A merchant account in whose team a person is. */
export interface TeamAccount {
  merchantId: number
  merchantName: string
  role: Role
}

/**
 * Lists the active accounts in whose teams the caller is: those of the members with the caller's e-mail
 * address. Choice: the list shows their names, also where one allows no sign-in from this IP address. The
 * account of this session comes first. Empty where an API key calls.
 */
export async function listAccounts(ctx: Context): Promise<TeamAccount[]> {
  const { memberId } = actorOf(ctx)
  if (memberId === null) return []
  const { rows } = await asPlatform(ctx, reason).pool.query<TeamAccount>({
    name: 'list-accounts',
    text: `SELECT t.merchant_id AS "merchantId", m.name AS "merchantName", t.role
           FROM team_member self JOIN team_member t ON t.email = self.email AND t.status = 'active'
           JOIN merchant m ON m.id = t.merchant_id AND m.status = 'active'
           WHERE self.id = $1 ORDER BY t.id <> self.id, t.id LIMIT $2`,
    values: [memberId, accountsMax],
  })
  return rows
}

/** The most accounts of one person that are listed (a choice). */
const accountsMax = 50
