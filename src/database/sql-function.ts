import pg from 'pg'
import type { Provider } from '../shared/providers.ts'

/**
 * The one way to call an SQL function (`<name>.sql` beside its caller): a table of its arguments and columns
 * makes the statement, its casts, its arrays and the types of TypeScript.
 * `test/database/sql-function.test.ts` compares each table with the catalogue of PostgreSQL.
 * Names are camelCase here and snake_case there. A type is written as in SQL, with `?` where it may be null
 * and `[]` where it is an array; `sqlType` says more of one, `compositeType` describes one of several fields.
 */
export type SqlType = Word | TypedSql<unknown>

/** What arrives for each type of SQL, and what may be given. */
interface SqlTypes {
  smallint: number
  int: number
  bigint: bigint
  boolean: boolean
  text: string
  uuid: string
  timestamptz: Date
  bytea: Buffer
  jsonb: unknown
  provider: Provider
}

type Plain = keyof SqlTypes
type Word = Plain | `${Plain}?` | `${Plain}[]` | `${Plain}[]?`

/** A type of SQL with what TypeScript knows beyond it. */
export interface TypedSql<Value> {
  /** As in SQL, with `?` and `[]`. */
  readonly sql: string
  /** Of a composite type. */
  readonly fields?: SqlTable
  /** Makes the text of a value of a composite type. */
  print?(this: void, value: Value): string
  /** For the compiler alone. */
  readonly value?: Value
}

/** Columns or arguments by their names in TypeScript. */
export type SqlTable = Readonly<Record<string, SqlType>>

type ValueOf<Type> =
  Type extends TypedSql<infer Value>
    ? Value
    : Type extends `${infer Inner}?`
      ? ValueOf<Inner> | null
      : Type extends `${infer Inner}[]`
        ? ValueOf<Inner>[]
        : Type extends Plain
          ? SqlTypes[Type]
          : never

/** Numbers are welcome where SQL has `bigint`: times and counts; money is bigint before it comes here. */
type Given<Value> =
  | (bigint extends Value ? number : never)
  | (Buffer extends Value ? Uint8Array : never)
  | (null extends Value ? undefined : never)
  | (Value extends readonly (infer Item)[] ? readonly Given<Item>[] : Value)

/** The arguments of a call. */
export type ArgumentsOf<Table> = { readonly [Name in keyof Table]: Given<ValueOf<Table[Name]>> }
/** A row that a call gives. */
export type RowOf<Table> = { [Name in keyof Table]: ValueOf<Table[Name]> }

/** What a function gives: nothing, one value, or rows. */
export type Gives = 'void' | SqlType | SqlTable
type ResultOf<G> = G extends 'void' ? void : G extends SqlType ? ValueOf<G> : RowOf<G>[]

/** A pool, or the client of an open transaction. */
export type SqlConnection = pg.Pool | pg.ClientBase

/** No answer comes after that time: for statements that may take longer than ordinary ones. */
export interface CallOptions {
  timeoutMs?: number
}

/** A function of one call. */
export type SqlFunction<Takes, Result> = (
  connection: SqlConnection,
  given: ArgumentsOf<Takes>,
  options?: CallOptions,
) => Promise<Result>

/** A function of many items in one call, with what is the same for all of them. */
export type SqlFunctionOfMany<Each, Takes, Result> = (
  connection: SqlConnection,
  items: readonly ArgumentsOf<Each>[],
  given: ArgumentsOf<Takes>,
  options?: CallOptions,
) => Promise<Result>

/** Says what TypeScript knows of a type beyond SQL: `sqlType<'made' | 'duplicate'>('text')`. */
export function sqlType<Value>(sql: string): TypedSql<Value> {
  return { sql }
}

/** Describes a composite type: its fields in the order of `CREATE TYPE`, with their types. */
export function compositeType<Value>(
  name: string,
  fields: { readonly [Name in keyof Value]?: Word },
): TypedSql<Value> {
  const names = Object.keys(fields) as (keyof Value & string)[]
  return {
    sql: name,
    fields: fields as SqlTable,
    print: (value) => `(${names.map((field) => printField(value[field] as Printable)).join(',')})`,
  }
}

type Printable = string | number | bigint | null | undefined

function printField(value: Printable): string {
  return value == null ? '' : `"${String(value).replaceAll(/["\\]/g, '$&$&')}"`
}

/** An argument, a column, or a field of a composite type, as SQL has it. */
export interface DeclaredColumn {
  readonly name: string
  readonly type: string
  /** Where the type is composite. */
  readonly fields?: readonly DeclaredColumn[] | undefined
}

/** What a declaration says of one function, for the test that compares it with the catalogue. */
export interface Declared {
  readonly name: string
  readonly takes: readonly DeclaredColumn[]
  /** Null: nothing. A word: one value. */
  readonly gives: null | string | readonly DeclaredColumn[]
}

const declared: Declared[] = []

/** The functions that the modules which are loaded declare. */
export function declaredFunctions(): readonly Declared[] {
  return declared
}

/**
 * Declares a function.
 * @param table.takes its arguments, all of them
 * @param table.gives its columns, where it gives rows; else the type of its value, or `void`
 */
