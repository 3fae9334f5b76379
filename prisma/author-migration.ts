import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { basename, dirname, join } from 'node:path'
import {
  bindMigrationAwareSqlAdapterFactory,
  ColumnTypeEnum,
  type SqlDriverAdapter,
} from '@prisma/driver-adapter-utils'
import * as engine from '@prisma/schema-engine-wasm/schema_engine_bg'
import { readMigrations } from '../src/database/migrate.ts'

const schemaPath = join(import.meta.dirname, 'schema.prisma')
const migrationsDir = join(import.meta.dirname, 'migrations')
/**
 * Beside each migration stands the schema that it leads to. (Prisma would read every file that ends in
 * `.prisma`.)
 */
const snapshotName = 'schema.snapshot'

/**
 * Writes the next migration: what turns the schema of the last one into today's `schema.prisma`. Checks,
 * partial indexes, functions, triggers and grants are added to the file by hand. Needs no database.
 * @param name what it does, in kebab-case or snake_case
 * @returns the path of the new `migration.sql`
 * @throws Error when nothing changed, or when the schema has mistakes
 */
export async function authorMigration(name: string, folder: string = migrationsDir): Promise<string> {
  const words = name.toLowerCase().replaceAll(/[^a-z0-9]+/g, '_')
  if (!/^[a-z]/.test(words)) throw new Error('A migration needs a name: npm run db:migration -- add-payouts')
  const schema = readFileSync(schemaPath, 'utf8')
  const last = readMigrations(folder).at(-1)?.name
  const sql = await diffSchemas(last ? readFileSync(join(folder, last, snapshotName), 'utf8') : null, schema)
  if (!sql) throw new Error(`schema.prisma says what the snapshot of ${last} says: nothing to migrate.`)
  const number = String(Number.parseInt(last ?? '0', 10) + 1).padStart(4, '0')
  const target = join(folder, `${number}_${words}`)
  if (existsSync(target)) throw new Error(`${target} is there already.`)
  mkdirSync(target, { recursive: true })
  writeFileSync(join(target, 'migration.sql'), sql)
  writeFileSync(join(target, snapshotName), schema)
  return join(target, 'migration.sql')
}

/**
 * The SQL that leads from one Prisma schema to another, empty when they mean the same.
 * @param from null for an empty database
 * @throws Error with Prisma's explanation of a mistake in a schema
 */
export async function diffSchemas(from: string | null, to: string): Promise<string> {
  startEngine()
  const differ = await engine.SchemaEngine.new({ datamodels: undefined }, () => {}, offlineAdapter())
  const target = (content: string) => ({
    tag: 'schemaDatamodel' as const,
    files: [{ path: basename(schemaPath), content }],
  })
  const { stdout } = await differ.diff({
    from: from === null ? { tag: 'empty' } : target(from),
    to: target(to),
    script: true,
    exitCode: null,
    filters: { externalTables: [], externalEnums: [] },
  })
  return stdout === null || stdout.includes('This is an empty migration') ? '' : stdout
}

/** Of the WebAssembly interface, which TypeScript only declares for browsers. */
declare const WebAssembly: {
  Module: new (bytes: Uint8Array) => object
  Instance: new (module: object, imports: object) => { exports: object }
}

let started = false

/** The package expects a bundler to load its WebAssembly. */
function startEngine(): void {
  if (started) return
  const path = createRequire(import.meta.url).resolve('@prisma/schema-engine-wasm/schema_engine_bg')
  const module = new WebAssembly.Module(readFileSync(join(dirname(path), 'schema_engine_bg.wasm')))
  const { exports } = new WebAssembly.Instance(module, { './schema_engine_bg.js': { ...engine } })
  const { __wbg_set_wasm: give, __wbindgen_start: begin } = { ...engine, ...exports } as Record<
    string,
    unknown
  >
  if (typeof give !== 'function' || typeof begin !== 'function')
    throw new Error(`${path} is not what it used to be.`)
  give(exports)
  begin()
  started = true
}

/** The engine asks which database it speaks to, and nothing else while it compares two schemas. */
function offlineAdapter(): object {
  const adapter: SqlDriverAdapter = {
    provider: 'postgres',
    adapterName: '@prisma/adapter-pg',
    queryRaw: async () => ({
      columnNames: ['version'],
      columnTypes: [ColumnTypeEnum.Text],
      rows: [['PostgreSQL 18.4']],
    }),
    executeRaw: async () => 0,
    executeScript: async () => {},
    startTransaction: () => Promise.reject(new Error('offline')),
    getConnectionInfo: () => ({ schemaName: 'public', supportsRelationJoins: true }),
    dispose: async () => {},
  }
  const connect = async () => adapter
  return bindMigrationAwareSqlAdapterFactory({
    provider: 'postgres',
    adapterName: '@prisma/adapter-pg',
    connect,
    connectToShadowDb: connect,
  })
}

if (import.meta.main) {
  try {
    process.stdout.write(`${await authorMigration(process.argv[2] ?? '')}\n`)
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
    process.exitCode = 1
  }
}
