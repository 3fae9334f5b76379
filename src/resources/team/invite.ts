import type pg from 'pg'
import { z } from 'zod'
import { actorOf } from '../../identity/callers/actor.ts'
import {
  platformRecording,
  recordChange,
  type Recording,
  recordingOf,
  recordMade,
} from '../../audit/audit-log.ts'
import { makeMemberToken } from '../../identity/members/member-tokens.ts'
import type { MasterSecret } from '../../identity/secrets/secrets.ts'
import { type Role, roleNames } from '../../identity/members/roles.ts'
import type { Context, Services } from '../../context.ts'
import { asPlatform } from '../../database/as-platform.ts'
import { transact } from '../../database/transact.ts'
import { DomainError } from '../../shared/errors.ts'
import { email, oneOf, readInput, text, withDefault } from '../../shared/input.ts'
import { writeEmail } from './emails.ts'
import { changeTeam, checkManages, lockTeam, readMember, type TeamMerchant } from './team-lookup.ts'
import { sqlFunction, sqlType } from '../../database/sql-function.ts'
import { limits } from '../../shared/limits.ts'
import { takeHit } from '../../limits/window.ts'

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
    const madeFor = ctx.idempotentOperation?.id ?? null
    const person = { ...input, madeFor, invitedBy: actor.memberId }
    const recording = recordingOf(ctx, 'inviteMember')
    const { id } = await addMember(tx, ctx, { recording, shop, person })
    return { id }
  })
}

/**
 * Sends the invitation of a member who has not joined again: the earlier one stops working.
 * @throws DomainError NOT_FOUND, FORBIDDEN (a role that the caller does not manage), ALREADY_MEMBER (the
 *   member has joined), RATE_LIMITED (too many e-mails to this address), UNAUTHENTICATED
 * @see docs/design/rules.md#people
 */
export async function resendInvitation(ctx: Context, memberId: number): Promise<{ id: number }> {
  const actor = actorOf(ctx)
  return changeTeam(ctx, reason, async (tx, shop) => {
    const { id, name, email: address, role } = await readMember(tx, actor.merchantId, memberId)
    checkManages(actor, [role], shop.hasOwner)
    const policy = { max: limits.resendsMax, windowMs: limits.resendsWindowMs }
    const { allowed, resetS } = await takeHit(tx, `invitation:${actor.merchantId}:${address}`, policy)
    if (!allowed) throw new DomainError('RATE_LIMITED', undefined, { retryAfterS: resetS })
    const recording = recordingOf(ctx, 'resendInvitation')
    const person = { id, name, email: address, role: null, invitedBy: actor.memberId }
    await renewInvitation(tx, ctx, { recording, shop, person })
    return { id }
  })
}

/** An invitation that the platform made. */
interface PlatformInvitation {
  id: number
  role: Role
  /** The token of the e-mail, for a platform that sends no e-mails. */
  token: string
  /** True if the person was invited before: the earlier invitation stops working. */
  isRenewed: boolean
}

/**
 * Invites a person on behalf of the platform, for instance the first owner of an account. A person who was
 * invited before and has not joined gets a new invitation, which replaces the earlier one; the role stays
 * unless the command names one.
 * @param operation the name of the command, for the audit log
 * @throws DomainError INVALID_INPUT, NOT_FOUND, ALREADY_MEMBER (the person has joined)
 */
export async function inviteAsPlatform(
  services: Pick<Services, 'database' | 'access'>,
  merchantId: number,
  raw: InviteMemberInput,
  operation = 'member invite',
): Promise<PlatformInvitation> {
  const input = readInput(inviteMemberInput, raw)
  return transact(asPlatform(services, reason), async (tx) => {
    const shop = await lockTeam(tx, merchantId)
    const recording = platformRecording(merchantId, operation)
    const known = await findByEmail(tx, merchantId, input.email)
    if (known?.status === 'active') throw alreadyActive(input.email, merchantId, known.role)
    if (known) {
      const { name, email: address } = input
      const role = raw.role ? input.role : null
      const person = { id: known.id, name, email: address, role, invitedBy: null }
      const renewed = await renewInvitation(tx, services, { recording, shop, person })
      return { id: known.id, ...renewed, isRenewed: true }
    }
    const made = await addMember(tx, services, {
      recording,
      shop,
      person: { ...input, madeFor: null, invitedBy: null },
    })
    return { ...made, role: input.role, isRenewed: false }
  })
}

