import { statSync } from 'node:fs'
import { join } from 'node:path'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Half a minute and more each, half of it waiting: begun last they would run alone. */
const longest = [
  'crash/crash.test.ts',
  'fuzz/graphql.test.ts',
  'fuzz/rest.test.ts',
  'simulation/model-out.test.ts',
  'simulation/model.test.ts',
  'terminal/start.test.ts',
  'terminal/administration.test.ts',
  'terminal/readme.test.ts',
  'terminal/bench.test.ts',
  'terminal/crash.test.ts',
  'terminal/payouts-crash.test.ts',
  'jobs/engine.test.ts',
]

/** The longest files first, then the others, the larger ones first. */
class LongestFirst extends BaseSequencer {
  override sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId }: TestSpecification) => {
      const found = longest.findIndex((path) => moduleId.endsWith(`/test/${path}`))
      return found < 0 ? longest.length : found
    }
    const size = ({ moduleId }: TestSpecification) => statSync(moduleId).size
    return Promise.resolve(files.toSorted((a, b) => place(a) - place(b) || size(b) - size(a)))
  }
}

const root = join(import.meta.dirname, '..')
// Each file has a process of its own, and many start programs: what they load is compiled once for all.
process.env['NODE_COMPILE_CACHE'] ??= join(root, 'node_modules/.cache/merchant-payments/compiled')

export default defineConfig({
  root,
  // Otherwise vite and Node each load a copy of graphql, and its `instanceof` checks fail between them.
  ssr: { resolve: { conditions: ['module', 'node'], externalConditions: ['node', 'module-sync'] } },
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['test/bench/**'],
    globalSetup: ['test/support/global-setup.ts'],
    pool: 'forks',
    sequence: { sequencer: LongestFirst },
    // A third of what they do is waiting: three keep two cores busy.
    maxWorkers: 3,
    // Long, for a machine that is busy with other things.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    coverage: {
      provider: 'v8',
      include: ['src/**'],
      reportsDirectory: 'node_modules/.cache/merchant-payments/coverage',
    },
  },
})
