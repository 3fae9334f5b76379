import type { Prisma } from '../../../prisma/generated/prisma/client.ts'
import { beyond, checkPage } from '../../graphql/pagination.ts'
import { limits } from '../../shared/limits.ts'
import type { deliveryStates } from './states.ts'

/** Which deliveries of an endpoint are shown. */
interface DeliveriesPage {
  first?: number | null | undefined
  after?: string | null | undefined
  status?: (typeof deliveryStates.statuses)[number] | null | undefined
}

/** A page of deliveries, and one more that tells whether there are others; newest first. */
export function deliveriesQuery({ first, after, status }: DeliveriesPage) {
  checkPage({ first })
  const id = after == null ? null : beyond({ id: after }, 1)
  return {
    where: { ...(id && { id }), ...(status && { status }) },
    orderBy: { id: 'desc' },
    take: (first ?? limits.pageSizeDefault) + 1,
  } as const satisfies Prisma.WebhookEndpoint$deliveriesArgs
}

/** The page, as a connection has it. Its cursors are ids. */
export function pageOfDeliveries<Row extends { id: bigint }>(
  rows: readonly Row[],
  { first, after }: DeliveriesPage,
) {
  const take = first ?? limits.pageSizeDefault
  const edges = rows.slice(0, take).map((node) => ({ cursor: String(node.id), node }))
  return {
    edges,
    pageInfo: {
      hasNextPage: rows.length > take,
      hasPreviousPage: after != null,
      startCursor: edges.at(0)?.cursor ?? null,
      endCursor: edges.at(-1)?.cursor ?? null,
    },
  }
}