export function sqlFunction<const Takes extends SqlTable, const G extends Gives>(
  name: string,
  { takes, gives }: { takes: Takes; gives: G },
): SqlFunction<Takes, ResultOf<G>> {
  const call = declare<ResultOf<G>>(name, argumentsOf(takes), gives)
  return (connection, given, options) =>
    call(connection, (argument) => argument.encode(given[argument.property]), options)
}

/**
 * Declares a function that serves many items at once.
 * @param table.each what each item brings: the function takes an array of each, named in the plural
 *   (`merchantId: 'int'` is `merchant_ids int[]`)
 * @param table.takes what is the same for all
 */
export function sqlFunctionOfMany<
  const Each extends SqlTable,
  const Takes extends SqlTable,
  const G extends Gives,
>(
  name: string,
  { each, takes, gives }: { each: Each; takes: Takes; gives: G },
): SqlFunctionOfMany<Each, Takes, ResultOf<G>> {
  const arrays = argumentsOf(each).map((argument) => ({
    ...argument,
    name: pluralOf(argument.name),
    type: `${argument.type}[]`,
    isEach: true,
  }))
  const call = declare<ResultOf<G>>(name, [...arrays, ...argumentsOf(takes)], gives)
  return (connection, items, given, options) => {
    const valueOf = ({ property, encode, isEach }: Argument) =>
      isEach ? items.map((item) => encode(item[property])) : encode((given as Values)[property])
    return call(connection, valueOf, options)
  }
}

type Values = Readonly<Record<string, unknown>>

/** A column and its name in TypeScript. */
interface Column extends DeclaredColumn {
  readonly property: string
}

interface Argument extends Column {
  readonly isEach: boolean
  encode(this: void, value: unknown): unknown
}

function columnsOf(table: SqlTable): (Column & { of: SqlType })[] {
  return Object.entries(table).map(([property, of]) => ({
    of,
    property,
    name: snakeOf(property),
    type: nameOf(of),
    fields: typeof of === 'object' && of.fields ? columnsOf(of.fields) : undefined,
  }))
}

function argumentsOf(table: SqlTable): Argument[] {
  return columnsOf(table).map((column) => ({ ...column, isEach: false, encode: encoderOf(column.of) }))
}

/** The declaration's prepared statement. */
function declare<Result>(name: string, takes: readonly Argument[], gives: Gives) {
  const columns = isTable(gives) ? columnsOf(gives) : null
  const isVoid = gives === 'void'
  declared.push({ name, takes, gives: columns ?? (isVoid ? null : nameOf(gives as SqlType)) })
  const given = takes.map((argument, index) => `${argument.name} => $${index + 1}::${argument.type}`)
  const call = `${name}(${given.join(', ')})`
  const text = columns
    ? `SELECT ${columns.map((column) => `${column.name} AS "${column.property}"`).join(', ')} FROM ${call}`
    : `SELECT ${call} AS value`
  return async (
    connection: SqlConnection,
    valueOf: (argument: Argument) => unknown,
    { timeoutMs }: CallOptions = {},
  ): Promise<Result> => {
    const query: pg.QueryConfig & { query_timeout?: number } = { name, text, values: takes.map(valueOf) }
    if (timeoutMs !== undefined) query.query_timeout = timeoutMs
    const { rows } = await connection.query<{ value: unknown }>(query)
    return (columns ? rows : isVoid ? undefined : rows[0]?.value) as Result
  }
}

function isTable(gives: Gives): gives is SqlTable {
  return typeof gives === 'object' && typeof (gives as TypedSql<unknown>).sql !== 'string'
}

function nameOf(type: SqlType): string {
  return (typeof type === 'string' ? type : type.sql).replace('?', '')
}

function encoderOf(type: SqlType): (value: unknown) => unknown {
  const print = typeof type === 'string' ? undefined : type.print
  if (print) return (value) => (value == null ? null : print(value))
  const json = (value: unknown) => (value == null ? null : JSON.stringify(value))
  if (nameOf(type) === 'jsonb') return json
  if (nameOf(type) === 'jsonb[]') return (values) => (values as unknown[] | null)?.map(json) ?? null
  return (value) => value
}

function snakeOf(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}

/** The name of an array; `references` is a reserved word of SQL, and `_ms` is a plural. */
function pluralOf(name: string): string {
  if (name.endsWith('_ms')) return name
  if (name === 'reference') return 'refs'
  if (/[^aeiou]y$/.test(name)) return `${name.slice(0, -1)}ies`
  return /(?:s|x|ch)$/.test(name) ? `${name}es` : `${name}s`
}

/** How `int8` arrives in a pool of ours: money is bigint. Prisma asks each time for the types it expects. */
export function bigintTypes(): pg.CustomTypesConfig {
  const { INT8 } = pg.types.builtins
  const int8Array = 1016
  const types = new pg.TypeOverrides()
  types.setTypeParser(INT8, 'text', BigInt)
  types.setTypeParser(int8Array, 'text', (value: string) =>
    Array.from(value.matchAll(/-?\d+|NULL/g), ([text]) => (text === 'NULL' ? null : BigInt(text))),
  )
  return types
}
