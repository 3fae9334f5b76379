import type { Pool } from 'pg'
import { DomainError } from '../shared/errors.ts'
import { invariant } from '../shared/invariant.ts'
import type { Xof } from '../shared/money.ts'

export interface Balance {
  /** `available + reserved`. */
  balance: Xof
  available: Xof
  reserved: Xof
  /** The amount that the merchant owes; while it is above 0, nothing is available. */
  receivable: Xof
  asOf: Date
}

/** Reads the running balance of a merchant (`merchant_balance`). */
export async function readBalance(pool: Pool, merchantId: number): Promise<Balance> {
  const { rows } = await pool.query<Omit<Balance, 'balance'>>({
    name: 'read_balance',
    text: `SELECT available, reserved, receivable, service_now() AS "asOf"
      FROM merchant_balance WHERE merchant_id = $1`,
    values: [merchantId],
  })
  const row = rows[0]
  invariant(row, `merchant ${merchantId} has no balance`)
  return { ...row, balance: row.available + row.reserved }
}

/**
 * Returns the refusal of an amount that the available balance does not cover; it names the merchant's debt,
 * if any.
 */
export async function insufficientBalance(pool: Pool, merchantId: number): Promise<DomainError> {
  const { receivable } = await readBalance(pool, merchantId)
  if (receivable === 0n) return new DomainError('INSUFFICIENT_BALANCE')
  return new DomainError(
    'INSUFFICIENT_BALANCE',
    `This account owes ${receivable} XOF that an operator took back. Nothing was recorded.`,
  )
}
