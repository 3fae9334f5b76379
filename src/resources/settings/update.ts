import type { PoolClient } from 'pg'
import { z } from 'zod'
import { type Actor, actorOf, mine, nameOf } from '../../identity/callers/actor.ts'
import { recordedChange, recordingOf, recordMade } from '../../audit/audit-log.ts'
import { isAddressAllowed, networkEntry } from '../../shared/ip-whitelist.ts'
import type { Context } from '../../context.ts'
import { asPlatform } from '../../database/as-platform.ts'
import { transact } from '../../database/transact.ts'
import { DomainError } from '../../shared/errors.ts'
import {
  amount,
  contactPhone,
  email,
  invalidInput,
  oneOf,
  readInput,
  replaced,
  text,
} from '../../shared/input.ts'
import { limits } from '../../shared/limits.ts'
import { recordAccess } from '../../identity/changes/record-access.ts'
import { checkTimeZone, timeZoneName } from '../../shared/time-zone.ts'
import { sqlFunction, sqlType } from '../../database/sql-function.ts'

/** The reason to write without row-level security. */
const reason = 'changes the merchant that the token names'

/**
 * The highest value of the setting `approvalThreshold`. Choice: the total of the largest possible batch.
 */
const approvalThresholdMaxXof = 1_000_000_000_000

/** The most approvals that one payment or change may require (see docs/design/rules.md#approvals). */
export const approvalsRequiredMax = 3

/** The most entries of an address whitelist (see docs/design/rules.md#settings). */
const ipWhitelistMax = 50

/** The languages of e-mails to the members of an account. */
export const locales = ['fr', 'en'] as const

const people = `must be a whole number from 1 to ${approvalsRequiredMax}`

export const updateSettingsInput = z.object({
  businessName: replaced(text({ min: 1, max: limits.merchantNameLengthMax })),
  notificationEmail: z.union([z.literal(''), email], 'must be an e-mail address, or empty').nullish(),
  businessPhone: z
    .union([z.literal(''), contactPhone], 'must be a telephone number, such as +223 76 12 34 56, or empty')
    .nullish(),
  businessAddress: z
    .union([z.literal(''), text({ min: 1, max: limits.merchantAddressLengthMax })], 'must be text')
    .nullish(),
  payoutsRequireApproval: replaced(z.boolean('must be true or false')),
  approvalThreshold: replaced(amount({ min: 0, max: approvalThresholdMaxXof })),
  approvalsRequired: replaced(z.int(people).min(1, people).max(approvalsRequiredMax, people)),
  approvalsCoverDeposits: replaced(z.boolean('must be true or false')),
  ipWhitelist: replaced(
    z
      .array(networkEntry, 'must be a list of addresses and CIDR ranges')
      .max(ipWhitelistMax, `must have at most ${ipWhitelistMax} entries`)
      .transform((entries) => [...new Set(entries)]),
  ),
  locale: replaced(oneOf(locales)),
  timeZone: replaced(timeZoneName),
})
type UpdateSettingsInput = z.input<typeof updateSettingsInput>

/**
 * Changes the given settings of the account and leaves the others as they are. A new whitelist applies on
 * every node within a second, also to open sockets, and to payments at once, because the statements that
 * record payments check the address themselves. A changed whitelist writes a security alert. New approval
 * settings apply to payments made from then on; waiting payments keep their old terms. A change that loosens
 * active approvals waits as a `SettingsChange` for the approvals that the present settings require; other
 * changes apply at once.
 * @param raw.notificationEmail null or an empty text removes it; so for `businessPhone`, `businessAddress`
 * @param raw.approvalThreshold whole XOF
 * @param raw.approvalsRequired 1 to 3 people
 * @param raw.ipWhitelist addresses and ranges, stored in normalized form; an empty list allows all addresses
 * @throws DomainError INVALID_INPUT, also where the whitelist would shut out the caller; FORBIDDEN where an
 *   API key would loosen approvals; STATE_CONFLICT where another change that loosens them waits already
 * @see docs/design/rules.md#settings
 */
export async function updateSettings(ctx: Context, raw: UpdateSettingsInput): Promise<void> {
  const input = readInput(updateSettingsInput, raw)
  const actor = actorOf(ctx)
  const { ipWhitelist, notificationEmail, businessPhone, businessAddress } = input
  if (ipWhitelist && !isAddressAllowed(ipWhitelist, ctx.clientAddress)) {
    const message = `must contain your own IP address, ${ctx.clientAddress ?? 'which is not known'}`
    throw invalidInput([{ field: 'ipWhitelist', message }])
  }
  if (input.timeZone) await checkTimeZone(ctx.database.merchantPool, input.timeZone)
  const changes = {
    merchant: actor.merchantId,
    businessName: input.businessName,
    // The statement keeps a text where it is given none, and removes it where it is given an empty one.
    address: notificationEmail === null ? '' : notificationEmail,
    phone: businessPhone === null ? '' : businessPhone,
    postalAddress: businessAddress === null ? '' : businessAddress,
    whitelist: ipWhitelist,
    language: input.locale,
    zone: input.timeZone,
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
}

const lockSql = 'SELECT ip_whitelist AS whitelist FROM merchant WHERE id = $1 FOR NO KEY UPDATE'

const changeSettings = sqlFunction('change_settings', {
  takes: {
    merchant: 'int',
    businessName: 'text?',
    address: 'text?',
    whitelist: 'text[]?',
    language: sqlType<(typeof locales)[number] | null>('locale?'),
    zone: 'text?',
    phone: 'text?',
    postalAddress: 'text?',
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

/** Selects the approval settings of a request, with their names in REST. */
function approvalsIn(input: z.output<typeof updateSettingsInput>): Record<string, boolean | number> {
  const { payoutsRequireApproval, approvalThreshold, approvalsRequired, approvalsCoverDeposits } = input
  return {
    ...(payoutsRequireApproval !== undefined && { payouts_require_approval: payoutsRequireApproval }),
    ...(approvalThreshold !== undefined && { approval_threshold: Number(approvalThreshold) }),
    ...(approvalsRequired !== undefined && { approvals_required: approvalsRequired }),
    ...(approvalsCoverDeposits !== undefined && { approvals_cover_deposits: approvalsCoverDeposits }),
  }
}

/**
 * Changes the approval settings that the request names.
 * @returns the id of the change that waits for approval, or null where none waits
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

/** Lists in sentences the gaps of the caller's approvals (see approval_gaps.sql); empty if they are off. */
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
