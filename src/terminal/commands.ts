import { z } from 'zod'
import { addressesOf } from '../config/config.ts'
import { readKeptHead, verifyAuditLog } from '../audit/verify-chain.ts'
import type { Role } from '../identity/members/roles.ts'
import type { AdminServices } from './administration-context.ts'
import { type PassProgress, proveWhole } from '../ledger/audit.ts'
import { haltPaymentsOut, reasonLengthMax, resumePaymentsOut } from '../ledger/payments-out.ts'
import { type Invariant, invariants, type LedgerProblem } from '../ledger/verify.ts'
import { createMerchant } from '../resources/merchants/create.ts'
import { activateMerchant } from '../resources/merchants/activate.ts'
import { deactivateMerchant } from '../resources/merchants/deactivate.ts'
import { fundMerchant } from '../resources/merchants/fund.ts'
import { cancelBatchesOf } from '../resources/batches/cancel-all.ts'
import { cancelPayoutsOf } from '../resources/payouts/cancel-all.ts'
import { inviteAsPlatform } from '../resources/team/invite.ts'
import { formatXof } from '../shared/money.ts'
import { exactNumber } from '../shared/exact-number.ts'
import { readInput, text, wholeNumber } from '../shared/input.ts'
import { DomainError } from '../shared/errors.ts'
import { differenceCommands } from './difference-commands.ts'
import { restoreCommands } from './restore-commands.ts'
import { limits } from '../shared/limits.ts'

/** The flags of all commands. */
interface Flags {
  name?: string | undefined
  id?: string | undefined
  amount?: string | undefined
  merchant?: string | undefined
  email?: string | undefined
  role?: string | undefined
  reason?: string | undefined
  by?: string | undefined
  'keep-keys'?: boolean | undefined
  again?: boolean | undefined
  without?: string | undefined
  head?: string | undefined
}

interface Done {
  /** For programs (`--json`). */
  answer: object
  /** For people. */
  words: string
  failed?: boolean
}

/** The commands of `npm run admin` that need the services, by name. */
export const commands: Readonly<Record<string, (services: AdminServices, flags: Flags) => Promise<Done>>> = {
  'merchant create': async (services, { name = '' }) => {
    const made = await createMerchant(services, { name })
    const secret = made.apiSecret.reveal()
    return {
      answer: { merchant_id: made.merchantId, api_key: made.apiKey, api_secret: secret },
      words: [
        `Merchant ${made.merchantId}`,
        `  API key     ${made.apiKey}`,
        `  API secret  ${secret}   (shown this once)`,
      ].join('\n'),
    }
  },
  'merchant fund': async (services, { id, amount }) => {
    if (services.config.mode !== 'sandbox')
      throw new DomainError('NOT_FOUND', 'Only a sandbox can be funded.')
    const merchantId = readInput(merchantIdInput, { id }).id
    const { available } = await fundMerchant(services, merchantId, {
      amount: exactNumber(amount ?? 'missing'),
    })
    return {
      answer: { merchant_id: merchantId, available: Number(available) },
      words: `Merchant ${merchantId} now has ${formatXof(available, 'en')} available.`,
    }
  },
  'merchant deactivate': async (services, { id }) => {
    const merchantId = readInput(merchantIdInput, { id }).id
    await deactivateMerchant(services, merchantId)
    return {
      answer: { merchant_id: merchantId, status: 'inactive' },
      words: `Merchant ${merchantId} is inactive.`,
    }
  },
  'merchant activate': async (services, { id }) => {
    const merchantId = readInput(merchantIdInput, { id }).id
    await activateMerchant(services, merchantId)
    return {
      answer: { merchant_id: merchantId, status: 'active' },
      words: `Merchant ${merchantId} is active. Its keys work again as before.`,
    }
  },
  'merchant cancel-payouts': async (services, { id }) => {
    const merchantId = readInput(merchantIdInput, { id }).id
    const cancelled = await cancelPayoutsOf(services, merchantId)
    const batches = await cancelBatchesOf(services, merchantId)
    return {
      answer: { merchant_id: merchantId, cancelled, batches_cancelled: batches },
      words: `${cancelled} payouts and ${batches} batches of merchant ${merchantId} are cancelled.`,
    }
  },
  'member invite': (services, flags) => invite(services, flags, 'member invite'),
  'owner invite': (services, flags) => invite(services, { ...flags, role: 'owner' }, 'owner invite'),
  audit,
  'ledger verify': audit,
  'audit-log verify': verifyLogs,
  ...differenceCommands,
  ...restoreCommands,
  'payments-out halt': async (services, flags) => {
    const { reason } = readInput(reasonInput, flags)
    const done = await haltPaymentsOut(services.database.pool, reason)
    return {
      answer: { halted: true, changed: done },
      words: done ? 'Payments out are halted: no money leaves.' : 'Payments out were halted already.',
    }
  },
  'payments-out resume': async (services, flags) => {
    const { reason } = readInput(reasonInput, flags)
    const done = await resumePaymentsOut(services.database.pool, reason)
    return {
      answer: { halted: false, changed: done },
      words: done
        ? 'Payments out are resumed. The next audit halts them again if the books are still broken.'
        : 'Payments out were not halted.',
    }
  },
}

