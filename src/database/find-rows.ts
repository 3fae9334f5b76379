import type pg from 'pg'
import { snakeCase } from '../shared/input.ts'
import type { ListOrder } from '../shared/page.ts'

// This file reads the pages and the sums of lists for which Prisma uses no index: lists with a search, lists
// in the order of the amounts, and lists whose filter few rows meet. PostgreSQL plans each statement for its
// own values, because the statement has no name.

/** A table that has such lists. */
export interface ListedTable {
  name: 'transaction' | 'payout' | 'batch' | 'payment_link'
  /** The column of the amounts. */
  amount: 'amount' | 'total_amount'
  /**
   * Finds the ids between which all rows of a period are: null for an end that needs no bound. No row where
   * the period has none. Without this, a list of an old period reads all newer rows first.
   */
  idsOfPeriod?: (
    pool: pg.Pool,
    period: { merchant: number; since: Date | null; until: Date | null },
  ) => Promise<readonly { oldest: bigint | null; newest: bigint | null }[]>
}

/**
 * A search: one or two forms of a text. One of them must occur in the words of a row, as the function
 * `<table>_words` gives them.
 */
export type Search = readonly {
  /** In the form of LIKE. */
  pattern: string
  /** The pattern for the index: it may find more rows, and is the faster one. */
  probe: string
}[]

/** The position of a row in a list. */
export interface Position {
  /** In whole francs; null where the list is in the order of creation. */
  amount: bigint | null
  id: bigint
}

interface Filtered {
  table: ListedTable
  /** Prisma's condition: of each column a value, some values, or a range. */
  where: { merchantId: number }
  search: Search | null
}

/** The position of a whole list, the newest first. */
const wholeList = {
  order: 'created_at_desc',
  after: null,
  before: null,
  isBackward: false,
  take: 0,
  skip: 0,
} as const

interface Page extends Filtered {
  order: ListOrder
  after: Position | null
  before: Position | null
  /** Whether to read from the end of the list towards its beginning. */
  isBackward: boolean
  take: number
  skip: number
}

/**
 * How many of the newest rows a search looks through one by one, before it asks the index: a text that is
 * found often fills its page there, and the index would first give all rows that have it. Where the first
 * rows fill a quarter of the page, more rows follow. Choice: 5,000 rows take 5 ms, as long as the index.
 */
const nearRows = [5_000, 20_000] as const
/** A text that this part of the newest rows has is read row by row: it is too frequent for the index. */
const frequentShare = 1 / 20

/**
 * Finds the ids of a page, in the order in which the page is read.
 * @param pool sees the rows of one merchant
 */
export async function findIds(pool: pg.Pool, page: Page): Promise<bigint[]> {
  if (!page.search) return findInPeriod(pool, page)
  for (const rows of nearRows) {
    const [edge] = await readIds(pool, edgeOf(page, rows))
    const near = await readIds(pool, walk(page, edge))
    if (edge === undefined || near.length === page.take) return near
    if (near.length < page.take / 4) break
  }
  const isByIndex = isNewest(page) || !(await isFrequent(pool, page))
  return readIds(pool, isByIndex ? byIndex(page, page.search) : walk(page))
}

/** Finds the ids of a page without a search. An order by amounts has no use for the ids of a period. */
async function findInPeriod(pool: pg.Pool, page: Page): Promise<bigint[]> {
  const { table, order } = page
  const { merchantId, createdAt } = page.where as {
    merchantId: number
    createdAt?: { gte?: Date; lte?: Date }
  }
  if (!table.idsOfPeriod || !createdAt || isByAmount(order)) return readIds(pool, walk(page))
  const { gte: since = null, lte: until = null } = createdAt
  const [between] = await table.idsOfPeriod(pool, { merchant: merchantId, since, until })
  if (!between) return []
  const { oldest, newest } = between
  const id = { ...(oldest !== null && { gte: oldest }), ...(newest !== null && { lte: newest }) }
  const where = { ...page.where, id }
  return readIds(pool, walk({ ...page, where }))
}

