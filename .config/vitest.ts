import { globSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** From 40 s down to 10, half of it waiting: begun last they would run alone. */
const longest = [
  'crash/crash.test.ts',
  'terminal/webhooks-crash.test.ts',
  'fuzz/graphql.test.ts',
  'fuzz/rest.test.ts',
  'terminal/start.test.ts',
  'terminal/administration.test.ts',
  'http/live-streams.test.ts',
  'conformance/drivers.test.ts',
  'simulation/model-out.test.ts',
  'terminal/readme.test.ts',
  'spec/isolation.test.ts',
  'jobs/engine.test.ts',
  'database/embedded.test.ts',
  'terminal/payouts-crash.test.ts',
  'terminal/crash.test.ts',
]

const root = join(import.meta.dirname, '..')
// Each worker is a process, and many start programs: what they load is compiled once for all.
process.env['NODE_COMPILE_CACHE'] ??= join(root, 'node_modules/.cache/merchant-payments/compiled')

/**
 * What changes its modules, or measures its process, has that to itself; so have the longest, which gain
 * least. The others share processes and the modules in them, whose loading took half of the time.
 */
const alone = globSync('test/**/*.test.ts', { cwd: root }).filter(
  (path) =>
    longest.includes(path.slice('test/'.length)) ||
    /vi\.mock\(|Object\.assign\(limits|memoryUsage\(|monitorEventLoopDelay\(/.test(
      readFileSync(join(root, path), 'utf8'),
    ),
)

/** The longest files first, then those that are alone, then the others; the larger ones first. */
class LongestFirst extends BaseSequencer {
  override sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId }: TestSpecification) => {
      const found = longest.findIndex((path) => moduleId.endsWith(`/test/${path}`))
      if (found >= 0) return found
      // A process that others share ends where one that is alone comes in between.
      return longest.length + (alone.some((path) => moduleId === join(root, path)) ? 0 : 1)
    }
    const size = ({ moduleId }: TestSpecification) => statSync(moduleId).size
    return Promise.resolve(files.toSorted((a, b) => place(a) - place(b) || size(b) - size(a)))
  }
}

function project(name: string, isolate: boolean, include: string[], exclude: string[]) {
  return {
    root,
    // Otherwise vite and Node each load a copy of graphql, and its `instanceof` checks fail between them.
    ssr: { resolve: { conditions: ['module', 'node'], externalConditions: ['node', 'module-sync'] } },
    test: {
      name,
      isolate,
      include,
      exclude,
      pool: 'forks' as const,
      // Long, for a machine that is busy with other things.
      testTimeout: 60_000,
      hookTimeout: 60_000,
    },
  }
}

export default defineConfig(({ mode }) => ({
  root,
  test: {
    projects: [
      project('alone', true, alone, []),
      project('together', false, ['test/**/*.test.ts'], ['test/bench/**', ...alone]),
    ],
    env: { TEST_STRENGTH: mode === 'long' ? 'long' : 'usual' },
    globalSetup: ['test/kit/global-setup.ts'],
    sequence: { sequencer: LongestFirst },
    // A third of what they do is waiting: three keep two cores busy.
    maxWorkers: 3,
    coverage: {
      provider: 'v8',
      include: ['src/**'],
      reportsDirectory: 'node_modules/.cache/merchant-payments/coverage',
    },
  },
}))
