import { expect, test, vi } from 'vitest'
import { filesCrossed, stopsOf } from '../kit/crossed-files.ts'
import { hour, openFixture } from '../kit/fixture.ts'

// No job begins by itself while the files are counted, however long that takes.
vi.mock(import('../../src/jobs/schedule.ts'), async (original) => {
  const { startJobs } = await original()
  return {
    startJobs: (jobs, log) =>
      startJobs(
        jobs.map((job) => ({ ...job, everyMs: hour })),
        log,
      ),
  }
})

/** The files that one POST /pay crosses, from the request to the answer; at most 30. */
const way: readonly string[] = [
  'src/audit/audit-log.ts',
  'src/database/restores.ts',
  'src/database/shared-statements.ts',
  'src/enter.ts',
  'src/events/announcer.ts',
  'src/graphql/compiled.ts',
  'src/graphql/scopes.ts',
  'src/http/listener.ts',
  'src/http/request.ts',
  'src/http/rest/handler.ts',
  'src/http/rest/routes.ts',
  'src/http/server.ts',
  'src/identity/callers/authenticate.ts',
  'src/identity/callers/credentials.ts',
  'src/identity/callers/tokens.ts',
  'src/limits/admission.ts',
  'src/limits/request-limits.ts',
  'src/limits/window.ts',
  'src/operators/circuit.ts',
  'src/operators/gsma-mm-wire.ts',
  'src/operators/gsma-mm.ts',
  'src/operators/http-client.ts',
  'src/operators/registry.ts',
  'src/requests/decide.ts',
  'src/requests/identity.ts',
  'src/requests/send.ts',
  'src/requests/store.ts',
  'src/resources/transactions/collect-schema.ts',
  'src/resources/transactions/collect.ts',
  'src/resources/transactions/initiation.ts',
]

/** Files that run beside each payment and take no part in its answer: notifications and jobs. */
const beside: ReadonlySet<string> = new Set([
  'src/app.ts',
  'src/database/client.ts',
  'src/events/feed.ts',
  'src/jobs/schedule.ts',
  'src/requests/due.ts',
  'src/resources/jobs.ts',
  'src/resources/payouts/due.ts',
])

const fixture = await openFixture()

async function crossedBy(act: () => Promise<unknown>): Promise<string[]> {
  return stopsOf((await filesCrossed(act)).filter((path) => !beside.has(path)))
}

test('POST /pay crosses these files and no others', async () => {
  const merchant = await fixture.merchant()
  for (let warm = 0; warm < 20; warm += 1) await fixture.paid(merchant)
  expect(await crossedBy(() => fixture.paid(merchant))).toEqual(way)
  expect(way.length).toBeLessThanOrEqual(30)
})

test('one more file on the way is noticed', async () => {
  const merchant = await fixture.merchant()
  const crossed = await crossedBy(async () => {
    await fixture.paid(merchant)
    await fixture.available(merchant)
  })
  expect(crossed.filter((path) => !way.includes(path))).toEqual(['src/resources/merchants/schema.ts'])
})

test('a type, a helper and a word of the domain do not count as files on the way', () => {
  const helpers = ['src/limits/slot.ts', 'src/requests/open-request.ts', 'src/shared/input.ts']
  expect(stopsOf([...helpers, 'src/simulator/store.ts', 'src/limits/admission.ts'])).toEqual([
    'src/limits/admission.ts',
  ])
})
