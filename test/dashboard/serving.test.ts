import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { request } from 'undici'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { readFaces } from '../../src/config/operator-faces.ts'
import { dashboardRoutes } from '../../src/http/pages/dashboard.ts'
import { startTestApp, type TestApp } from '../kit/app.ts'

let service: TestApp
let script: string

beforeAll(async () => {
  service = await startTestApp()
  script = /"\.\/(assets\/[^"]+\.js)"/.exec((await ask('/app/')).text)?.[1] ?? ''
})
afterAll(() => service.close())

/** Asks as a plain client does: nothing is decompressed. */
async function ask(path: string, headers: Record<string, string> = {}, method: 'GET' | 'HEAD' = 'GET') {
  const answer = await request(`${service.url}${path}`, { method, headers })
  const body = Buffer.from(await answer.body.arrayBuffer())
  return { status: answer.statusCode, headers: answer.headers, body, text: body.toString('utf8') }
}

test('the page allows the files and the API of its own origin, and is never kept', async () => {
  const { status, headers, text } = await ask('/app')
  expect(status).toBe(200)
  expect(headers).toMatchObject({
    'content-type': 'text/html; charset=UTF-8',
    'cache-control': 'no-store',
    'content-security-policy':
      "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; " +
      "img-src 'self'; font-src 'none'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    'referrer-policy': 'same-origin',
    'x-content-type-options': 'nosniff',
    'x-robots-tag': 'noindex, nofollow',
  })
  expect(text).toContain('<meta name="mode" content="sandbox" />')
  expect(text).not.toMatch(/<script(?![^>]* src=)|<style|\sstyle=|\son\w+=/)
})

test.each([
  ['/app', 'app/'],
  ['/app/', './'],
  ['/app/payments', './'],
  ['/app/payments/', '../'],
  ['/app/payments/12', '../'],
  ['/app/payments/a%2Fb?page=2', '../'],
  ['/app//payments/12', '../../'],
  ['/app/batches/7/recipients', '../../'],
])('the page at %s finds its files', async (path, way) => {
  const { status, text } = await ask(path)
  expect(status).toBe(200)
  const names = Array.from(
    text.matchAll(/(?:src|href|content)="([^"]*\/)(?:assets\/[^"]*)?"/g),
    ([, to]) => to,
  )
  expect(names.length).toBeGreaterThan(3)
  expect([...new Set(names)]).toEqual([way])
  const { pathname } = new URL(`${way}${script}`, new URL(path, service.url))
  expect(pathname).toBe(`/app/${script}`)
})

describe('a file', () => {
  test.each([
    ['br, gzip', 'br', brotliDecompressSync],
    ['gzip, deflate', 'gzip', gunzipSync],
    ['gzip;q=1.0, br;q=0', 'gzip', gunzipSync],
    ['BR;q=0.5', 'br', brotliDecompressSync],
    ['identity', undefined, (body: Buffer) => body],
  ] as const)('for Accept-Encoding: %s comes as %s', async (accepted, encoding, decode) => {
    const plain = await ask(`/app/${script}`)
    expect(plain.headers['content-encoding']).toBeUndefined()
    const { status, headers, body } = await ask(`/app/${script}`, { 'accept-encoding': accepted })
    expect(status).toBe(200)
    expect(headers).toMatchObject({
      'content-type': 'text/javascript; charset=utf-8',
      'cache-control': 'public, max-age=31536000, immutable',
      vary: 'Accept-Encoding',
      'x-content-type-options': 'nosniff',
    })
    expect(headers['content-encoding']).toBe(encoding)
    expect(decode(body).equals(plain.body)).toBe(true)
    expect(plain.text).toContain('./person-')
  })

  test('that does not exist is 404', async () => {
    const absent = ['/app/assets/none.js', '/app/assets/', '/app/robots.txt', '/app/assets/..%2Findex.html']
    const compressed = `/app/${script}.br`
    for (const path of [...absent, compressed]) expect(await ask(path)).toMatchObject({ status: 404 })
  })
})

test('HEAD has the headers of GET, without a body', async () => {
  for (const path of ['/app', '/app/payments/12', `/app/${script}`]) {
    const [get, head] = [await ask(path), await ask(path, {}, 'HEAD')]
    expect(head.body.length).toBe(0)
    expect(head.status).toBe(200)
    const kept = ['content-type', 'cache-control', 'content-security-policy', 'content-length', 'vary']
    for (const name of kept) expect([name, head.headers[name]]).toEqual([name, get.headers[name]])
  }
})

test('the first page leads to the dashboard', async () => {
  expect((await ask('/')).text).toContain('<a href="/app">Tableau de bord</a>')
  expect((await ask('/?lang=en')).text).toContain('<a href="/app">Dashboard</a>')
})

test('the page says whether the browser has a session', async () => {
  const facts = async (cookie: string) =>
    /<meta name="session" content="(\w+)"/.exec((await ask('/app', { Cookie: cookie })).text)?.[1]
  expect(await facts('theme=dark')).toBe('none')
  expect(await facts('theme=dark; merchant_session=abc')).toBe('kept')
  expect(await facts('__Host-merchant_session=abc')).toBe('kept')
})

test('the page says that the service is in production', async () => {
  const page = await dashboardRoutes({
    mode: 'production',
    simulatorUrl: null,
    faces: readFaces({}),
  }).request('/app')
  expect(await page.text()).toContain('<meta name="mode" content="production" />')
})

test('the page names the operators, with any letters in their names', async () => {
  const faces = readFaces({ OPERATOR_A_LABEL: `L'Or "A" & <b> $& %mode%` })
  const page = await dashboardRoutes({ mode: 'sandbox', simulatorUrl: null, faces }).request('/app')
  const [, content = ''] = /<meta name="operators" content="([^"]*)"/.exec(await page.text()) ?? []
  expect(JSON.parse(decodeURIComponent(content))).toEqual([
    ['OperatorA', `L'Or "A" & <b> $& %mode%`],
    ...['OperatorB', 'OperatorC', 'OperatorD'].map((name) => [name, name]),
  ])
})

test('without a build the page explains how to make one', async () => {
  const empty = mkdtempSync(join(tmpdir(), 'dashboard-'))
  onTestFinished(() => rmSync(empty, { recursive: true }))
  for (const path of ['/app', '/app/payments/12', '/app/assets/a.js']) {
    const page = await dashboardRoutes(
      { mode: 'sandbox', simulatorUrl: null, faces: readFaces({}) },
      empty,
    ).request(path)
    expect(page.status).toBe(503)
    expect(page.headers.get('cache-control')).toBe('no-store')
    const text = await page.text()
    expect(text).toContain('<code>npm run build</code>')
    const [, style = ''] = /<link rel="stylesheet" href="([^"]+)"/.exec(text) ?? []
    expect(new URL(style, new URL(path, 'http://a.b')).pathname).toMatch(/^\/assets\//)
  }
})
