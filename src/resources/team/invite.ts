import type pg from 'pg'
import { z } from 'zod'
import { actorOf } from '../../identity/callers/actor.ts'
import { platformRecording, type Recording, recordingOf, recordMade } from '../../audit/audit-log.ts'
import { makeMemberToken } from '../../identity/members/member-tokens.ts'
import { type Role, roleNames } from '../../identity/members/roles.ts'
import type { Context, Services } from '../../context.ts'
import { asPlatform } from '../../database/as-platform.ts'
import { transact } from '../../database/transact.ts'
import { DomainError } from '../../shared/errors.ts'
import { email, oneOf, readInput, text, withDefault } from '../../shared/input.ts'
import { writeEmail } from './emails.ts'
import { changeTeam, checkManages, lockTeam, type TeamMerchant } from './team-lookup.ts'
import { sqlFunction, sqlType } from '../../database/sql-function.ts'
import { limits } from '../../shared/limits.ts'

/** The reason to work without row-level security. */
const reason = 'the token, or an administrator, names the merchant'

export const memberNameLengthMax = 200

export const memberName = text({ min: 1, max: memberNameLengthMax })
/** An e-mail address in lower case, so that one person has one address in every spelling. */
export const memberEmail = email.transform((address) => address.toLowerCase())

export const inviteMemberInput = z.object({
  name: memberName,
  email: memberEmail,
  role: withDefault(oneOf(roleNames), 'viewer'),
})
type InviteMemberInput = z.input<typeof inviteMemberInput>

/**
 * Invites a person to the team: an e-mail links to the page to choose a password, within 72 hours
 * (`limits.invitationHours`).
 * @throws DomainError INVALID_INPUT, FORBIDDEN (a role that the caller does not manage), ALREADY_MEMBER,
 *   UNAUTHENTICATED
 * @see docs/design/rules.md#people
 */
export async function inviteMember(ctx: Context, raw: InviteMemberInput): Promise<{ id: number }> {
  const actor = actorOf(ctx)
  const input = readInput(inviteMemberInput, raw)
  return changeTeam(ctx, reason, async (tx, shop) => {
    checkManages(actor, [input.role], shop.hasOwner)
    const person = { ...input, madeFor: ctx.idempotentOperation?.id ?? null }
    const recording = recordingOf(ctx, 'inviteMember')
    const { id } = await addMember(tx, ctx, { recording, shop, person })
    return { id }
  })
}

/**
 * Invites a person on behalf of the platform, for instance the first owner of an account.
 * @returns also the token of the e-mail, for a platform that sends no e-mails
 * @throws DomainError INVALID_INPUT, NOT_FOUND, ALREADY_MEMBER
 */
export async function inviteAsPlatform(
  services: Pick<Services, 'database' | 'access'>,
  merchantId: number,
  raw: InviteMemberInput,
): Promise<{ id: number; role: Role; token: string }> {
  const input = readInput(inviteMemberInput, raw)
  return transact(asPlatform(services, reason), async (tx) => {
    const shop = await lockTeam(tx, merchantId)
    const made = await addMember(tx, services, {
      recording: platformRecording(merchantId, 'member invite'),
      shop,
      person: { ...input, madeFor: null },
    })
    return { ...made, role: input.role }
  })
}

interface Newcomer {
  recording: Recording
  shop: TeamMerchant
  person: { name: string; email: string; role: Role; madeFor: string | null }
}

const insertMember = sqlFunction('add_member', {
  takes: {
    merchant: 'int',
    called: 'text',
    address: 'text',
    givenRole: sqlType<Role>('member_role'),
    operationId: 'text?',
    invitation: 'bytea',
    lifetimeMs: 'int',
  },
  gives: 'int?',
})

/** Adds a member and writes the e-mail of the invitation. @throws DomainError ALREADY_MEMBER */
async function addMember(
  tx: pg.PoolClient,
  { access: { master } }: Pick<Services, 'access'>,
  { recording, shop, person }: Newcomer,
): Promise<{ id: number; token: string }> {
  const { merchantId } = recording
  const { name, email: address, role, madeFor } = person
  const { token, hash } = makeMemberToken(master)
  const id = await insertMember(tx, {
    merchant: merchantId,
    called: name,
    address,
    givenRole: role,
    operationId: madeFor,
    invitation: hash,
    lifetimeMs: limits.invitationHours * 3_600_000,
  })
  if (id === null) return { id: await ownOf(tx, merchantId, madeFor), token: '' }
  const { name: merchant, locale } = shop
  const content = { template: 'invitation', locale, to: { name, address }, merchant, token } as const
  await writeEmail(tx, master, merchantId, content)
  await recordMade(tx, recording, ['member', id])
  return { id, token }
}

/** Finds the member that this same request added before. @throws DomainError ALREADY_MEMBER without one */
async function ownOf(tx: pg.PoolClient, merchantId: number, madeFor: string | null): Promise<number> {
  const { rows } = await tx.query<{ id: number }>(
    'SELECT id FROM team_member WHERE made_for = $2 AND merchant_id = $1',
    [merchantId, madeFor],
  )
  if (!rows[0]) throw new DomainError('ALREADY_MEMBER')
  return rows[0].id
}