/**
 * Whether a page begins with the newest row and has no condition beside its search. Its first rows have then
 * shown how frequent the words are.
 */
function isNewest({ where, order, isBackward, after, before, skip }: Page): boolean {
  const isFirst = order === 'created_at_desc' && !isBackward && !after && !before && skip === 0
  return isFirst && Object.keys(where).length === 1
}

/** Finds the ids of a page as `findIds`, row by row: the fastest way to read a whole list page by page. */
export function walkIds(pool: pg.Pool, page: Page): Promise<bigint[]> {
  return readIds(pool, walk(page))
}

/**
 * Counts the rows that match a filter, or adds up their amounts in whole francs.
 * @param pool sees the rows of one merchant
 */
export async function totalOf(pool: pg.Pool, filtered: Filtered, what: 'rows' | 'amounts'): Promise<bigint> {
  const total = what === 'rows' ? 'count(*)' : `coalesce(sum(t.${filtered.table.amount}), 0)::bigint`
  const isByIndex = filtered.search !== null && !(await isFrequent(pool, filtered))
  return readTotal(pool, filtered, total, { isByIndex })
}

/** Whether a list is short, or many of its newest rows have the words of a search. */
async function isFrequent(pool: pg.Pool, { table, where, search }: Filtered): Promise<boolean> {
  const [near] = nearRows
  const filtered = { table, where: { merchantId: where.merchantId }, search }
  const [edge] = await readIds(pool, edgeOf({ ...filtered, ...wholeList }, near))
  if (edge === undefined) return true
  return (await readTotal(pool, filtered, 'count(*)', { isByIndex: false, edge })) > near * frequentShare
}

async function readTotal(
  pool: pg.Pool,
  { table, where, search }: Filtered,
  total: string,
  { isByIndex, edge }: { isByIndex: boolean; edge?: bigint },
): Promise<bigint> {
  const values: unknown[] = []
  const [source, words] =
    isByIndex && search
      ? foundBy(table, where, search, values)
      : [`${table.name} t`, wordsOf(table, search, values)]
  const found = [...conditionsOf(where, values), ...words]
  if (edge !== undefined) found.push(`t.id > ${put(values, edge)}::bigint`)
  const text = `SELECT ${total} AS total FROM ${source} WHERE ${found.join(' AND ')}`
  const { rows } = await pool.query<{ total: bigint }>({ text, values })
  return rows[0]?.total ?? 0n
}

interface Statement {
  text: string
  values: unknown[]
}

async function readIds(pool: pg.Pool, statement: Statement): Promise<bigint[]> {
  const { rows } = await pool.query<{ id: bigint }>(statement)
  return rows.map(({ id }) => id)
}

/** Reads rows in their order until the page is full. @param edge the id of the first row that is too far */
function walk(page: Page, edge?: bigint): Statement {
  const { table, where, search } = page
  const values: unknown[] = []
  const found = [...conditionsOf(where, values), ...boundsOf(page, values), ...wordsOf(table, search, values)]
  if (edge !== undefined) found.push(`t.id ${isDescending(page) ? '>' : '<'} ${put(values, edge)}::bigint`)
  const text = `SELECT t.id::bigint AS id FROM ${table.name} t WHERE ${found.join(' AND ')}
    ORDER BY ${orderOf(page)} ${rowsOf(page, values)}`
  return { text, values }
}

/** Finds the id of the row after the first rows of the list without its filter; none where it ends there. */
function edgeOf(page: Page, rows: number): Statement {
  const { table, where } = page
  const values: unknown[] = []
  const own = [...conditionsOf({ merchantId: where.merchantId }, values), ...boundsOf(page, values)]
  const text = `SELECT t.id::bigint AS id FROM ${table.name} t WHERE ${own.join(' AND ')}
    ORDER BY ${orderOf(page)} LIMIT 1 OFFSET ${rows}`
  return { text, values }
}

/**
 * Finds all rows that have the words, by the index, and sorts them. The expression in the order keeps
 * PostgreSQL from reading the rows in their order instead.
 */
