import type { OperatorRequest } from '../../../prisma/generated/prisma/client.ts'
import { mine } from '../../identity/actor.ts'
import { type Context, loader } from '../../context.ts'

/** What an operator was asked about a recipient, without what it was asked with. */
export type RecipientRequest = Pick<
  OperatorRequest,
  'state' | 'correlationId' | 'attempt' | 'checkCount' | 'acceptedAt' | 'createdAt'
>

/** What the operator was asked; null before a recipient's turn. One statement for all of them. */
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
