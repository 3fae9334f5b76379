import { z } from 'zod'
import { actorOf } from '../../identity/callers/actor.ts'
import { recordedChange, recordingOf } from '../../audit/audit-log.ts'
import { isHigher, type Role, roleNames } from '../../identity/members/roles.ts'
import type { Context } from '../../context.ts'
import { DomainError } from '../../shared/errors.ts'
import { oneOf, readInput } from '../../shared/input.ts'
import { recordKeys } from './issued-keys.ts'
import { changeTeam, checkManages, readMember } from './team-lookup.ts'
import { recordAccess } from '../../identity/changes/record-access.ts'
import { sqlFunction, sqlType } from '../../database/sql-function.ts'

const setRole = sqlFunction('change_member_role', {
  takes: { member: 'int', newRole: sqlType<Role>('member_role') },
  gives: 'void',
})

export const changeRoleInput = z.object({ role: oneOf(roleNames) })

/**
 * Gives a member another role. Within a second, all sessions of the member have ended on all nodes. API keys
 * that were shown to the member and grant more than the new role are revoked; `security_alert`
 * (`keys_revoked`) names them. A higher role writes a `security_alert` too (`role_raised`).
 * @throws DomainError INVALID_INPUT, NOT_FOUND, FORBIDDEN, STATE_CONFLICT (the last owner), UNAUTHENTICATED
 * @see docs/design/rules.md#people
 */
export async function changeMemberRole(
  ctx: Context,
  memberId: number,
  raw: z.input<typeof changeRoleInput>,
): Promise<{ id: number }> {
  const actor = actorOf(ctx)
  const { role } = readInput(changeRoleInput, raw)
  const { merchantId } = actor
  const recording = recordingOf(ctx, 'changeMemberRole')
  const { id, ended } = await changeTeam(
    ctx,
    'changes members of the merchant that the token names',
    async (tx, { hasOwner }) => {
      const member = await readMember(tx, merchantId, memberId)
      checkManages(actor, [member.role, role], hasOwner)
      if (member.role === role) return { id: member.id, ended: [] }
      if (member.isLastOwner) throw lastOwner()
      const revoked = await recordKeys(tx, recording, member.id, async () => {
        await recordedChange(tx, recording, ['member', member.id], () =>
          setRole(tx, { member: member.id, newRole: role }),
        )
      })
      if (isHigher(role, member.role)) {
        const data = {
          kind: 'role_raised',
          message: `${member.email} became ${role}; before: ${member.role}.`,
          team_member_id: member.id,
          ...(ctx.clientAddress && { ip: ctx.clientAddress }),
        }
        await recordAccess(tx, { merchant: merchantId, kind: 'security_alert', what: data })
      }
      return { id: member.id, ended: revoked }
    },
  )
  for (const apiKeyId of ended) ctx.access.credentials.forget(apiKeyId)
  return { id }
}

/** Makes the refusal of a change that would leave the account without an active owner. */
export function lastOwner(): DomainError {
  return new DomainError('STATE_CONFLICT', 'The last owner must stay. Make another member an owner first.')
}