function byIndex(page: Page, search: Search): Statement {
  const { table, where } = page
  const values: unknown[] = []
  const [source, words] = foundBy(table, where, search, values)
  const text = `SELECT t.id::bigint AS id FROM ${source}
    WHERE ${[...conditionsOf(where, values), ...boundsOf(page, values), ...words].join(' AND ')}
    ORDER BY t.id + 0 ${directionOf(page)} ${rowsOf(page, values)}`
  return { text, values }
}

/** Adds a value. @returns its number in the statement */
function put(values: unknown[], value: unknown): string {
  values.push(value)
  return `$${values.length}`
}

/** Writes a condition of Prisma in SQL, and the condition of the indexes for lists. */
function conditionsOf(where: object, values: unknown[]): string[] {
  const conditions = Object.entries(where).flatMap(([field, value]: [string, unknown]) => {
    const column = `t.${snakeCase(field)}`
    if (field === 'merchantId') {
      const merchant = `${put(values, value)}::int`
      // A range, because of an equality PostgreSQL could walk the ids of all merchants.
      return [`${column} BETWEEN ${merchant} AND ${merchant}`]
    }
    if (typeof value !== 'object' || value === null) return [`${column} = ${put(values, value)}`]
    const { in: some, gte, lte } = value as { in?: unknown[]; gte?: unknown; lte?: unknown }
    return [
      ...(some === undefined ? [] : [`${column} = ANY (${put(values, some)})`]),
      ...(gte === undefined ? [] : [`${column} >= ${put(values, gte)}`]),
      ...(lte === undefined ? [] : [`${column} <= ${put(values, lte)}`]),
    ]
  })
  return ['t.id > 0', ...conditions]
}

function boundsOf({ table, order, after, before }: Page, values: unknown[]): string[] {
  const [later, earlier] = order.endsWith('_desc') ? ['<', '>'] : ['>', '<']
  const of = (position: Position | null, sign: string) => {
    if (!position) return []
    const id = `${put(values, position.id)}::bigint`
    if (!isByAmount(order)) return [`t.id ${sign} ${id}`]
    return [`(t.${table.amount}, t.id) ${sign} (${put(values, position.amount)}::bigint, ${id})`]
  }
  return [...of(after, later), ...of(before, earlier)]
}

function wordsOf({ name }: ListedTable, search: Search | null, values: unknown[]): string[] {
  if (!search) return []
  const like = search.map(({ pattern }) => `${name}_words(t) LIKE folded(${put(values, pattern)})`)
  return [`(${like.join(' OR ')})`]
}

/** Returns the rows that the index of words gives, and the conditions that these must still meet. */
function foundBy(
  table: ListedTable,
  where: { merchantId: number },
  search: Search,
  values: unknown[],
): [source: string, conditions: string[]] {
  const [list, merchant] = [put(values, table.name), put(values, where.merchantId)]
  const [probe, other] = [put(values, search[0]?.probe), put(values, search[1]?.probe)]
  const ids = `ids_by_words(${list}, ${merchant}, folded(${probe}), folded(${other}))`
  return [
    `${ids} AS found (id) JOIN ${table.name} t USING (id)`,
    search.every(({ pattern, probe: asked }) => pattern === asked) ? [] : wordsOf(table, search, values),
  ]
}

const isByAmount = (order: ListOrder) => order.startsWith('amount')
const isDescending = ({ order, isBackward }: Page) => order.endsWith('_desc') !== isBackward
const directionOf = (page: Page) => (isDescending(page) ? 'DESC' : 'ASC')

function orderOf(page: Page): string {
  const columns = ['merchant_id', ...(isByAmount(page.order) ? [page.table.amount] : []), 'id']
  return columns.map((column) => `t.${column} ${directionOf(page)}`).join(', ')
}

function rowsOf({ take, skip }: Page, values: unknown[]): string {
  return `LIMIT ${put(values, take)}::int OFFSET ${put(values, skip)}::int`
}
