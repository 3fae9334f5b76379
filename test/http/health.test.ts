import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { borrow } from '../kit/client.ts'
import { eventually } from '../kit/eventually.ts'
import { startTestApp, type TestApp } from '../kit/app.ts'
import { usualWaits } from '../kit/patience.ts'
import { useBounds } from '../kit/use-bounds.ts'
import { waits } from '../../src/shared/waits.ts'

let service: TestApp
beforeAll(async () => {
  // The production limit of public routes.
  service = await startTestApp({ RATE_LIMIT_PUBLIC: '60' })
})
afterAll(() => service.close())

async function probe(path: string, options: RequestInit = {}, { url } = service) {
  const response = await fetch(`${url}${path}`, options)
  const text = await response.text()
  return { status: response.status, headers: response.headers, body: text === '' ? null : JSON.parse(text) }
}

test.each([
  ['/livez', { status: 'live' }],
  ['/readyz', { status: 'ready', missing: [] }],
  ['/readyz?verbose', { status: 'ready', missing: [] }],
])('GET %s answers 200 to everyone', async (path, body) => {
  const answer = await probe(path)
  expect(answer).toMatchObject({ status: 200, body })
  expect(answer.headers.get('cache-control')).toBe('no-store')
  expect(await probe(path, { method: 'HEAD' })).toMatchObject({ status: 200, body: null })
  const posted = await probe(path, { method: 'POST', body: 'x' })
  expect(posted.status).toBe(405)
  expect(posted.headers.get('allow')).toBe('GET, HEAD')
})

test.each(['/livez', '/readyz', '/merchant/api/status'])(
  '100 probes of %s from one address are all answered, and use up no limit',
  async (path) => {
    const statuses = new Set<number>()
    for (let nth = 0; nth < 100; nth += 1) {
      const { status, headers } = await probe(path)
      statuses.add(status)
      expect(headers.get('ratelimit')).toBeNull()
    }
    expect(statuses).toEqual(new Set([200]))
    const other = await probe('/merchant/api/payment/status/unknown')
    expect(other.headers.get('ratelimit')).toMatch(/"public";r=5\d;/)
  },
)

test('while a pool gives no session the process lives, but is not ready', async () => {
  useBounds(waits, { readyMs: usualWaits.readyMs }, onTestFinished)
  const { merchantPool } = service.app.services.database
  const all = await Promise.all(Array.from({ length: merchantPool.options.max }, () => borrow(merchantPool)))
  expect(await probe('/readyz')).toMatchObject({
    status: 503,
    body: { status: 'not ready', missing: ['database'] },
  })
  expect(await probe('/livez')).toMatchObject({ status: 200 })
  for (const session of all) session.release()
  await eventually(async () => expect((await probe('/readyz')).status).toBe(200))
})

test('a draining process is not ready for DRAIN_DELAY_MS, but still accepts requests', async () => {
  const delayMs = 1_500
  const ending = await startTestApp({ DRAIN_DELAY_MS: String(delayMs) })
  const merchant = await ending.merchant()
  const begun = performance.now()
  const closed = ending.close()
  expect(await probe('/readyz', { headers: { Connection: 'close' } }, ending)).toMatchObject({
    status: 503,
    body: { status: 'not ready', missing: ['draining'] },
  })
  const balance = await ending.rest('GET', '/balance', {
    token: merchant.token,
    headers: { Connection: 'close' },
  })
  expect(balance.status).toBe(200)
  await closed
  expect(performance.now() - begun).toBeGreaterThanOrEqual(delayMs)
  await expect(probe('/livez', {}, ending)).rejects.toThrow('fetch failed')
})
