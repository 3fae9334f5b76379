import type { PoolClient } from 'pg'
import { z } from 'zod'
import { type Actor, actorOf, mine, nameOf } from '../../identity/actor.ts'
import { recordedChange, recordingOf, recordMade } from '../../audit/audit-log.ts'
import { isAddressAllowed, networkEntry } from '../../shared/ip-whitelist.ts'
import type { Context } from '../../context.ts'
import { asPlatform } from '../../database/as-platform.ts'
import { transact } from '../../database/transact.ts'
import { DomainError } from '../../shared/errors.ts'
import { amount, email, invalidInput, oneOf, readInput, text } from '../../shared/input.ts'
import { limits } from '../../shared/limits.ts'
import { recordAccess } from '../../identity/record-access.ts'
import { sqlFunction, sqlType } from '../../database/sql-function.ts'

/** Why this looks past row-level security. */
const reason = 'changes the merchant that the token names'

/** Highest amount from which on payouts wait for a person. Choice: above any batch. */
const approvalThresholdMaxXof = 1_000_000_000_000

/** People who must approve one thing, at most (issue 6). */
const approvalsRequiredMax = 3

/** Entries of an address whitelist (design: reliability, section 7). */
const ipWhitelistMax = 50

/** What people of an account are written to in. */
export const locales = ['fr', 'en'] as const

const people = `must be a whole number from 1 to ${approvalsRequiredMax}`

export const updateSettingsInput = z.object({
  businessName: text({ min: 1, max: limits.merchantNameLengthMax }).nullish(),
  notificationEmail: z.union([z.literal(''), email], 'must be an e-mail address, or empty').nullish(),
  payoutsRequireApproval: z.boolean('must be true or false').nullish(),
  approvalThreshold: amount({ min: 0, max: approvalThresholdMaxXof }).nullish(),
  approvalsRequired: z.int(people).min(1, people).max(approvalsRequiredMax, people).nullish(),
  approvalsCoverDeposits: z.boolean('must be true or false').nullish(),
  ipWhitelist: z
    .array(networkEntry, 'must be a list of addresses and CIDR ranges')
    .max(ipWhitelistMax, `must have at most ${ipWhitelistMax} entries`)
    .transform((entries) => [...new Set(entries)])
    .nullish(),
  locale: oneOf(locales).nullish(),
})
type UpdateSettingsInput = z.input<typeof updateSettingsInput>

/**
 * Changes what is given of the account's settings, and leaves the rest as it is. A whitelist holds on every
 * node within a second, for open sockets too, and for money at once: the statements that move it judge the
 * address themselves. The log tells of the change. Approvals are asked of payments that are made from then
 * on: what waits keeps waiting as it was asked. What loosens approvals that are on waits as a
 * `SettingsChange` for as many people as they ask for; the rest holds at once.
 * @param raw.notificationEmail empty removes it
 * @param raw.approvalThreshold whole XOF
 * @param raw.approvalsRequired 1 to 3 people
 * @param raw.ipWhitelist addresses and ranges, kept in their one spelling; none lets all in
 * @throws DomainError INVALID_INPUT, also where the whitelist would shut out the caller; FORBIDDEN where an
 *   API key would loosen approvals; STATE_CONFLICT where another change that loosens them waits already
 * @see decisions: Settings
 */
export async function updateSettings(ctx: Context, raw: UpdateSettingsInput): Promise<void> {
  const input = readInput(updateSettingsInput, raw)
  const actor = actorOf(ctx)
  const { ipWhitelist, notificationEmail } = input
  if (ipWhitelist && !isAddressAllowed(ipWhitelist, ctx.clientAddress)) {
    const message = `must contain your own IP address, ${ctx.clientAddress ?? 'which is not known'}`
    throw invalidInput([{ field: 'ipWhitelist', message }])
  }
  const changes = {
    merchant: actor.merchantId,
    businessName: input.businessName,
    address: notificationEmail,
    whitelist: ipWhitelist,
    language: input.locale,
  }
  const recording = recordingOf(ctx, 'updateSettings')
  await transact(asPlatform(ctx, reason), async (tx) => {
    const before = await tx.query<{ whitelist: string[] }>(lockSql, [actor.merchantId])
    const waits = await recordedChange(tx, recording, ['merchant', actor.merchantId], async () => {
      await changeSettings(tx, changes)
      return changeApprovals(tx, ctx, input)
    })
    if (waits !== null) await recordMade(tx, recording, ['settings_change', waits])
    const was = before.rows[0]?.whitelist ?? []
    if (ipWhitelist && ipWhitelist.join() !== was.join()) await emitChange(tx, ctx, actor, ipWhitelist)
  })
  ctx.sequencer.notify()
}

