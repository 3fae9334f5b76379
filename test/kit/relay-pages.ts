import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
// @ts-expect-error The package has no types: its only export is the path of the program.
import relayCompiler from 'relay-compiler'
import type { ConcreteRequest } from 'relay-runtime'
import { pageNames, queryOf, readPage } from './dashboard-pages.ts'
import { root } from './sources.ts'

/**
 * Compiles the documents of all pages by the Relay compiler, each as a module of its own.
 * @returns the compiled operations by their names
 */
export async function compilePages(): Promise<Map<string, ConcreteRequest>> {
  const folder = await mkdtemp(join(tmpdir(), 'relay-pages-'))
  try {
    for (const name of ['pages', 'compiled']) await mkdir(join(folder, name))
    for (const name of pageNames) {
      const file = join(folder, 'pages', `${queryOf(name).replace(/Query$/, '')}.js`)
      // Tests look into what fragments read, which Relay hides from the component that only spreads them.
      const text = readPage(name).replaceAll(/\.\.\.(?=[A-Z])(\w+)/g, '...$1 @relay(mask: false)')
      await writeFile(file, `graphql\`\n${text}\`\n`)
    }
    const schema = join(root, 'schema.graphql')
    const places = { src: 'pages', schema, artifactDirectory: 'compiled' }
    const config = { ...places, language: 'javascript', eagerEsModules: false }
    await writeFile(join(folder, 'relay.config.json'), JSON.stringify(config))
    await promisify(execFile)(String(relayCompiler), ['relay.config.json'], { cwd: folder })
    const load = createRequire(join(folder, 'compiled/'))
    const files = await readdir(join(folder, 'compiled'))
    return new Map(
      files.map((file) => [file.replace('.graphql.js', ''), load(`./${file}`) as ConcreteRequest]),
    )
  } finally {
    await rm(folder, { recursive: true })
  }
}
