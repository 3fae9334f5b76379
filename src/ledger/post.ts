import type { Pool, PoolClient } from 'pg'
import { type Batches, shareStatement } from '../database/batch.ts'
import { DomainError } from '../shared/errors.ts'
import type { Xof } from '../shared/money.ts'
import type { Provider } from '../shared/providers.ts'

export interface Reservation {
  merchantId: number
  /** What the money is for, `payout:12`; a cause reserves once. */
  cause: string
  amount: Xof
}

export type ReservationEnd =
  | { cause: string; step: 'post'; provider: Provider }
  | { cause: string; step: 'void' }

const reserveMany = shareStatement(async (pool: Pool, items: readonly Reservation[]) => {
  const { rows } = await pool.query<{ reserved: boolean; halted: boolean }>({
    name: 'reserve_many',
    text: 'SELECT reserved, halted FROM reserve_many($1, $2, $3)',
    values: [items.map((i) => i.merchantId), items.map((i) => i.cause), items.map((i) => i.amount)],
  })
  return rows
})

const endMany = shareStatement(async (pool: Pool, items: readonly ReservationEnd[]) => {
  const { rows } = await pool.query<{ ended: boolean }>({
    name: 'end_reservation_many',
    text: 'SELECT ended FROM end_reservation_many($1, $2::ledger_step[], $3::provider[])',
    values: [
      items.map((i) => i.cause),
      items.map((i) => i.step),
      items.map((i) => (i.step === 'post' ? i.provider : null)),
    ],
  })
  return rows.map((row) => row.ended)
})

/**
 * Sets money aside. False where `available` does not cover it: then nothing was written.
 * @throws DomainError PAYMENTS_OUT_HALTED (nothing was written)
 */
export async function reserve(batches: Batches, reservation: Reservation): Promise<boolean> {
  const { reserved, halted } = await batches.run(reserveMany, reservation)
  if (halted) throw new DomainError('PAYMENTS_OUT_HALTED')
  return reserved
}

/** Pays out what was set aside (`post`) or gives it back (`void`). True for the one call that did it. */
export function endReservation(batches: Batches, end: ReservationEnd): Promise<boolean> {
  return batches.run(endMany, end)
}

/** Credits a sandbox merchant, once per cause. False where this cause funded before. */
export async function fund(
  client: Pool | PoolClient,
  merchantId: number,
  cause: string,
  amount: Xof,
): Promise<boolean> {
  const { rows } = await client.query<{ funded: boolean }>('SELECT fund_merchant($1, $2, $3) AS funded', [
    merchantId,
    cause,
    amount,
  ])
  return rows[0]?.funded === true
}
