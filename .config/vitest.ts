import { globSync, readFileSync, statSync } from 'node:fs'
import { join, relative } from 'node:path'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Searches for bugs: short in `npm test`, at full length in `npm run test:long` (`test/kit/strength.ts`). */
const searches = ['test/crash/', 'test/fuzz/', 'test/simulation/']

/** Only in `npm run test:long`: programs that are started, killed, drained or measured, and storms. */
const longOnly = [
  'conformance/drivers',
  'crash/crash',
  'database/backup',
  'database/embedded',
  'database/embedded-accounts',
  'resources/access-changes',
  'spec/approval-races',
  'spec/batch-approval-races',
  'spec/bulk-checkouts',
  'spec/deposit-races',
  'spec/disk-full',
  'spec/payment-link-races',
  'docs/examples',
  'spec/restore-identities',
  'terminal/bench',
  'terminal/bulk-crash',
  'terminal/crash',
  'terminal/demo',
  'terminal/drain',
  'terminal/excess',
  'terminal/payouts-crash',
  'terminal/start',
  'terminal/webhooks-crash',
].map(pathOf)

/**
 * The files that take three seconds and more on a quiet machine, the longest first: begun last they would run
 * alone. `npm run test:fast` leaves them out.
 */
const longest = [
  'crash/crash',
  'database/backup',
  'simulation/model-out',
  'simulation/interleavings',
  'terminal/administration',
  'fuzz/graphql',
  'spec/isolation',
  'spec/audit-log',
  'spec/operator-word',
  'database/restores',
  'spec/exports',
  'fuzz/rest',
  'spec/sign-in-waits',
  'http/import/hostile',
  'pages/payment-link',
  'resources/transaction-counts',
  'spec/bulk-scenarios',
  'http/live-streams',
  'spec/deposit-approvals',
  'spec/deposit',
  'operators/contract',
  'spec/idempotency-secrets',
  'pages/people-browser',
  'http/health',
  'ledger/audit-out',
  'jobs/engine',
  'pages/payment-link-requests',
  'spec/operator-faults',
  'spec/sign-in',
  'resources/webhooks/lane',
  'graphql/per-person',
  'ledger/property',
  'spec/bulk-in-flight',
  'simulation/model',
  'spec/scenarios',
  'pages/mail',
  'pages/accessibility',
  'ledger/batches',
  'spec/refund',
  'database/release',
  'ledger/audit-slices',
  'spec/tokens',
  'graphql/attacks',
  'spec/revocation',
  'spec/bulk-size',
  'database/forced-walls',
  'http/refused-connections',
  'spec/payouts-under-way',
  'http/subscriptions',
  'spec/key-limits',
  'ledger/audit',
  'resources/recovery/accept',
  'spec/whitelist-money',
  'identity/credentials',
  'spec/bulk-dry-run',
  'database/merchant-pool',
  'spec/disburse-scenarios',
  'spec/payouts',
  'spec/outage',
  'spec/batch-approvals',
  'http/revocation',
  'spec/overload',
  'spec/approvals-seen',
  'spec/approvals',
  'spec/bulk',
  'spec/bulk-input',
  'spec/payment-status',
  'ledger/storm-out',
  'ledger/batches-begin',
  'ledger/deposits',
  'ledger/steady-out',
  'spec/bulk-import',
  'database/migrate',
  'events/feed',
  'operators/http-client',
  'operators/registry',
  'spec/two-people',
  'resources/recovery/waiting',
  'requests/disburse-send',
  'operators/scenario-disburse',
  'identity/authenticate',
  'http/pay-files',
].map(pathOf)

/** What else `npm run test:fast` leaves out: whole programs and browsers. */
const slowFolders = ['test/conformance/', 'test/pages/', 'test/terminal/']

function pathOf(name: string): string {
  return `test/${name}.test.ts`
}

const root = join(import.meta.dirname, '..')
// Each worker is a process, and many start programs: what they load is compiled once for all.
process.env['NODE_COMPILE_CACHE'] ??= join(root, 'node_modules/.cache/merchant-payments/compiled')

const all = globSync('test/**/*.test.ts', { cwd: root }).filter((path) => !path.startsWith('test/bench/'))

/** The files of `npm test`, or with a mode those of `npm run test:fast` and `npm run test:long`. */
function selectFiles(mode: string): string[] {
  const startsWith = (folders: readonly string[]) => (path: string) =>
    folders.some((folder) => path.startsWith(folder))
  // Files that somebody names run in every mode.
  if (process.argv.slice(2).some((argument) => argument.startsWith('test/'))) return all
  if (mode === 'long') return all.filter((path) => startsWith(searches)(path) || longOnly.includes(path))
  const usual = all.filter((path) => !longOnly.includes(path))
  if (mode !== 'fast') return usual
  return usual.filter((path) => !startsWith([...slowFolders, ...searches])(path) && !longest.includes(path))
}

/**
 * Whether a file changes modules, or measures its process: it has a process of its own. The others share
 * processes and the modules in them, whose loading took half of the time.
 */
function isAlone(path: string): boolean {
  const changes = /vi\.mock\(|Object\.assign\((limits|\w+Bounds)\b/
  const measures = /memoryUsage\(|monitorEventLoopDelay\(|filesCrossed\(|\b(thread|process)Ms\(/
  const text = readFileSync(join(root, path), 'utf8')
  return changes.test(text) || measures.test(text)
}

/** The longest files first, then those that are alone, then the others; the larger ones first. */
class LongestFirst extends BaseSequencer {
  override sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId }: TestSpecification) => {
      const found = longest.findIndex((path) => moduleId === join(root, path))
      if (found >= 0) return found
      // A process that others share ends where one that is alone comes in between.
      return longest.length + (isAlone(relative(root, moduleId)) ? 0 : 1)
    }
    const size = ({ moduleId }: TestSpecification) => statSync(moduleId).size
    return Promise.resolve(files.toSorted((a, b) => place(a) - place(b) || size(b) - size(a)))
  }
}

function project(mode: string, name: string, isolate: boolean, include: string[]) {
  return {
    root,
    // Otherwise vite and Node each load a copy of graphql, and its `instanceof` checks fail between them.
    ssr: { resolve: { conditions: ['module', 'node'], externalConditions: ['node', 'module-sync'] } },
    test: {
      name,
      isolate,
      include,
      env: { TEST_STRENGTH: mode },
      pool: 'forks' as const,
      // Long, for a machine that is busy with other things.
      testTimeout: 60_000,
      hookTimeout: 60_000,
    },
  }
}

export default defineConfig(({ mode }) => {
  const files = selectFiles(mode)
  return {
    root,
    test: {
      projects: [
        project(mode, 'alone', true, files.filter(isAlone)),
        project(
          mode,
          'together',
          false,
          files.filter((path) => !isAlone(path)),
        ),
      ],
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
  }
})