const lockSql = 'SELECT ip_whitelist AS whitelist FROM merchant WHERE id = $1 FOR NO KEY UPDATE'

const changeSettings = sqlFunction('change_settings', {
  takes: {
    merchant: 'int',
    businessName: 'text?',
    address: 'text?',
    whitelist: 'text[]?',
    language: sqlType<(typeof locales)[number] | null>('locale?'),
  },
  gives: 'void',
})

const changeApprovalSettings = sqlFunction('change_approvals', {
  takes: {
    merchant: 'int',
    credential: 'int',
    credentialVersion: 'int',
    actor: 'text',
    asked: 'jsonb',
    approvalMs: 'bigint',
    address: 'text?',
  },
  gives: { outcome: sqlType<'changed' | 'waits' | 'no_person' | 'conflict'>('text'), changeId: 'int?' },
})

const findApprovalGaps = sqlFunction('approval_gaps', { takes: { merchant: 'int' }, gives: 'text[]?' })

/** The settings of approvals that a request names, in the words of REST. */
function approvalsIn(input: z.output<typeof updateSettingsInput>): Record<string, boolean | number> {
  const { payoutsRequireApproval, approvalThreshold, approvalsRequired, approvalsCoverDeposits } = input
  return {
    ...(payoutsRequireApproval != null && { payouts_require_approval: payoutsRequireApproval }),
    ...(approvalThreshold != null && { approval_threshold: Number(approvalThreshold) }),
    ...(approvalsRequired != null && { approvals_required: approvalsRequired }),
    ...(approvalsCoverDeposits != null && { approvals_cover_deposits: approvalsCoverDeposits }),
  }
}

/**
 * @returns the id of the change that waits for people, or null where nothing waits
 * @throws DomainError FORBIDDEN, STATE_CONFLICT
 */
async function changeApprovals(
  tx: PoolClient,
  ctx: Context,
  input: z.output<typeof updateSettingsInput>,
): Promise<number | null> {
  const asked = approvalsIn(input)
  if (Object.keys(asked).length === 0) return null
  const actor = actorOf(ctx)
  const { merchantId, apiKeyId, apiKeyVersion } = actor
  const [changed] = await changeApprovalSettings(tx, {
    merchant: merchantId,
    credential: apiKeyId,
    credentialVersion: apiKeyVersion,
    actor: nameOf(actor),
    asked,
    approvalMs: limits.approvalLifetimeMs,
    address: ctx.clientAddress,
  })
  if (changed?.outcome === 'no_person') {
    const message =
      'An API key cannot make approvals less strict. A signed-in owner or admin must request it, and other ' +
      'members must approve it.'
    throw new DomainError('FORBIDDEN', message)
  }
  if (changed?.outcome === 'conflict') {
    const message = 'Another settings change already waits for approval. Approve or reject it first.'
    throw new DomainError('STATE_CONFLICT', message)
  }
  return changed?.changeId ?? null
}

/** What approvals do not keep one person from doing, in sentences; none while they are off. */
export async function approvalGaps(ctx: Context): Promise<string[]> {
  return (await findApprovalGaps(asPlatform(ctx, reason).pool, { merchant: mine(ctx).merchantId })) ?? []
}

async function emitChange(
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
  await recordAccess(tx, { merchant: actor.merchantId, kind: 'security_alert', what: alert })
}
