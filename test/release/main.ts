import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buildSchema } from 'graphql'
import pg from 'pg'
import { startEmbedded } from '../../src/database/embedded.ts'
import { migrate } from '../../src/database/migrate.ts'
import { runProgram } from '../kit/command-line.ts'
import { shortDeprecations, unnamedChanges } from './schema-changes.ts'
import { changedSignatures, readSignatures, readUses, refusedOf } from './uses.ts'

// Compares this tree with the last release. During a deployment, nodes of that release work on the new
// database; and programs of merchants that were written for it go on. Exit code 1 where one of them breaks.

const root = join(import.meta.dirname, '../..')
const say = (line: string) => void process.stdout.write(`${line}\n`)

function git(...args: readonly string[]): string {
  return execFileSync('git', args, { cwd: root, encoding: 'utf8', maxBuffer: 2 ** 28, stdio: 'pipe' }).trim()
}

/** Why there is no history to compare with; null where there is one. A copy of the sources may have none. */
function historyProblem(): string | null {
  const { status, stderr } = spawnSync('git', ['rev-parse', '--git-dir'], { cwd: root, encoding: 'utf8' })
  return status === 0 ? null : (stderr ?? 'git is missing').trim()
}

/** The newest release in the history of this tree; null before the first one. */
function lastRelease(): string | null {
  return git('tag', '--list', 'v*', '--merged', 'HEAD', '--sort=-version:refname').split('\n')[0] || null
}

/** Returns what breaks the programs of merchants and is not named in the changelog. */
function findSchemaBreaks(release: string): string[] {
  const read = (path: string) => readFileSync(join(root, path), 'utf8')
  const [, below = ''] = read('src/docs/changelog.md').split('### Breaking changes of the GraphQL schema\n')
  const [section = ''] = below.split(/^##/m)
  const named = new Set(Array.from(section.matchAll(/`([^`]+)`/g), ([, name = '']) => name))
  const [before, after] = [git('show', `${release}:schema.graphql`), read('schema.graphql')].map((text) =>
    buildSchema(text),
  )
  if (!before || !after) return []
  const today = new Date().toISOString().slice(0, 10)
  const released = git('log', '-1', '--format=%cs', release)
  return [
    ...unnamedChanges(before, after, { named, today }),
    ...shortDeprecations(before, after, released).map(
      (place) => `${place}: is deprecated without a day, or for less than twelve months after ${released}`,
    ),
  ]
}

/** Brings a database of the release up to date, as the first new node does; returns what old nodes miss. */
async function findDatabaseBreaks(release: string): Promise<string[]> {
  const folder = mkdtempSync(join(tmpdir(), 'merchant-payments-release-'))
  try {
    const archive = ['archive', '--format=tar', '-o', join(folder, 'tree.tar'), release, 'src', 'prisma']
    git(...archive, 'package.json')
    execFileSync('tar', ['-xf', 'tree.tar'], { cwd: folder })
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
    const earlier = (await import(join(folder, 'src/database/migrate.ts'))) as { migrate: typeof migrate }
    return await compareDatabases(join(folder, 'pg'), earlier)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

async function compareDatabases(dataDir: string, earlier: { migrate: typeof migrate }): Promise<string[]> {
  const server = await startEmbedded({ dataDir, durable: false })
  try {
    await earlier.migrate(server.connection())
    const client = new pg.Client(server.connection())
    await client.connect()
    try {
      await client.query('SET ROLE none')
      const [uses, signatures] = [await readUses(client), await readSignatures(client)]
      await migrate(server.connection())
      return [
        ...(await refusedOf(client, uses)),
        ...changedSignatures(signatures, await readSignatures(client)).map(
          (signature) => `${signature}: has another signature than in the release, and needs a new name`,
        ),
      ]
    } finally {
      await client.end()
    }
  } finally {
    await server.stop()
  }
}

await runProgram(async () => {
  const problem = historyProblem()
  if (problem !== null) {
    say(`Not compared with the last release: ${problem}`)
    return 0
  }
  const release = lastRelease()
  if (release === null) {
    say('No release yet: nothing to be compatible with.')
    return 0
  }
  const breaks = [...findSchemaBreaks(release), ...(await findDatabaseBreaks(release))]
  for (const line of breaks) say(`BROKEN  ${line}`)
  say(`${breaks.length} changes break what ${release} promised`)
  return breaks.length > 0 ? 1 : 0
})
