import { sqlFunction, sqlType } from '../../database/sql-function.ts'
import { z } from 'zod'
import { platformRecording, recordChange } from '../../audit/audit-log.ts'
import type { Services } from '../../context.ts'
import { asPlatform } from '../../database/as-platform.ts'
import { transact } from '../../database/transact.ts'
import { reasonLengthMax } from '../../ledger/payments-out.ts'
import type { Provider } from '../../shared/providers.ts'
import { DomainError } from '../../shared/errors.ts'
import { readInput, text, wholeNumber } from '../../shared/input.ts'
import type { Xof } from '../../shared/money.ts'

/** The reason to read without row-level security. */
const seesAll = 'an administrator sees all merchants'

/**
 * An excess: the operator reported a larger payment for a collection than was requested. A person must still
 * decide who gets the difference.
 */
export interface Excess {
  id: number
  merchantId: number
  transactionId: bigint
  reference: string
  paymentMethod: Provider
  /** The requested amount in whole XOF; the excess is the difference to `confirmedAmount`. */
  requestedAmount: Xof
  confirmedAmount: Xof
  createdAt: Date
}

/** The decision of a person: the merchant gets the excess, or it was given back to the payer. */
export type ExcessVerdict = 'credited' | 'returned'

/** Lists the open excesses of all merchants, oldest first, at most 200. */
export async function listExcesses(services: Pick<Services, 'database'>): Promise<Excess[]> {
  const { rows } = await asPlatform(services, seesAll).pool.query<Excess>({
    name: 'open_excesses',
    text: `SELECT x.id, x.merchant_id AS "merchantId", x.transaction_id AS "transactionId", t.reference,
        t.payment_method AS "paymentMethod", x.requested_amount AS "requestedAmount",
          x.confirmed_amount AS "confirmedAmount",
        x.created_at AS "createdAt"
      FROM settlement_exception x
      JOIN transaction t ON t.merchant_id = x.merchant_id AND t.id = x.transaction_id
      WHERE x.state = 'open' ORDER BY x.id LIMIT $1`,
    values: [listMax],
  })
  return rows
}

/** The most excesses in one list. Choice: more than a person works through at a time. */
const listMax = 200

const decisionInput = z.object({
  id: wholeNumber(1, 2_147_483_647),
  by: text({ min: 1, max: 200 }),
  reason: text({ min: 1, max: reasonLengthMax }),
})

/**
 * Decides once who gets an excess. `credited` moves it from `unallocated` to `available`; `returned` moves it
 * to the operator's clearing account, after a person has given it back to the payer there. State, ledger
 * entry, event and the merchant's audit entry are written in one commit.
 * @param raw.by the person who decides, 1 to 200 characters; `raw.reason` says why, 1 to 1,000 characters
 * @returns the merchant, the transaction and the excess in whole XOF
 * @throws DomainError INVALID_INPUT, NOT_FOUND, STATE_CONFLICT where it was decided before
 */
export async function decideExcess(
  services: Pick<Services, 'database'>,
  verdict: ExcessVerdict,
  raw: { id: string | undefined; by: string | undefined; reason: string | undefined },
): Promise<{ merchantId: number; transactionId: bigint; amount: Xof }> {
  const { id, by, reason } = readInput(decisionInput, raw)
  return transact(asPlatform(services, seesAll), async (tx) => {
    const [made] = await decide(tx, { exceptionId: id, verdict, person: by, why: reason })
    if (made?.outcome === 'decided') {
      throw new DomainError('STATE_CONFLICT', `Excess ${id} was already decided.`)
    }
    if (made?.outcome !== 'done') throw new DomainError('NOT_FOUND', `There is no excess ${id}.`)
    const { merchantId, transactionId, amount } = made as Done
    const recording = platformRecording(merchantId, `excess ${verdict === 'credited' ? 'credit' : 'return'}`)
    const after = { state: verdict, amount: Number(amount), decided_by: by, reason }
    await recordChange(tx, recording, { target: ['transaction', transactionId], after })
    return { merchantId, transactionId, amount }
  })
}

const decide = sqlFunction('decide_excess', {
  takes: {
    exceptionId: 'int',
    verdict: sqlType<ExcessVerdict>('settlement_exception_state'),
    person: 'text',
    why: 'text',
  },
  gives: {
    outcome: sqlType<'done' | 'unknown' | 'decided'>('text'),
    merchantId: 'int?',
    transactionId: 'bigint?',
    amount: 'bigint?',
  },
})

interface Done {
  merchantId: number
  transactionId: bigint
  amount: Xof
}
