import type pg from 'pg'
import { z } from 'zod'
import { actorOf, nameOf } from '../../identity/callers/actor.ts'
import { recordedChange, recordingOf } from '../../audit/audit-log.ts'
import type { Context } from '../../context.ts'
import { DomainError } from '../../shared/errors.ts'
import { smallIdMax } from '../../shared/ids.ts'
import { invalidInput, readInput, wholeNumber } from '../../shared/input.ts'
import { limits } from '../../shared/limits.ts'
import { lastOwner } from './change-role.ts'
import { recordKeys } from './issued-keys.ts'
import { changeTeam, checkManages, type LockedMember, readMember } from './team-lookup.ts'
import { recordAccess } from '../../identity/changes/record-access.ts'
import { sqlFunction, sqlType } from '../../database/sql-function.ts'

const takeOut = sqlFunction('remove_member', { takes: { member: 'int' }, gives: 'void' })
const keepKeysOf = sqlFunction('keep_keys', {
  takes: { merchant: 'int', member: 'int', actor: 'text', keys: 'int[]' },
  gives: { outcome: sqlType<'kept' | 'no_person' | 'unknown'>('text'), ordinal: 'int?', keeper: 'int?' },
})

const listOf = <T extends z.ZodType>(id: T) =>
  z
    .array(id, 'must be a list of API key ids')
    .max(limits.apiKeysMax, `must have at most ${limits.apiKeysMax} entries`)
    .nullish()

/** The body of `DELETE /team/{id}`. */
export const removeMemberInput = z.object({ keepKeys: listOf(wholeNumber(1, Number(smallIdMax))) })
const keptInput = z.object({ keepKeys: listOf(z.number()) })

/**
 * Removes a member from the team. This ends the sessions of the member and revokes the API keys that were
 * shown to the member; `security_alert` (`keys_revoked`) names these keys. The row of the member stays,
 * because other records refer to it. The e-mail address may be invited again.
 * @param raw.keepKeys the keys that keep working, for programs that use them: global ids or ids. They pass to
 *   the person who removes the member. The removed member still knows the secrets of these keys until they
 *   are regenerated; `security_alert` (`keys_kept`) says so.
 * @throws DomainError INVALID_INPUT (a key that is not valid or was not shown to the member), NOT_FOUND,
 *   FORBIDDEN (also: no other member would hold the kept keys),
 *   STATE_CONFLICT (the last owner), UNAUTHENTICATED
 * @see docs/design/rules.md#people
 */
export async function removeMember(
  ctx: Context,
  memberId: number,
  raw: z.input<typeof keptInput> = {},
): Promise<{ id: number }> {
  const actor = actorOf(ctx)
  const { merchantId } = actor
  const keepKeys = readInput(keptInput, raw).keepKeys ?? []
  const recording = recordingOf(ctx, 'removeMember')
  const { id, ended } = await changeTeam(
    ctx,
    'removes members of the merchant that the token names',
    async (tx, { hasOwner }) => {
      const member = await readMember(tx, merchantId, memberId)
      checkManages(actor, [member.role], hasOwner)
      if (member.isLastOwner) throw lastOwner()
      const revoked = await recordKeys(tx, recording, member.id, async () => {
        if (keepKeys.length > 0) await passKeys(tx, ctx, member, keepKeys)
        await recordedChange(tx, recording, ['member', member.id], () => takeOut(tx, { member: member.id }))
      })
      return { id: member.id, ended: revoked }
    },
  )
  for (const apiKeyId of ended) ctx.access.credentials.forget(apiKeyId)
  return { id }
}

/** Hands API keys of a member over to the person who calls, and writes a security alert about it. */
async function passKeys(
  tx: pg.PoolClient,
  ctx: Context,
  member: LockedMember,
  keys: readonly number[],
): Promise<void> {
  const actor = actorOf(ctx)
  const { merchantId } = actor
  const [kept] = await keepKeysOf(tx, { merchant: merchantId, member: member.id, actor: nameOf(actor), keys })
  if (kept?.outcome === 'no_person') {
    const message =
      'API keys can pass only to another member of the team. Sign in as that member, or use an API key ' +
      'whose secret was shown to that member.'
    throw new DomainError('FORBIDDEN', message)
  }
  if (kept?.outcome !== 'kept') {
    const message = 'must be a valid API key whose secret was shown to the removed member'
    throw invalidInput([{ field: `keepKeys[${(kept?.ordinal ?? 1) - 1}]`, message }])
  }
  const ids = [...new Set(keys)].toSorted((one, other) => one - other)
  const alert = {
    kind: 'keys_kept',
    message:
      `Member ${kept.keeper} now has these API keys: ${ids.join(', ')}. ${member.email}, who was removed, ` +
      'still knows their secrets: regenerate the keys.',
    team_member_id: kept.keeper,
    api_key_ids: ids,
    ...(ctx.clientAddress !== null && { ip: ctx.clientAddress }),
  }
  await recordAccess(tx, { merchant: merchantId, kind: 'security_alert', what: alert })
}
