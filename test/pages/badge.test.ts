import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { pageRoutes } from '../../src/http/pages/home.ts'
import { schema } from '../../src/resources/schema.ts'
import { startTestApp, type TestApp } from '../kit/app.ts'
import { customer } from '../kit/fixture.ts'

// Every page of a sandbox says that its money is not real, and no page of production does.

let service: TestApp
let link: string
beforeAll(async () => {
  service = await startTestApp()
  const shop = await service.merchant('Atelier Sogoniko')
  const body = { title: 'Cours', amount: 5_000 }
  link = (await service.rest('POST', '/payment-links', { token: shop.token, body })).body.data.url
})
afterAll(() => service.close())

const badge = '>TEST</span>'
const plainPages = [
  '/',
  '/?lang=en',
  '/join',
  '/reset-password',
  '/mail',
  '/docs/errors',
  '/docs/errors?lang=en',
]

async function textOf(address: string | URL, options: RequestInit = {}): Promise<string> {
  return (await fetch(address, { ...options, headers: { Accept: 'text/html' } })).text()
}

test.each(plainPages)('the page %s shows the badge in a sandbox', async (path) => {
  expect(await textOf(`${service.url}${path}`)).toContain(badge)
})

test('the pages of production show none', async () => {
  const { services } = service.app
  const production = pageRoutes({ ...services, config: { ...services.config, mode: 'production' } }, schema)
  const incoming = { headers: {}, rawHeaders: [], socket: { remoteAddress: '127.0.0.1' } }
  for (const path of plainPages.filter((each) => each !== '/mail')) {
    const answer = await production.request(path, {}, { incoming })
    expect([path, answer.status]).toEqual([path, 200])
    expect(await answer.text()).not.toContain(badge)
  }
})

test('the form of a link, the page of its payment, and a link that does not exist: the same', async () => {
  const form = new URLSearchParams({ amount: '5000', phone: customer('11'), operator: 'OperatorA' })
  const paid = await fetch(link, { method: 'POST', body: form, redirect: 'manual' })
  const pages = [link, new URL(paid.headers.get('location') ?? '', link), `${service.url}/l/none`]
  for (const page of pages) expect(await textOf(page)).toContain(badge)
  const { config } = service.app.services
  config.mode = 'production'
  onTestFinished(() => void (config.mode = 'sandbox'))
  for (const page of pages) expect(await textOf(page)).not.toContain(badge)
})