/** A member who was invited or has joined. */
interface KnownMember {
  id: number
  role: Role
  status: 'invited' | 'active'
}

async function findByEmail(
  tx: pg.PoolClient,
  merchantId: number,
  address: string,
): Promise<KnownMember | null> {
  const { rows } = await tx.query<KnownMember>(
    `SELECT id, role, status FROM team_member
     WHERE merchant_id = $1 AND email = $2 AND status <> 'removed'`,
    [merchantId, address],
  )
  return rows[0] ?? null
}

function alreadyActive(address: string, merchantId: number, role: Role): DomainError {
  const message =
    `${address} has joined the team of merchant ${merchantId} already, as ${role}. A member who forgot the ` +
    'password asks for another one (requestPasswordReset).'
  return new DomainError('ALREADY_MEMBER', message)
}

const renew = sqlFunction('renew_invitation', {
  takes: {
    member: 'int',
    called: 'text',
    givenRole: sqlType<Role | null>('member_role?'),
    inviter: 'int?',
    invitation: 'bytea',
    lifetimeMs: 'int',
  },
  gives: sqlType<Role | null>('member_role?'),
})

interface Renewal extends Omit<Newcomer, 'person'> {
  person: { id: number; name: string; email: string; role: Role | null; invitedBy: number | null }
}

/** Replaces an invitation and writes its e-mail. @throws DomainError ALREADY_MEMBER */
async function renewInvitation(
  tx: pg.PoolClient,
  { access: { master } }: Pick<Services, 'access'>,
  { recording, shop, person }: Renewal,
): Promise<{ role: Role; token: string }> {
  const { merchantId } = recording
  const { id, name, email: address, role: givenRole, invitedBy } = person
  const { token, hash } = makeMemberToken(master)
  const role = await renew(tx, {
    member: id,
    called: name,
    givenRole,
    inviter: invitedBy,
    invitation: hash,
    lifetimeMs: invitationLifetimeMs,
  })
  if (role === null) throw new DomainError('ALREADY_MEMBER', 'The member has joined the team already.')
  await writeInvitation(tx, master, merchantId, { shop, name, address, token })
  // A snapshot of the member may be as before: the entry says that the invitation is another one.
  await recordChange(tx, recording, {
    target: ['member', id],
    after: { name, email: address, role, invitation: 'renewed' },
  })
  return { role, token }
}

const invitationLifetimeMs = limits.invitationHours * 3_600_000

interface Newcomer {
  recording: Recording
  shop: TeamMerchant
  person: { name: string; email: string; role: Role; madeFor: string | null; invitedBy: number | null }
}

const insertMember = sqlFunction('add_member', {
  takes: {
    merchant: 'int',
    called: 'text',
    address: 'text',
    givenRole: sqlType<Role>('member_role'),
    operationId: 'text?',
    inviter: 'int?',
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
  const { name, email: address, role, madeFor, invitedBy } = person
  const { token, hash } = makeMemberToken(master)
  const id = await insertMember(tx, {
    merchant: merchantId,
    called: name,
    address,
    givenRole: role,
    operationId: madeFor,
    inviter: invitedBy,
    invitation: hash,
    lifetimeMs: invitationLifetimeMs,
  })
  if (id === null) return { id: await ownOf(tx, merchantId, madeFor), token: '' }
  await writeInvitation(tx, master, merchantId, { shop, name, address, token })
  await recordMade(tx, recording, ['member', id])
  return { id, token }
}

interface Invitation {
  shop: TeamMerchant
  name: string
  address: string
  token: string
}

/** Writes the e-mail of an invitation. */
async function writeInvitation(
  tx: pg.PoolClient,
  master: MasterSecret,
  merchantId: number,
  { shop: { name: merchant, locale }, name, address, token }: Invitation,
): Promise<void> {
  const content = { template: 'invitation', locale, to: { name, address }, merchant, token } as const
  await writeEmail(tx, master, merchantId, content)
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
