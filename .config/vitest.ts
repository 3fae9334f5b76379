import { globSync, readFileSync, statSync } from 'node:fs'
import { join, relative } from 'node:path'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Searches for bugs: short in `npm test`, at full length in `npm run test:long` (`test/kit/strength.ts`). */
const searches = ['test/crash/', 'test/fuzz/', 'test/simulation/']

/**
 * Only in `npm run test:long`: programs that are started, killed, drained or measured, storms,
 * attacks and many rows.
 */
const longOnly = [
  'conformance/drivers',
  'crash/crash',
  'crash/plants-types',
  'database/backup',
  'database/embedded',
  'database/embedded-accounts',
  'database/forced-row-security',
  'database/restores',
  'docs/examples',
  'graphql/attacks',
  'http/import/hostile',
  'http/refused-connections',
  'ledger/audit-out',
  'ledger/load-out',
  'ledger/steady-out',
  'pages/accessibility',
  'resources/access-changes',
  'resources/transaction-counts',
  'spec/approval-races',
  'spec/batch-approval-races',
  'spec/bulk-checkouts',
  'spec/bulk-in-flight',
  'spec/bulk-size',
  'spec/deposit-races',
  'spec/disk-full',
  'spec/exports-many-rows',
  'spec/fault-numbers',
  'spec/lists-of-a-million',
  'spec/payment-link-races',
  'spec/restore-identities',
  'spec/secrets',
  'spec/steady-lives',
  'terminal/administration',
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
  'terminal/administration',
  'spec/steady-lives',
  'crash/plants-types',
  'ledger/audit-out',
  'spec/deposit-approvals',
  'spec/isolation',
  'spec/bulk-scenarios',
  'spec/exports',
  'spec/exports-many-rows',
  'fuzz/graphql',
  'pages/payment-link',
  'spec/disburse-scenarios',
  'simulation/model-out',
  'spec/deposit',
  'spec/audit-log',
  'spec/operator-faults',
  'resources/webhooks/endpoint-queue',
  'spec/scenarios',
  'spec/sign-in',
  'ledger/audit',
  'ledger/batches',
  'spec/revocation',
  'jobs/engine',
  'spec/operator-word',
  'ledger/property',
  'resources/recovery/accept',
  'pages/payment-link-requests',
  'fuzz/rest',
  'pages/person',
  'pages/account-pages-browser',
  'spec/secrets',
  'simulation/interleavings',
  'ledger/audit-slices',
  'spec/bulk-size',
  'spec/sign-in-waits',
  'resources/query-counts',
  'spec/approvals',
  'crash/plants',
  'spec/refund',
  'http/subscriptions',
  'identity/credentials',
  'simulator/journal',
  'spec/two-people',
  'spec/bulk-import',
  'ledger/load-out',
  'database/migrate',
  'pages/mail',
  'ledger/steady-out',
  'spec/bulk-dry-run',
  'simulation/model',
  'ledger/batches-begin',
  'spec/idempotency',
  'spec/approvals-seen',
  'spec/payouts-under-way',
  'http/health',
  'spec/webhooks',
  'http/live-streams',
  'spec/security-alerts',
  'simulation/interleavings-out',
  'spec/key-limits',
  'http/revocation',
  'spec/payment-status',
  'spec/overload',
  'spec/whitelist-money',
  'operators/outage',
  'spec/bulk-input',
  'spec/outage',
  'spec/idempotency-secrets',
  'spec/bulk',
  'graphql/compiled',
  'requests/disburse-send',
  'resources/recovery/waiting',
  'spec/team',
  'database/merchant-pool',
  'http/pay-files',
  'operators/contract',
  'graphql/per-person',
  'database/release',
  'spec/tokens',
  'spec/payouts',
  'spec/batch-approvals',
  'ledger/deposits',
  'events/feed',
  'operators/http-client',
  'operators/registry',
  'operators/scenario-disburse',
  'identity/authenticate',
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
 * Whether a file changes modules for good, or measures its process: it has a process of its own. The others
 * share processes and the modules in them, whose loading took half of the time; they change bounds by
 * `useBounds`, which restores them.
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
      setupFiles: ['test/kit/setup.ts'],
      pool: 'forks' as const,
      // Long, for a machine that is busy with other things: above the patience of `eventually`.
      testTimeout: 180_000,
      hookTimeout: 180_000,
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
