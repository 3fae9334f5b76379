import { userInfo } from 'node:os'
import { decideDifference, type Ruling } from '../resources/differences/decide.ts'
import { type Difference, listDifferences, type Verdict } from '../resources/differences/list.ts'
import { formatXof } from '../shared/money.ts'
import type { AdminServices } from './administration-context.ts'

interface Flags {
  id?: string | undefined
  reason?: string | undefined
  by?: string | undefined
}

/** The result of a command, for programs (`answer`) and for people (`words`). */
interface Done {
  answer: object
  words: string
}

/** The commands about amounts that operators confirm and that were not asked. Two people decide. */
export const differenceCommands = {
  'difference list': showDifferences,
  'difference credit': (services: AdminServices, flags: Flags) => decide(services, 'credited', flags),
  'difference return': (services: AdminServices, flags: Flags) => decide(services, 'returned', flags),
  'difference paid': (services: AdminServices, flags: Flags) => decide(services, 'paid', flags),
} as const

/** Lists the differences that wait for a decision. */
async function showDifferences(services: AdminServices): Promise<Done> {
  const open = await listDifferences(services)
  return {
    answer: {
      differences: open.map((difference) => ({
        id: difference.id,
        merchant_id: difference.merchantId,
        origin: difference.origin,
        reference: difference.reference,
        payment_method: difference.paymentMethod,
        requested_amount: Number(difference.requestedAmount),
        confirmed_amount: Number(difference.confirmedAmount),
        created_at: difference.createdAt,
        proposed_state: difference.proposedState,
        proposed_by: difference.proposedBy,
      })),
    },
    words: open.map(line).join('\n') || 'No difference waits for a decision.',
  }
}

function line(difference: Difference): string {
  const { id, merchantId, origin, reference, paymentMethod, createdAt, proposedBy } = difference
  return (
    `${id}  merchant ${merchantId}, ${origin}${reference === null ? '' : ` (${reference})`}, ` +
    `${paymentMethod}: requested ${formatXof(difference.requestedAmount, 'en')}, ` +
    `confirmed ${formatXof(difference.confirmedAmount, 'en')}, ${createdAt.toISOString()}` +
    (proposedBy === null ? '' : `; ${proposedBy} proposes: ${difference.proposedState}`)
  )
}

async function decide(services: AdminServices, verdict: Verdict, flags: Flags): Promise<Done> {
  const { id, reason, by = userInfo().username } = flags
  const ruling = await decideDifference(services, verdict, { id, reason, by })
  const { state, merchantId, origin, amount } = ruling
  return {
    answer: { merchant_id: merchantId, origin, amount: Number(amount), state },
    words: sentence(verdict, ruling),
  }
}

function sentence(verdict: Verdict, { state, merchantId, origin, amount }: Ruling): string {
  const what = `${formatXof(amount, 'en')} of ${origin}`
  if (state === 'proposed')
    return `Proposed for ${what}: ${verdict}. Nothing moved: another person must decide the same (--by).`
  const done: Readonly<Record<Verdict, string>> = {
    credited: `are credited to merchant ${merchantId}.`,
    returned: 'are booked as given back to the payer.',
    paid: 'are booked as paid by the operator.',
  }
  return `${what} ${done[verdict]}`
}
