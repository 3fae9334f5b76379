import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import {
  bindMigrationAwareSqlAdapterFactory,
  ColumnTypeEnum,
  type SqlDriverAdapter,
} from '@prisma/driver-adapter-utils'
import * as engine from '@prisma/schema-engine-wasm/schema_engine_bg'

/**
 * Writes the SQL that makes the tables of a Prisma schema in an empty database.
 * @throws Error with Prisma's explanation of a mistake in the schema
 */
export async function sqlOfSchema(schema: string): Promise<string> {
  startEngine()
  const differ = await engine.SchemaEngine.new({ datamodels: undefined }, () => {}, offlineAdapter())
  const { stdout } = await differ.diff({
    from: { tag: 'empty' },
    to: { tag: 'schemaDatamodel', files: [{ path: 'schema.prisma', content: schema }] },
    script: true,
    exitCode: null,
    filters: { externalTables: [], externalEnums: [] },
  })
  return stdout ?? ''
}

/** TypeScript declares this part of the WebAssembly interface for browsers only. */
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
