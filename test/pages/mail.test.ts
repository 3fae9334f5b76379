import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { startTestApp, type TestApp } from '../kit/app.ts'

// Access to the emails of a sandbox: they hold links by which a person signs in.

let local: TestApp
let proxied: TestApp
beforeAll(async () => {
  ;[local, proxied] = await Promise.all([startTestApp(), startTestApp({ TRUSTED_PROXIES: '127.0.0.0/8' })])
})
afterAll(() => Promise.all([local.close(), proxied.close()]))

const remoteAddress = '203.0.113.7'

async function statusAt(url: string, headers: Record<string, string> = {}): Promise<number> {
  const [mail, home] = await Promise.all(['/mail', '/'].map((path) => fetch(url + path, { headers })))
  // The first page links to the emails only where they may be read.
  expect((await home?.text())?.includes('href="/mail"')).toBe(mail?.status === 200)
  return mail?.status ?? 0
}

describe('the emails of a sandbox', () => {
  test('are read on the same machine', async () => {
    expect(await statusAt(local.url)).toBe(200)
  })

  test('are refused to a client behind a trusted proxy, but not to one on this machine', async () => {
    expect(await statusAt(proxied.url, { 'X-Forwarded-For': remoteAddress })).toBe(404)
    expect(await statusAt(proxied.url, { 'X-Forwarded-For': `127.0.0.1, ${remoteAddress}` })).toBe(404)
    expect(await statusAt(proxied.url, { 'X-Forwarded-For': 'unknown' })).toBe(404)
    expect(await statusAt(proxied.url, { 'X-Forwarded-For': '127.0.0.1' })).toBe(200)
  })

  test.each(['X-Forwarded-For', 'X-Real-IP', 'Forwarded', 'Via'])(
    'are refused through a proxy on this machine that is not trusted (%s)',
    async (name) => {
      expect(await statusAt(local.url, { [name]: '127.0.0.1' })).toBe(404)
    },
  )

  test.each([
    ['localhost:3000', 200],
    ['[::1]:3000', 200],
    ['sandbox.example', 404],
    ['127.0.0.1.sandbox.example', 404],
  ])('are refused under a name that a web page pointed at this machine (%s: %i)', async (host, status) => {
    const [answer] = (await once(get(`${local.url}/mail`, { headers: { host } }), 'response')) as [
      IncomingMessage,
    ]
    answer.resume()
    expect(answer.statusCode).toBe(status)
  })

  test('are refused like an unknown path', async () => {
    const answer = await fetch(`${proxied.url}/mail`, { headers: { 'X-Forwarded-For': remoteAddress } })
    expect(await answer.json()).toMatchObject({ success: false, request_id: expect.any(String) })
  })

  test('are shown by no service that listens beyond this machine, unless SANDBOX_MAIL=public', async () => {
    const [open, shown] = await Promise.all([
      startTestApp({ HOST: '0.0.0.0' }),
      startTestApp({ HOST: '0.0.0.0', SANDBOX_MAIL: 'public' }),
    ])
    onTestFinished(() => Promise.all([open.close(), shown.close()]).then(() => {}))
    expect(await statusAt(open.url)).toBe(404)
    expect(await statusAt(shown.url, { 'X-Forwarded-For': remoteAddress })).toBe(200)
  })
})