const merchantInput = z.object({ merchant: wholeNumber(1, 2_147_483_647) })
const merchantIdInput = z.object({ id: wholeNumber(1, 2_147_483_647) })
const reasonInput = z.object({ reason: text({ min: 1, max: reasonLengthMax }) })

/** Invites a person to a team. The platform invites the first owner, because no member exists before. */
async function invite(
  services: AdminServices,
  { merchant, email = '', name = '', role }: Flags,
  command: string,
): Promise<Done> {
  const { merchant: merchantId } = readInput(merchantInput, { merchant })
  const person = { email, name, ...(role && { role: role as Role }) }
  const made = await inviteAsPlatform(services, merchantId, person, command)
  const { id, token: invitation, isRenewed } = made
  const { publicUrl } = addressesOf(services.config, services.config.port)
  const link = `${publicUrl}/join#${invitation}`
  const { smtpUrl, folder } = services.config.mail
  const sent = smtpUrl || folder ? ' The service also sends it by e-mail.' : ''
  const again = isRenewed ? ' again: the link before this one stopped working' : ''
  return {
    answer: { merchant_id: merchantId, member_id: id, role: made.role, invitation, link },
    words: [
      `Member ${id} of merchant ${merchantId}, ${made.role}, is invited${again}.${sent}`,
      `  Link  ${link}`,
      `        (shown this once; it works once, for ${limits.invitationHours} hours)`,
    ].join('\n'),
  }
}

/** Proves all the books now, slice by slice, and reports the result of each invariant. */
async function audit({ database, progress }: AdminServices): Promise<Done> {
  const problems = await proveWhole(database, (slice) => progress?.(passWords(slice)))
  const names = Object.keys(invariants) as Invariant[]
  return {
    answer: { holds: problems.length === 0, problems },
    words: names.map((name) => verdict(name, problems)).join('\n'),
    failed: problems.length > 0,
  }
}

function passWords({ stage, idDone, idLast, slices }: PassProgress): string {
  const progress = idLast > 0n ? ` ${idDone} of ${idLast}` : ''
  return `${slices} slices proven; at ${stage}${progress}`
}

/** Verifies the whole chain of a merchant's audit log. */
async function verifyLogs(services: AdminServices, { merchant, head }: Flags): Promise<Done> {
  const { merchant: merchantId } = readInput(merchantInput, { merchant })
  const { auditKey } = services.access.master
  const { pool } = services.database
  const kept = head === undefined ? null : readKeptHead(auditKey, merchantId, head)
  const options = { after: 0n, most: Number.POSITIVE_INFINITY, kept }
  const { fault, upTo } = await verifyAuditLog(pool, auditKey, merchantId, options)
  const entries = Number(upTo)
  const contained = kept ? ', and contains the head' : ''
  const faultAt = fault && { sequence: Number(fault.position), problem: fault.problem }
  return {
    answer: { merchant_id: merchantId, intact: fault === null, entries, fault: faultAt },
    words: fault
      ? `The audit log of merchant ${merchantId} is broken at entry ${fault.position}: ${fault.problem}.`
      : `The audit log of merchant ${merchantId} is intact: ${entries} entries${contained}.`,
    failed: fault !== null,
  }
}

const linesMax = 20

/** Writes the result of one invariant for a person: `ok`, or the first violations, each with its merchant. */
function verdict(name: Invariant, problems: readonly LedgerProblem[]): string {
  const mine = problems.filter(({ invariant }) => invariant === name)
  const lines = mine
    .slice(0, linesMax)
    .map(({ merchantId, problem }) => `  merchant ${merchantId}: ${problem}`)
  const more = mine.length > linesMax ? [`  and ${mine.length - linesMax} more`] : []
  const found = mine.length === 1 ? '1 violation' : `${mine.length} violations`
  return [`${name}  ${mine.length === 0 ? 'ok' : found}  ${invariants[name]}`, ...lines, ...more].join('\n')
}
