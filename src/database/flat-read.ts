import { createHash } from 'node:crypto'
import type pg from 'pg'
import { getDatamodel } from '../../prisma/generated/pothos.ts'

// Prisma plans each query and converts each row anew, which takes more processor time than the statement.
// Most queries of lists are flat: columns of one table, conditions on its columns, an order and a page. This
// file runs those as one prepared statement; Prisma runs all others.

/** A query in Prisma's form. */
export interface PrismaQuery {
  select?: unknown
  where?: unknown
  orderBy?: unknown
  take?: unknown
  skip?: unknown
}

interface Statement {
  text: string
  values: unknown[]
}

/** Reads rows of one table; each function returns null for a query that is not flat. */
export interface FlatReads {
  findMany(model: string, query: PrismaQuery): Promise<object[]> | null
  count(model: string, query: PrismaQuery): Promise<number> | null
}

/**
 * The most distinct texts that are prepared; others run unprepared, so that sessions do not fill up with
 * prepared statements.
 */
const preparedMax = 500

/** Makes the functions that run flat queries on a pool. */
export function flatReads(pool: pg.Pool): FlatReads {
  const names = new Map<string, string>()
  const run = async <Row extends object>({ text, values }: Statement): Promise<Row[]> => {
    const name = names.get(text) ?? (names.size < preparedMax ? `flat_${digestOf(text)}` : undefined)
    if (name !== undefined) names.set(text, name)
    const { rows } = await pool.query<Row>(name === undefined ? { text, values } : { name, text, values })
    return rows
  }
  return {
    findMany(model, query) {
      const statement = selectStatement(model, query)
      return statement && run(statement)
    },
    count(model, query) {
      const statement = countStatement(model, query)
      return statement && run<{ n: number }>(statement).then(([row]) => row?.n ?? 0)
    },
  }
}

function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('base64url')
}

/** Returns the statement of `findMany`; null where the query is not flat. */
export function selectStatement(model: string, query: PrismaQuery): Statement | null {
  const { select, where, orderBy, take, skip, ...others } = query
  if (Object.keys(others).length > 0) return null
  const values: unknown[] = []
  const columns = columnsOf(model, select)
  const conditions = conditionsOf(model, where, values)
  const order = orderOf(model, orderBy)
  if (!columns || !conditions || order === null || !isPage(take) || !isPage(skip)) return null
  const limit = take === undefined ? '' : ` LIMIT $${values.push(take)}`
  const offset = skip === undefined ? '' : ` OFFSET $${values.push(skip)}`
  const text = `SELECT ${columns} FROM ${snakeOf(model)} AS t${whereOf(conditions)}${order}${limit}${offset}`
  return { text, values }
}

function countStatement(model: string, query: PrismaQuery): Statement | null {
  const { where, ...others } = query
  if (Object.keys(others).length > 0) return null
  const values: unknown[] = []
  const conditions = conditionsOf(model, where, values)
  if (!conditions) return null
  return { text: `SELECT count(*)::int AS n FROM ${snakeOf(model)} AS t${whereOf(conditions)}`, values }
}

/** The types whose values the driver reads as Prisma does. Enums are text in both. */
const sameTypes = new Set(['Int', 'BigInt', 'String', 'Boolean', 'DateTime', 'Json'])
/** A model of which a column has another name than its field: Prisma reads it. */
const otherNames = new Set(['DepositApproval'])

/** The columns of each model that can be read here, and whether they can be compared. */
const models = new Map(
  Object.entries(getDatamodel().datamodel.models)
    .filter(([name]) => !otherNames.has(name))
    .map(([name, { fields }]) => {
      const flat = fields.filter(
        ({ kind, type }) => kind === 'enum' || (kind === 'scalar' && sameTypes.has(type)),
      )
      return [
        name,
        new Map(flat.filter(({ isList }) => !isList).map((field) => [field.name, field.type !== 'Json'])),
      ]
    }),
)

function columnsOf(model: string, select: unknown): string | null {
  const known = models.get(model)
  if (!known || !isObject(select)) return null
  const names = Object.entries(select).filter(([, wanted]) => wanted !== false && wanted !== undefined)
  if (names.length === 0 || !names.every(([name, wanted]) => wanted === true && known.has(name))) return null
  return names.map(([name]) => `t.${snakeOf(name)} AS "${name}"`).join(', ')
}

function whereOf(conditions: readonly string[]): string {
  return conditions.length > 0 ? ` WHERE ${conditions.join(' AND ')}` : ''
}

/** Returns conditions that must all hold, and adds their values; null where one of them is not flat. */
function conditionsOf(model: string, where: unknown, values: unknown[]): string[] | null {
  const known = models.get(model)
  if (where === undefined) return known ? [] : null
  if (!known || !isObject(where)) return null
  const conditions: string[] = []
  for (const [name, filter] of Object.entries(where)) {
    if (filter === undefined) continue
    const found =
      name === 'AND'
        ? allOf(model, filter, values)
        : known.get(name) === true
          ? comparisonsOf(`t.${snakeOf(name)}`, filter, values)
          : null
    if (!found) return null
    conditions.push(...found)
  }
  return conditions
}

function allOf(model: string, filters: unknown, values: unknown[]): string[] | null {
  const found = [filters]
    .flat()
    .map((filter) => (filter === undefined ? null : conditionsOf(model, filter, values)))
  return found.every((each) => each !== null) ? found.flat() : null
}

const operators: Readonly<Record<string, string>> = { equals: '=', gt: '>', gte: '>=', lt: '<', lte: '<=' }

function comparisonsOf(column: string, filter: unknown, values: unknown[]): string[] | null {
  if (filter === null) return [`${column} IS NULL`]
  if (isValue(filter)) return [`${column} = $${values.push(filter)}`]
  if (!isObject(filter)) return null
  const given = Object.entries(filter).filter(([, value]) => value !== undefined)
  const found = given.map(([name, value]) => {
    if (name === 'in' && Array.isArray(value) && value.every(isValue))
      return `${column} = ANY ($${values.push(value)})`
    const operator = Object.hasOwn(operators, name) ? operators[name] : undefined
    return operator !== undefined && isValue(value) ? `${column} ${operator} $${values.push(value)}` : null
  })
  return found.length > 0 && found.every((each) => each !== null) ? found : null
}

/** Returns null where the order is not by columns of the table. */
function orderOf(model: string, orderBy: unknown): string | null {
  if (orderBy === undefined) return ''
  const known = models.get(model)
  const parts = [orderBy].flat().flatMap((each) => (isObject(each) ? Object.entries(each) : [['', '']]))
  const isFlat = parts.every(
    ([name, way]) => known?.get(String(name)) === true && (way === 'asc' || way === 'desc'),
  )
  if (!isFlat) return null
  return ` ORDER BY ${parts.map(([name, way]) => `t.${snakeOf(String(name))} ${String(way)}`).join(', ')}`
}

function isPage(count: unknown): boolean {
  return count === undefined || (typeof count === 'number' && Number.isInteger(count) && count >= 0)
}

function isValue(value: unknown): boolean {
  return ['string', 'number', 'bigint', 'boolean'].includes(typeof value) || value instanceof Date
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function snakeOf(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter, at: number) => `${at > 0 ? '_' : ''}${letter.toLowerCase()}`)
}
