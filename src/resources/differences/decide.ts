import { sqlFunction, sqlType } from '../../database/sql-function.ts'
import { z } from 'zod'
import { platformRecording, recordChange } from '../../audit/audit-log.ts'
import type { Services } from '../../context.ts'
import { asPlatform } from '../../database/as-platform.ts'
import { transact } from '../../database/transact.ts'
import { reasonLengthMax } from '../../ledger/payments-out.ts'
import { DomainError } from '../../shared/errors.ts'
import { exactText, readInput, text, wholeNumber } from '../../shared/input.ts'
import type { Xof } from '../../shared/money.ts'
import { seesAll, type Verdict } from './list.ts'

const decisionInput = z.object({
  id: wholeNumber(1, 2_147_483_647),
  by: exactText({ min: 1, max: 200 }),
  reason: text({ min: 1, max: reasonLengthMax }),
})

/** The state of a difference after one person decided: `proposed` until another person decides the same. */
export interface Ruling {
  state: Verdict | 'proposed'
  merchantId: number
  /** The payment, as the ledger names it: `payout:7`. */
  origin: string
  /** The difference in whole XOF. */
  amount: Xof
}

/**
 * Decides who gets a difference. The decision of one person is a proposal; the money moves, once, when
 * another person decides the same. It leaves `unallocated` for `available` (`credited`), or for the clearing
 * account of the operator (`returned`, `paid`). State, ledger entry, event and audit entry are written in one
 * commit.
 * @param raw.by the person who decides, 1 to 200 characters; `raw.reason` says why, 1 to 1,000 characters
 * @throws DomainError INVALID_INPUT, NOT_FOUND, STATE_CONFLICT where it was decided before, or where the
 *   verdict does not fit the difference
 */
export async function decideDifference(
  services: Pick<Services, 'database'>,
  verdict: Verdict,
  raw: { id: string | undefined; by: string | undefined; reason: string | undefined },
): Promise<Ruling> {
  const { id, by, reason } = readInput(decisionInput, raw)
  return transact(asPlatform(services, seesAll), async (tx) => {
    const [made] = await decide(tx, { exceptionId: id, verdict, person: by, why: reason })
    if (made?.outcome === 'decided') {
      throw new DomainError('STATE_CONFLICT', `Difference ${id} was already decided.`)
    }
    if (made?.outcome === 'unfit') throw new DomainError('STATE_CONFLICT', unfit[verdict](id))
    if (!made || made.outcome === 'unknown')
      throw new DomainError('NOT_FOUND', `There is no difference ${id}.`)
    const { merchantId, origin, amount } = made as Omit<Ruling, 'state'>
    const isDone = made.outcome === 'done'
    const operation = `difference ${isDone ? verdict : 'proposal'}`
    const after = isDone
      ? { state: verdict, amount: Number(amount), decided_by: by, reason, proposed_by: made.firstPerson }
      : { proposed: verdict, amount: Number(amount), proposed_by: by, reason }
    const [kind = '', number = ''] = origin.split(':')
    await recordChange(tx, platformRecording(merchantId, operation), { target: [kind, number], after })
    return { merchantId, origin, amount, state: isDone ? verdict : 'proposed' }
  })
}

/** Why a verdict does not fit a difference. */
const unfit: Readonly<Record<Verdict, (id: number) => string>> = {
  credited: (id) => `Difference ${id} cannot be credited.`,
  returned: (id) =>
    `Difference ${id} is the rest of a payment out: no payer gets it back. Decide credit or paid.`,
  paid: (id) =>
    `Difference ${id} is no rest of a payment out, or the operator took the payment back. ` +
    'Decide credit or return.',
}

const decide = sqlFunction('decide_difference', {
  takes: {
    exceptionId: 'int',
    verdict: sqlType<Verdict>('settlement_exception_state'),
    person: 'text',
    why: 'text',
  },
  gives: {
    outcome: sqlType<'done' | 'proposed' | 'unknown' | 'decided' | 'unfit'>('text'),
    merchantId: 'int?',
    origin: 'text?',
    amount: 'bigint?',
    firstPerson: 'text?',
  },
})
