import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { buildSchema } from 'graphql'
import { expect, onTestFinished, test } from 'vitest'
import { possibleTypesOf, scalarRows, typesWithoutIdOf } from '../../src/terminal/client-files.ts'
import { blocksOf, readDocument } from '../kit/documents.ts'
import { root } from '../kit/sources.ts'

// The settings in the guide of GraphQL clients. `test/graphql/page-clients.test.ts` runs clients with them.

const guide = readDocument('src/docs/guide/graphql-clients.md')

/** The errors that the compiler finds in blocks of TypeScript, beside the files of the reference. */
async function typeErrors(blocks: readonly string[]): Promise<string> {
  const cache = join(root, 'node_modules/.cache/merchant-payments')
  await mkdir(cache, { recursive: true })
  const folder = await mkdtemp(join(cache, 'guide-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  await writeFile(join(folder, 'package.json'), '{ "type": "module" }')
  for (const name of ['possibleTypes.json', 'typesWithoutId.json'])
    await cp(join(root, 'src/docs/reference', name), join(folder, name))
  const files = blocks.map((_block, index) => `block-${index}.ts`)
  for (const [index, name] of files.entries()) await writeFile(join(folder, name), blocks[index] ?? '')
  const options =
    '--ignoreConfig --noEmit --strict --skipLibCheck --module nodenext --target es2024 --types node'
  const compiler = join(root, 'node_modules/typescript/bin/tsc')
  const run = promisify(execFile)(process.execPath, [compiler, ...options.split(' '), ...files], {
    cwd: folder,
  })
  return run.then(
    () => '',
    ({ stdout }: { stdout: string }) => stdout,
  )
}

test('the blocks of TypeScript in the guide compile', async () => {
  const blocks = blocksOf(guide, 'ts')
  expect(blocks).toHaveLength(4)
  expect(await typeErrors(blocks)).toBe('')
})

test('the check of the blocks finds a setting that the client does not have', async () => {
  const [apollo = ''] = blocksOf(guide, 'ts')
  expect(await typeErrors([apollo.replace('possibleTypes,', 'possibleKinds: possibleTypes,')])).toMatch(
    /possibleKinds/,
  )
})

test('the guide gives the code generator the type of every scalar', () => {
  const [block = ''] = blocksOf(guide, 'json')
  const { generates } = JSON.parse(block) as {
    generates: Record<string, { config: { strictScalars: boolean; scalars: object } }>
  }
  const types = Object.fromEntries(scalarRows().map(({ name, typescript }) => [name, typescript]))
  expect(generates['src/operations.ts']?.config).toEqual({ strictScalars: true, scalars: types })
})

const sample = buildSchema(`
  type Query { node: Node, shape: Shape, box: Box, mark: Mark }
  interface Node { id: ID! }
  type Circle implements Node { id: ID! }
  type Box { size: Int }
  union Shape = Circle | Box
  "A mark." scalar Mark
`)

test('the files for clients list interfaces and unions, and the types without an id', () => {
  expect(possibleTypesOf(sample)).toEqual({ Node: ['Circle'], Shape: ['Box', 'Circle'] })
  expect(typesWithoutIdOf(sample)).toEqual(['Box'])
})

test('a scalar whose form in JSON is not known stops the printing of its page', () => {
  expect(() => scalarRows(sample)).toThrow(/The scalar Mark has no form in JSON/)
})
