import type { OperatorRequest } from '../../../prisma/generated/prisma/client.ts'
import { mine } from '../../identity/callers/actor.ts'
import { type Context, loader } from '../../context.ts'

/** The state of the request to an operator for one recipient, without the data that was sent. */
export type RecipientRequest = Pick<
  OperatorRequest,
  'state' | 'correlationId' | 'attempt' | 'checkCount' | 'acceptedAt' | 'createdAt'
>

/**
 * Reads the request to the operator for a recipient; null before the recipient is sent. All recipients of one
 * level of a query share one statement.
 */
export function loadRequest(ctx: Context, recipientId: bigint): Promise<RecipientRequest | null> {
  return loader<bigint, RecipientRequest | null>(ctx, 'asked', (ids) => readRequests(ctx, ids)).load(
    recipientId,
  )
}

async function readRequests(ctx: Context, ids: readonly bigint[]) {
  const { rows } = await ctx.database.merchantPool.query<RecipientRequest & { id: bigint }>({
    name: 'requests_of_recipients',
    text: `SELECT recipient_id AS id, state, correlation_id AS "correlationId", attempt,
        check_count AS "checkCount", accepted_at AS "acceptedAt", created_at AS "createdAt"
      FROM operator_request WHERE recipient_id = ANY ($2) AND merchant_id = $1`,
    values: [mine(ctx).merchantId, ids],
  })
  const byId = new Map(rows.map((row) => [row.id, row]))
  return ids.map((id) => byId.get(id) ?? null)
}
