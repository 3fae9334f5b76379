import { actorOf } from '../../access/actor.ts'
import { recordedChange, recordingOf } from '../../access/audit-log.ts'
import type { Context } from '../../context.ts'
import { transact } from '../../database/transact.ts'
import { lastOwner } from './change-role.ts'
import { checkManages, holdTeam, memberIdOf, readMember } from './roster.ts'

/**
 * Removes somebody from the team. Sessions and what proved the member end with it; the row stays, for history
 * names it. The e-mail address may be invited again.
 * @param rawId a global id or the id of REST
 * @throws DomainError NOT_FOUND, FORBIDDEN, STATE_CONFLICT (the last owner)
 * @see specification: Team; decisions: Endpoints
 */
export async function removeMember(ctx: Context, rawId: string): Promise<{ id: number }> {
  const actor = actorOf(ctx)
  const { merchantId } = actor
  return transact(ctx.database, async (tx) => {
    const { hasOwner } = await holdTeam(tx, merchantId)
    const member = await readMember(tx, merchantId, memberIdOf(rawId))
    checkManages(actor, [member.role], hasOwner)
    if (member.isLastOwner) throw lastOwner()
    await recordedChange(tx, recordingOf(ctx, 'removeMember'), ['member', member.id], () =>
      tx.query(
        `UPDATE team_member SET status = 'removed', removed_at = service_now(), second_factor_at = NULL
         WHERE id = $1`,
        [member.id],
      ),
    )
    await tx.query(
      `UPDATE member_secret SET password_hash = NULL, totp_sealed = NULL, recovery_hashes = '{}',
         invitation_hash = NULL, reset_hash = NULL WHERE member_id = $1`,
      [member.id],
    )
    return { id: member.id }
  })
}
