import { queryFromInfo } from '@pothos/plugin-prisma'
import type { GraphQLResolveInfo, GraphQLSchema } from 'graphql'
import { actorOf, mine } from '../../identity/callers/actor.ts'
import { type Context, loader } from '../../context.ts'
import { accessRuleOf, fulfils } from '../../graphql/access-plan.ts'
import { builder } from '../../graphql/builder.ts'
import { loadRow, type RowTable } from '../load-row.ts'
import { modelType } from '../../graphql/model-type.ts'
import { type OriginKind, readOrigin } from './origin.ts'

// The payment that a line of a statement is about: the object itself, its reference and the other party.
// A statement needs the scope `balance` alone, so each of these is shown only to a caller who may see the
// payment anyway.

const sources = {
  transaction: { type: 'Transaction', table: 'transaction', hasSmallIds: false },
  payout: { type: 'Payout', table: 'payout', hasSmallIds: false },
  batch: { type: 'Batch', table: 'batch', hasSmallIds: true },
  recipient: { type: 'BatchRecipient', table: 'batchRecipient', hasSmallIds: false },
} as const satisfies Record<OriginKind, { type: string; table: RowTable; hasSmallIds: boolean }>

interface Counterparty {
  name: string | null
  /** E.164. */
  phone: string
}

export const CounterpartyType = builder.objectRef<Counterparty>('Counterparty').implement({
  description: 'The other party of a payment: the person who pays or is paid.',
  fields: (t) => ({
    name: t.exposeString('name', {
      nullable: true,
      description: 'The name of the beneficiary or recipient; null when it is not known.',
    }),
    phone: t.exposeString('phone', {
      description: 'The phone number in E.164 format: +22370000000.',
    }),
  }),
})

export const StatementSubject = builder.unionType('StatementSubject', {
  description: 'A payment, or a batch whose money was reserved as a whole.',
  types: Object.values(sources).map(({ type }) => modelType(type)),
  resolveType: (row) => (row as unknown as { typename: string }).typename,
})

type Caller = Pick<Context, 'actor'>

/** Whether the caller's scopes show things of a kind. */
function sees(ctx: Caller, schema: GraphQLSchema, kind: OriginKind): boolean {
  return fulfils(accessRuleOf(schema, sources[kind].type), actorOf(ctx))
}

/**
 * Loads what a ledger entry is about, with the columns for which the document asks. Equal questions of one
 * page share one statement per kind.
 */
export async function loadSubject(ctx: Context, info: GraphQLResolveInfo, origin: string) {
  const about = readOrigin(origin)
  if (!about || !sees(ctx, info.schema, about.kind)) return null
  const { type, table, hasSmallIds } = sources[about.kind]
  const query = queryFromInfo({ context: ctx, info, typeName: type, select: { id: true } })
  const row = await loadRow<object>(ctx, table, query, hasSmallIds ? Number(about.id) : about.id)
  return row && Object.assign(row, { typename: type })
}

/** The reference and the other party of a payment. */
interface Description {
  reference: string | null
  phone: string | null
  name: string | null
}

/** Loads the reference and the other party of an entry. All entries of a page share one statement. */
export async function loadDescription(
  ctx: Context,
  { schema }: GraphQLResolveInfo,
  origin: string,
): Promise<Description | null> {
  const about = readOrigin(origin)
  if (!about || !sees(ctx, schema, about.kind)) return null
  const read = (origins: readonly string[]) => readDescriptions(ctx, origins)
  return loader<string, Description | null>(ctx, 'descriptions of entries', read).load(origin)
}

async function readDescriptions(ctx: Context, origins: readonly string[]): Promise<(Description | null)[]> {
  const about = origins.map((origin) => readOrigin(origin))
  const idsOf = (kind: OriginKind) => about.flatMap((each) => (each?.kind === kind ? [each.id] : []))
  const { rows } = await ctx.database.merchantPool.query<Description & { origin: string }>({
    name: 'describe_entries',
    text: `SELECT 'transaction:' || id AS origin, reference, nullif(customer_phone, '') AS phone, NULL AS name
        FROM transaction WHERE merchant_id = $1 AND id = ANY ($2)
      UNION ALL SELECT 'payout:' || id, reference, destination_phone, beneficiary_name
        FROM payout WHERE merchant_id = $1 AND id = ANY ($3)
      UNION ALL SELECT 'recipient:' || id, NULL, account, name
        FROM batch_recipient WHERE merchant_id = $1 AND id = ANY ($4)`,
    values: [mine(ctx).merchantId, idsOf('transaction'), idsOf('payout'), idsOf('recipient')],
  })
  const byOrigin = new Map(rows.map((row) => [row.origin, row]))
  return origins.map((origin) => byOrigin.get(origin) ?? null)
}
