import type { PoolClient } from 'pg'
import { z } from 'zod'
import { type Actor, actorOf, nameOf } from '../../access/actor.ts'
import { recordedChange, recordingOf } from '../../access/audit-log.ts'
import { isAddressAllowed, networkEntry } from '../../access/ip-whitelist.ts'
import type { Context } from '../../context.ts'
import { transact } from '../../database/transact.ts'
import { DomainError } from '../../shared/errors.ts'
import { amount, email, invalidInput, oneOf, readInput, text } from '../../shared/input.ts'
import { limits } from '../../shared/limits.ts'

/** What people of an account are written to in. */
export const locales = ['fr', 'en'] as const

const people = `must be a whole number from 1 to ${limits.approvalsRequiredMax}`

export const updateSettingsInput = z.object({
  businessName: text({ min: 1, max: limits.merchantNameLengthMax }).nullish(),
  notificationEmail: z.union([z.literal(''), email], 'must be an e-mail address, or empty').nullish(),
  payoutsRequireApproval: z.boolean('must be true or false').nullish(),
  approvalThreshold: amount({ min: 0, max: limits.approvalThresholdMaxXof }).nullish(),
  approvalsRequired: z.int(people).min(1, people).max(limits.approvalsRequiredMax, people).nullish(),
  ipWhitelist: z
    .array(networkEntry, 'must be a list of addresses and CIDR ranges')
    .max(limits.ipWhitelistMax, `must have at most ${limits.ipWhitelistMax} entries`)
    .transform((entries) => [...new Set(entries)])
    .nullish(),
  locale: oneOf(locales).nullish(),
})
type UpdateSettingsInput = z.input<typeof updateSettingsInput>

/**
 * Changes what is given of the account's settings, and leaves the rest as it is. A whitelist holds on every
 * node within a second, for open sockets too, and for money at once: the statements that move it judge the
 * address themselves. The log tells of the change. Approvals are asked of
 * payouts that are made from then on: what waits keeps waiting as it was asked.
 * @param raw.notificationEmail empty removes it
 * @param raw.approvalThreshold whole XOF
 * @param raw.approvalsRequired 1 to 3 people
 * @param raw.ipWhitelist addresses and ranges, kept in their one spelling; none lets all in
 * @throws DomainError INVALID_INPUT, also where the whitelist would shut out the caller; FORBIDDEN where an
 *   API key would loosen approvals
 * @see decisions: Settings
 */
export async function updateSettings(ctx: Context, raw: UpdateSettingsInput): Promise<void> {
  const input = readInput(updateSettingsInput, raw)
  const actor = actorOf(ctx)
  const { ipWhitelist, notificationEmail } = input
  if (ipWhitelist && !isAddressAllowed(ipWhitelist, ctx.clientAddress)) {
    const message = `must hold the address that you call from, ${ctx.clientAddress ?? 'which is not known'}`
    throw invalidInput([{ field: 'ipWhitelist', message }])
  }
  const values = [
    actor.merchantId,
    input.businessName ?? null,
    notificationEmail ?? null,
    input.payoutsRequireApproval ?? null,
    input.approvalThreshold ?? null,
    ipWhitelist ?? null,
    input.locale ?? null,
    input.approvalsRequired ?? null,
  ]
  await transact(ctx.database, async (tx) => {
    const before = await tx.query<{ whitelist: string[] } & Approvals>(heldSql, [actor.merchantId])
    if (actor.memberId === null && before.rows[0]) checkKeeps(before.rows[0], input)
    await recordedChange(tx, recordingOf(ctx, 'updateSettings'), ['merchant', actor.merchantId], () =>
      tx.query(updateSql, values),
    )
    const was = before.rows[0]?.whitelist ?? []
    if (ipWhitelist && ipWhitelist.join() !== was.join()) await tellChange(tx, ctx, actor, ipWhitelist)
  })
}

const heldSql = `
  SELECT ip_whitelist AS whitelist, payouts_require_approval AS "payoutsRequireApproval",
    approval_threshold AS "approvalThreshold", approvals_required AS "approvalsRequired"
  FROM merchant WHERE id = $1 FOR NO KEY UPDATE`

const updateSql = `
  UPDATE merchant SET
    name = coalesce($2, name),
    notification_email = nullif(coalesce($3, notification_email), ''),
    payouts_require_approval = coalesce($4, payouts_require_approval),
    approval_threshold = coalesce($5, approval_threshold),
    ip_whitelist = coalesce($6::text[], ip_whitelist),
    locale = coalesce($7::locale, locale),
    approvals_required = coalesce($8, approvals_required)
  WHERE id = $1`

interface Approvals {
  payoutsRequireApproval: boolean
  approvalThreshold: bigint
  approvalsRequired: number
}

/**
 * Approvals keep whoever has a key from paying out alone, so no key loosens them. While none are asked for
 * there is nothing to loosen.
 * @throws DomainError FORBIDDEN
 */
function checkKeeps(was: Approvals, input: z.output<typeof updateSettingsInput>): void {
  if (!was.payoutsRequireApproval) return
  const loosens =
    input.payoutsRequireApproval === false ||
    (input.approvalThreshold ?? 0n) > was.approvalThreshold ||
    (input.approvalsRequired ?? was.approvalsRequired) < was.approvalsRequired
  if (!loosens) return
  const message =
    'An API key never switches approvals off, nor asks fewer payouts or fewer people for them: that takes ' +
    'a signed-in owner or admin.'
  throw new DomainError('FORBIDDEN', message)
}

async function tellChange(
  tx: PoolClient,
  { clientAddress }: Context,
  actor: Actor,
  whitelist: readonly string[],
): Promise<void> {
  const now = whitelist.length === 0 ? 'lets every address in' : `has ${whitelist.length} entries`
  const message = `The address whitelist was changed by ${nameOf(actor)}: it ${now}.`
  const alert = {
    kind: 'whitelist_changed',
    message,
    ...(clientAddress !== null && { ip: clientAddress }),
  }
  await tx.query(`SELECT note_access($1, 'security_alert', $2)`, [actor.merchantId, alert])
}
