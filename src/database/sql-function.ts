import pg from 'pg'
import type { Provider } from '../shared/providers.ts'

// SQL functions (`<name>.sql` beside their callers) are called only through this module. A table of the
// arguments and columns of a function gives its statement, with casts and arrays, and its TypeScript types.
// Names are camelCase here and snake_case in SQL. `test/database/sql-function.test.ts` compares each table
// with the catalogue of PostgreSQL.

/**
 * A type of an argument or a column, written as in SQL, with `?` where it may be null and `[]` for an array.
 * `sqlType` adds a more exact TypeScript type; `compositeType` describes a type of several fields.
 */
export type SqlType = Word | TypedSql<unknown>

/** The TypeScript type of each SQL type's results. */
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

/** An SQL type whose values have a more exact TypeScript type than `SqlTypes` gives, or a composite type. */
export interface TypedSql<Value> {
  /** The type as in SQL, with `?` and `[]`. */
  readonly sql: string
  /** The fields of a composite type. */
  readonly fields?: SqlTable
  /** Returns the text form of a composite value. */
  print?(this: void, value: Value): string
  /** Exists for the compiler only. */
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

/**
 * The type of an argument. Numbers are allowed where SQL has `bigint`, for times and counts; money is bigint
 * already.
 */
type Given<Value> =
  | (bigint extends Value ? number : never)
  | (Buffer extends Value ? Uint8Array : never)
  | (null extends Value ? undefined : never)
  | (Value extends readonly (infer Item)[] ? readonly Given<Item>[] : Value)

export type ArgumentsOf<Table> = { readonly [Name in keyof Table]: Given<ValueOf<Table[Name]>> }
export type RowOf<Table> = { [Name in keyof Table]: ValueOf<Table[Name]> }

/** The result of a function: nothing, one value, or rows. */
export type Gives = 'void' | SqlType | SqlTable
type ResultOf<G> = G extends 'void' ? void : G extends SqlType ? ValueOf<G> : RowOf<G>[]

/** A pool, or the client of an open transaction. */
export type SqlConnection = pg.Pool | pg.ClientBase

export interface CallOptions {
  /** How long the client waits for a slow statement; the server's `statement_timeout` still counts. */
  timeoutMs?: number
}

/** A function that serves one item per call. */
export type SqlFunction<Takes, Result> = (
  connection: SqlConnection,
  given: ArgumentsOf<Takes>,
  options?: CallOptions,
) => Promise<Result>

/** A function that serves many items in one call, with arguments that are the same for all of them. */
export type SqlFunctionOfMany<Each, Takes, Result> = (
  connection: SqlConnection,
  items: readonly ArgumentsOf<Each>[],
  given: ArgumentsOf<Takes>,
  options?: CallOptions,
) => Promise<Result>

/** Gives an SQL type a more exact TypeScript type: `sqlType<'made' | 'duplicate'>('text')`. */
export function sqlType<Value>(sql: string): TypedSql<Value> {
  return { sql }
}

/** Describes a composite type: its fields in the order of `CREATE TYPE`, with their types. */
export function compositeType<Value>(
  name: string,
  fields: { readonly [Name in keyof Value]?: SqlType },
): TypedSql<Value> {
  const columns = argumentsOf(fields as SqlTable)
  return {
    sql: name,
    fields: fields as SqlTable,
    print(value) {
      const given = value as Values
      const printed = columns.map(({ property, encode }) => printField(encode(given[property]) as Printable))
      return `(${printed.join(',')})`
    },
  }
}

type Printable = string | number | bigint | boolean | Date | null | undefined

/** Returns a field of a composite value: nothing for null, otherwise a text in quotes. */
function printField(value: Printable): string {
  if (value == null) return ''
  const text = value instanceof Date ? value.toISOString() : String(value)
  return `"${text.replaceAll(/["\\]/g, '$&$&')}"`
}

/** An argument, a column, or a field of a composite type, as in SQL. */
export interface DeclaredColumn {
  readonly name: string
  readonly type: string
  /** The fields, where the type is composite. */
  readonly fields?: readonly DeclaredColumn[] | undefined
}

/** The declaration of one function, for the test that compares it with the catalogue. */
export interface Declared {
  readonly name: string
  readonly takes: readonly DeclaredColumn[]
  /** Null: nothing. A string: the type of one value. A list: the columns of rows. */
  readonly gives: null | string | readonly DeclaredColumn[]
}

const declared: Declared[] = []

/** Returns the functions that the loaded modules have declared. */
export function declaredFunctions(): readonly Declared[] {
  return declared
}

/**
 * Declares a function.
 * @param table.takes all its arguments
 * @param table.gives its columns, where it returns rows; otherwise the type of its value, or `void`
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
 * @param table.each the arguments of each item: the function takes an array of each, named in the plural
 * (`merchantId: 'int'` is `merchant_ids int[]`)
 * @param table.as a composite type with these arguments as fields: the function takes one array of it, which
 * is named `items`
 * @param table.takes the arguments that are the same for all items
 */
export function sqlFunctionOfMany<
  const Each extends SqlTable,
  const Takes extends SqlTable,
  const G extends Gives,
>(
  name: string,
  { each, as, takes, gives }: { each: Each; as?: string; takes: Takes; gives: G },
): SqlFunctionOfMany<Each, Takes, ResultOf<G>> {
  const table = as === undefined ? each : { item: compositeType<ArgumentsOf<Each>>(as, each) }
  const arrays = argumentsOf(table).map((argument) => ({
    ...argument,
    name: pluralOf(argument.name),
    type: `${argument.type}[]`,
    isEach: true,
  }))
  const call = declare<ResultOf<G>>(name, [...arrays, ...argumentsOf(takes)], gives)
  return (connection, items, given, options) => {
    const valueOf = ({ property, encode, isEach }: Argument) => {
      if (!isEach) return encode((given as Values)[property])
      return items.map((item) => encode(as === undefined ? item[property] : item))
    }
    return call(connection, valueOf, options)
  }
}

type Values = Readonly<Record<string, unknown>>

/** A column with its name in TypeScript. */
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

/** Records a declaration and returns a function that runs its prepared statement. */
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

/** Returns the plural of a name; `references` is a reserved word of SQL, and a name in `_ms` is a plural. */
function pluralOf(name: string): string {
  if (name.endsWith('_ms')) return name
  if (name === 'reference') return 'refs'
  if (/[^aeiou]y$/.test(name)) return `${name.slice(0, -1)}ies`
  return /(?:s|x|ch)$/.test(name) ? `${name}es` : `${name}s`
}

/**
 * Returns type parsers that read `int8` as bigint, because money is bigint. Prisma sets its own parsers for
 * each query.
 */
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
