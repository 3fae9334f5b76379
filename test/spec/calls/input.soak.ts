import { expect, test } from 'vitest'
import { openFixture } from '../../kit/fixture.ts'

// How long bodies take that are hard to read. `input.test.ts` proves the answers.

const fixture = await openFixture()
const shop = await fixture.merchant()
const fields = (count: number) => Array.from({ length: count }, (_, i) => `"f${i}": 1`).join(', ')

test.each([
  ['quotes that never end', '"\\'.repeat(50_000)],
  ['nine thousand fields', `{${fields(9_000)}}`],
  ['five thousand fields', `{${fields(5_000)}}`],
])('%s are read in good time', async (_what, body) => {
  const began = performance.now()
  expect((await fixture.rest('POST', '/pay', { token: shop.token, body })).status).toBeGreaterThanOrEqual(400)
  expect(performance.now() - began).toBeLessThan(2_000)
})
