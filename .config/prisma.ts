import { defineConfig } from 'prisma/config'

// `generate` asks for a schema engine that it never runs, and would download one. Any existing file satisfies
// it.
if (process.argv.includes('generate')) process.env.PRISMA_SCHEMA_ENGINE_BINARY ??= process.execPath
process.env.CHECKPOINT_DISABLE ??= '1'

export default defineConfig({
  schema: '../prisma/schema.prisma',
  migrations: { path: '../prisma/migrations' },
})
