import { afterAll, expect, test } from 'vitest'
import type { Context } from '../../src/context.ts'
import { createOperations } from '../../src/graphql/operation.ts'
import { createFixture, testLimits } from '../kit/graphql.ts'
import { processMs } from '../kit/processor-time.ts'

// The processor time of the checks. `query-limits.test.ts` proves what they allow.

const fixture = createFixture('sandbox')
afterAll(() => fixture.close())
const operations = createOperations(fixture.schema)
const ctx = {
  ...fixture.services,
  requestLimits: testLimits(1_000_000_000),
  actor: null,
  requestId: 'r',
  responseHeaders: new Map(),
} as Context

test('the widest lawful document is checked fast: time grows with width, not with its square', async () => {
  /** Processor time of the quickest of five tries, in milliseconds. */
  const quickest = async (width: number) => {
    const equal = `hello(name: "${'x'.repeat(300)}") `.repeat(width)
    const took: number[] = []
    for (let round = 0; round < 5; round += 1) {
      const before = processMs()
      // Another text each time, because a known document is not checked again.
      expect(await operations.read({ query: `{ ${equal} } #${round}` }, ctx)).toMatchObject({ cost: 0 })
      took.push(processMs() - before)
    }
    return Math.min(...took)
  }
  expect((await quickest(190)) / (await quickest(19))).toBeLessThan(40)
})
