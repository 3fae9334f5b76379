import type { Database } from '../database/client.ts'
import { asPlatform } from '../database/as-platform.ts'
import type { SqlConnection } from '../database/sql-function.ts'
import { DomainError, type RefusalCode } from '../shared/errors.ts'
import { formatXof } from '../shared/money.ts'
import type { Provider } from '../shared/providers.ts'
import { maskTelephones } from '../telemetry/mask.ts'

// The identity of a request is derived from the merchant's reference or `Idempotency-Key`. After a restore
// it may belong to a transfer that an operator made before (an orphan): the operator then answers with that
// transfer. If the request asks for another payment, it is refused, and nothing is recorded.

/**
 * Makes the refusal of a payment whose identity belongs to an orphan with other facts. The identity is
 * derived from a request of this merchant, so the orphan is the merchant's own.
 */
export async function otherLostPayment(
  ctx: { database: Pick<Database, 'pool'> },
  code: RefusalCode,
  identity: string,
): Promise<DomainError> {
  const { pool } = asPlatform(ctx, 'an orphan has no merchant: it is found by the identity of the request')
  return new DomainError(code, await describe(pool, identity))
}

/**
 * Refuses a batch with a recipient whose identity belongs to an orphan with other facts.
 * @param tx the transaction that writes or begins the batch; the error undoes it
 * @throws DomainError STATE_CONFLICT
 */
export async function refuseOtherLostPayments(tx: SqlConnection, batch: number): Promise<void> {
  const { rows } = await tx.query<{ account: string; identity: string }>({
    name: 'other_lost_recipient',
    text: `SELECT r.account, r.correlation_id AS identity
      FROM operator_orphan o JOIN batch_recipient r ON r.correlation_id = o.correlation_id
      WHERE r.batch_id = $1 AND NOT is_orphan_of(o, 'disburse', r.payment_method, r.amount, r.account)
      ORDER BY r.id LIMIT 1`,
    values: [batch],
  })
  const [other] = rows
  if (!other) return
  const words = await describe(tx, other.identity)
  throw new DomainError('STATE_CONFLICT', `Recipient ${maskTelephones(other.account)}: ${words}`)
}

interface Orphan {
  provider: Provider
  kind: 'collect' | 'disburse' | 'reverse'
  amount: bigint
  counterparty: string | null
  operatorRef: string
  postedAt: Date
}

/** Says what is known about the orphan with an identity. */
async function describe(connection: SqlConnection, identity: string): Promise<string> {
  const { rows } = await connection.query<Orphan>({
    name: 'orphan_of_identity',
    text: `SELECT provider, kind, amount, counterparty, operator_ref AS "operatorRef",
        posted_at AS "postedAt"
      FROM operator_orphan WHERE correlation_id = $1 ORDER BY kind = 'reverse', id LIMIT 1`,
    values: [identity],
  })
  const [orphan] = rows
  if (!orphan) return `${begin}. ${end}`
  const { provider, kind, amount, counterparty, operatorRef, postedAt } = orphan
  const side = kind === 'collect' ? 'from' : 'to'
  const number = counterparty ? maskTelephones(counterparty) : 'a number that it does not state'
  const money = `${formatXof(amount, 'en')} ${side} ${number} on ${postedAt.toISOString()}`
  return `${begin}: ${money}, by ${provider}, operator reference ${operatorRef}. ${end}`
}

const begin = 'Before the database was restored, another payment was made under this reference or key'
const end = 'Nothing was recorded. Use another reference, or another Idempotency-Key, for another payment.'
