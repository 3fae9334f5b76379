import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import { platformRecording, recordChange, type Recording } from '../../audit/audit-log.ts'
import type { Services } from '../../context.ts'
import { asPlatform } from '../../database/as-platform.ts'
import { transact } from '../../database/transact.ts'
import { type Balance, readBalance } from '../../ledger/balance.ts'
import { fund } from '../../ledger/post.ts'
import { DomainError } from '../../shared/errors.ts'
import { amount, readInput } from '../../shared/input.ts'
import { limits } from '../../shared/limits.ts'

/** The reason why this function bypasses row-level security. */
const reason = 'an administrator, or the owner of a sandbox, names the merchant'

export const fundInput = z.object({ amount: amount({ min: 1, max: limits.fundAmountMaxXof }) })

/**
 * Credits a sandbox merchant through the ledger, from the account `funding`.
 * @param raw.amount whole XOF
 * @param options.id the id of the funding: a repetition with the same id credits nothing
 * @param options.recording the actor for the audit log; left out, the platform
 * @returns the balance afterwards
 * @throws DomainError INVALID_INPUT, NOT_FOUND
 */
export async function fundMerchant(
  services: Pick<Services, 'database'>,
  merchantId: number,
  raw: z.input<typeof fundInput>,
  { id, recording }: { id?: string | undefined; recording?: Recording } = {},
): Promise<Balance> {
  const input = readInput(fundInput, raw)
  const { pool } = asPlatform(services, reason)
  const { rowCount } = await pool.query('SELECT FROM merchant WHERE id = $1', [merchantId])
  if (rowCount === 0) throw new DomainError('NOT_FOUND', `There is no merchant ${merchantId}.`)
  const origin = `funding:${id ?? randomUUID()}`
  await transact(asPlatform(services, reason), async (tx) => {
    if (!(await fund(tx, { merchant: merchantId, origin, amount: input.amount }))) return
    const by = recording ?? platformRecording(merchantId, 'merchant fund')
    await recordChange(tx, by, { target: ['merchant', merchantId], after: { funded: Number(input.amount) } })
  })
  return readBalance(pool, merchantId)
}
