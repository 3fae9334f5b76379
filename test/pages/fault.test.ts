import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { startTestApp, type TestApp, type TestMerchant } from '../kit/app.ts'
import { customer } from '../kit/fixture.ts'

// A person whose page fails reads so in French or English, and what became of the payment; a program gets
// JSON.

let service: TestApp
let shop: TestMerchant
let slug: string
beforeAll(async () => {
  service = await startTestApp()
  shop = await service.merchant('Atelier Sogoniko')
  const body = { title: 'Cours', amount: 5_000 }
  const { body: answer } = await service.rest('POST', '/payment-links', { token: shop.token, body })
  slug = answer.data.url_slug
})
afterAll(() => service.close())

const browser = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8'

async function open(path: string, { headers = {}, body }: { headers?: object; body?: URLSearchParams } = {}) {
  const response = await fetch(`${service.url}${path}`, {
    redirect: 'manual',
    headers: { Accept: browser, ...headers },
    ...(body && { method: 'POST', body }),
  })
  return { response, status: response.status, text: await response.text() }
}

/** Makes the work of each page throw, until the test has finished. */
function breakPages(): void {
  const { admission } = service.app.services
  const broken = vi.spyOn(admission, 'run').mockRejectedValue(new Error('hunter2'))
  onTestFinished(() => broken.mockRestore())
}

describe('a page of a payment that fails', () => {
  test.each(['/l/SLUG', '/l/SLUG/any-reference', '/r/any-token'])('%s says so in French', async (path) => {
    breakPages()
    const { response, status, text } = await open(path.replace('SLUG', slug))
    expect([status, response.headers.get('content-type')]).toEqual([500, 'text/html; charset=utf-8'])
    expect(text).toContain('<html lang="fr">')
    expect(text).toContain('rien ne sera débité deux fois')
    expect(text).not.toContain('hunter2')
    expect(response.headers.get('cache-control')).toBe('no-store')
    expect(response.headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/)
    const style = /<link rel="stylesheet" href="([^"]+)"/.exec(text)?.[1] ?? ''
    const { status: found } = await fetch(new URL(style, response.url))
    expect(found).toBe(200)
  })

  test('says so in English where the browser prefers it', async () => {
    breakPages()
    const { text } = await open(`/l/${slug}`, { headers: { 'Accept-Language': 'en' } })
    expect(text).toContain('nothing will be charged twice')
  })

  test('after a form: the same form, sent again, pays once', async () => {
    const { admission } = service.app.services
    const run = admission.run.bind(admission)
    const phone = customer('11')
    const body = () => new URLSearchParams({ amount: '5000', phone, token: 'a'.repeat(32) })
    const broken = vi.spyOn(admission, 'run').mockImplementationOnce(async (...work) => {
      await run(...work)
      throw new Error('hunter2')
    })
    onTestFinished(() => broken.mockRestore())
    const first = await open(`/l/${slug}`, { body: body() })
    expect([first.status, first.text]).toEqual([
      500,
      expect.stringContaining('rien ne sera débité deux fois'),
    ])
    expect((await open(`/l/${slug}`, { body: body() })).status).toBe(303)
    const { rowCount } = await service.database.owner.query(
      'SELECT FROM transaction WHERE customer_phone = $1',
      [phone],
    )
    expect(rowCount).toBe(1)
  })
})

describe('another page that fails', () => {
  beforeAll(() =>
    mkdir(join(service.app.services.config.mail.folder ?? '', 'unreadable.eml'), { recursive: true }),
  )

  test('is a page for a browser', async () => {
    const { response, status, text } = await open('/mail?lang=en')
    expect([status, response.headers.get('content-type')]).toEqual([500, 'text/html; charset=utf-8'])
    expect(text).toContain('The error is on our side.')
    expect(response.headers.get('content-security-policy')).toContain("default-src 'none'")
    expect(text).not.toContain('unreadable.eml')
  })

  test.each(['*/*', 'application/json', ''])('is the envelope for a program: %j', async (accept) => {
    const { status, text } = await open('/mail', { headers: { Accept: accept } })
    expect([status, JSON.parse(text)]).toMatchObject([500, { success: false, code: 'INTERNAL' }])
  })
})

test('REST answers JSON to every client', async () => {
  breakPages()
  const answers = [await open('/merchant/api/payment/status/any'), await open('/merchant/api/nothing')]
  expect(answers.map(({ status }) => status)).toEqual([500, 404])
  for (const { text } of answers) expect(JSON.parse(text)).toMatchObject({ success: false })
})
