import { chmodSync } from 'node:fs'
import { join } from 'node:path'
import { startEmbedded } from '../../src/database/embedded.ts'
import { databaseUrl } from '../kit/database-url.ts'
import { runVitest } from '../kit/run-vitest.ts'
import type { TestedMutant } from './mutant.ts'
import { copyTree, plant } from './plant.ts'

/** killed: the named test failed. survived: it passed. broken: it did not end, so nothing is known. */
export interface MutantVerdict {
  mutant: TestedMutant
  kind: 'killed' | 'survived' | 'broken'
  /** Names of the tests that failed. */
  failed: readonly string[]
  /** The end of what the run printed. */
  printed: string
  ms: number
}

/** The parts that all runs share. */
export interface MutantFixture {
  root: string
  /** The PostgreSQL in which the tests make their databases. */
  database: string
  signal: AbortSignal
}

/** The parts that a test run needs; the rest of the repository is not copied. */
const parts = [
  'src',
  'prisma',
  'test',
  '.config',
  'package.json',
  'schema.graphql',
  'README.md',
  'tsconfig.json',
]

/** Choice: a bug may make the service hang. The slowest test takes a quarter of this on a busy machine. */
const runMaxMs = 480_000

/** Starts a PostgreSQL for all runs: a run that ended its own server would end it for the others too. */
export async function openFixture(root: string, signal: AbortSignal) {
  const dataDir = join(root, 'node_modules/.cache/merchant-payments/pg-mutants')
  const server = await startEmbedded({ dataDir, durable: false })
  const fixture: MutantFixture = { root, database: databaseUrl(server.connection('postgres')), signal }
  return { fixture, close: () => server.stop() }
}

/** A copy of the repository in which one bug after the other is planted. */
export function openCopy(root: string): { tree: string; remove: () => void } {
  const copy = copyTree(root, parts)
  // PostgreSQL runs under another account where the tests run as root.
  chmodSync(copy.tree, 0o755)
  return copy
}

/**
 * Plants a bug in a copy, runs the file of its test, and puts the file back.
 * @param all runs every test of the file, to learn which fail; else the named test alone
 */
export async function judge(
  fixture: MutantFixture,
  tree: string,
  mutant: TestedMutant,
  all: boolean,
): Promise<MutantVerdict> {
  const begun = performance.now()
  const undo = plant(tree, mutant)
  try {
    const { file, name: finds } = mutant.test
    const { tests, printed } = await runTests(fixture, tree, [file], all ? [] : [finds])
    const meant = tests.filter(({ name }) => all || name.includes(finds))
    const failed = meant.filter(({ state }) => state === 'failed').map(({ name }) => name)
    const ran = meant.some(({ state }) => state === 'passed')
    const kind = failed.length > 0 ? 'killed' : ran ? 'survived' : 'broken'
    return { mutant, kind, failed, printed, ms: performance.now() - begun }
  } finally {
    undo()
  }
}

/** Runs the named tests in the sources as they are. @returns those that fail, and names without a test */
export async function judgeUnplanted(
  fixture: MutantFixture,
  mutants: readonly TestedMutant[],
): Promise<string[]> {
  const files = [...new Set(mutants.map(({ test }) => test.file))]
  const names = [...new Set(mutants.map(({ test }) => test.name))]
  const { tests } = await runTests(fixture, fixture.root, files, names)
  const failed = tests.filter(({ state }) => state === 'failed').map(({ name }) => name)
  const isThere = ({ test }: TestedMutant) =>
    tests.some(
      ({ file, name, state }) => state === 'passed' && file.endsWith(test.file) && name.includes(test.name),
    )
  const missing = mutants.filter((mutant) => !isThere(mutant))
  return [...failed, ...missing.map(({ name, test }) => `no test "${test.name}" passed, for "${name}"`)]
}

interface TestResult {
  file: string
  name: string
  state: string
}

/** @param names parts of full names; none means every test of the files */
async function runTests(
  { database, signal }: MutantFixture,
  tree: string,
  files: readonly string[],
  names: readonly string[],
): Promise<{ tests: TestResult[]; printed: string }> {
  const pattern = names.map((name) => name.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('|')
  const { files: reports, printed } = await runVitest({
    tree,
    args: [...files.map((file) => `test/${file}`), ...(pattern ? ['-t', pattern] : [])],
    environment: { TEST_DATABASE_URL: database },
    limitMs: runMaxMs * Math.max(1, files.length / 4),
    signal,
  })
  const tests = reports.flatMap(({ path, tests: all }) =>
    all.map(({ name, state }) => ({ file: path, name, state })),
  )
  return { tests, printed }
}
