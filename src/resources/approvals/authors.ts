import { mine } from '../../identity/callers/actor.ts'
import { type Context, loader } from '../../context.ts'

/** The member or API key that made something, as its row stores it. */
export interface Author {
  /** `member:7` or `api_key:12`, as in the audit log. */
  actor: string
  /**
   * The member behind the actor: for an API key, the member who received its secret. Null where the row does
   * not say: the present holder of a key may be another member than the one who used it.
   */
  memberId: number | null
}

export type AuthorKind = 'api_key' | 'member'

/** Returns the author that a row names. @param memberId the member behind a key; 0 or null if unknown */
export function authorOf(actor: string, memberId: number | null | undefined): Author {
  return { actor, memberId: idOfActor(actor, 'member') ?? (memberId || null) }
}

export function kindOf({ actor }: Pick<Author, 'actor'>): AuthorKind {
  return actor.startsWith('member:') ? 'member' : 'api_key'
}

/**
 * Reads the name of a member or an API key of the caller's merchant; null where the merchant has none such.
 * All authors of one level of a query share one statement.
 */
export function nameOfActor(ctx: Context, actor: string): Promise<string | null> {
  return loader<string, string | null>(ctx, 'namesOfActors', (actors) => readNames(ctx, actors)).load(actor)
}

async function readNames(ctx: Context, actors: readonly string[]): Promise<(string | null)[]> {
  const idsOf = (kind: AuthorKind) => [...new Set(actors.flatMap((actor) => idOfActor(actor, kind) ?? []))]
  const { rows } = await ctx.database.merchantPool.query<{ actor: string; name: string }>({
    name: 'names_of_actors',
    text: `SELECT 'member:' || t.id AS actor, t.name FROM team_member t
      WHERE t.id = ANY ($1) AND t.merchant_id = $3
      UNION ALL SELECT 'api_key:' || k.id, k.name FROM api_key k
      WHERE k.id = ANY ($2) AND k.merchant_id = $3`,
    values: [idsOf('member'), idsOf('api_key'), mine(ctx).merchantId],
  })
  const names = new Map(rows.map(({ actor, name }) => [actor, name]))
  return actors.map((actor) => names.get(actor) ?? null)
}

/** Returns the id in the name of an actor of this kind; null for other actors. */
function idOfActor(actor: string, kind: AuthorKind): number | null {
  const [, word, id] = /^(\w+):(\d+)$/.exec(actor) ?? []
  return word === kind ? Number(id) : null
}
