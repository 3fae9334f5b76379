import { afterAll, beforeAll, expect, test } from 'vitest'
import { startTestApp, type TestApp, type TestMerchant } from '../kit/app.ts'

// The foot of the pages of payers: how they reach the merchant.

let service: TestApp
let shop: TestMerchant
let silent: TestMerchant
beforeAll(async () => {
  service = await startTestApp()
  ;[shop, silent] = [await service.merchant('Boutique <Awa>'), await service.merchant('Sans contact')]
  await set({ business_phone: '76 12 34 56', business_address: 'Rue 12 & porte 3, Bamako' })
})
afterAll(() => service.close())

const set = (body: object) => service.rest('PUT', '/settings', { token: shop.token, body })
async function link({ token }: TestMerchant, more: object = {}) {
  const body = { title: 'Cours', amount: 5_000, ...more }
  return (await service.rest('POST', '/payment-links', { token, body })).body.data
}
const footOf = async (address: string) => {
  const text = await (await fetch(address)).text()
  return /<footer>([\s\S]*)<\/footer>/.exec(text)?.[1] ?? null
}
async function payBy(address: string, phone: string): Promise<string> {
  const body = new URLSearchParams({ amount: '5000', phone, operator: 'OperatorA' })
  const answer = await fetch(address, { method: 'POST', body, redirect: 'manual' })
  const page = new URL(answer.headers.get('location') ?? '', address).href
  await (await fetch(`${page}/live`)).text()
  return page
}

test('each page of a payment says how to reach the merchant, at once after a change', async () => {
  const { url, id } = await link(shop)
  const pages = [url, await payBy(url, '70000101'), await payBy(url, '70010101')]
  for (const page of pages) {
    const foot = await footOf(page)
    expect(foot).toContain('<b>Boutique &lt;Awa&gt;</b><br>Rue 12 &amp; porte 3, Bamako')
    expect(foot).toContain('<a href="tel:+22376123456">Appeler le +223\u{a0}76\u{a0}12\u{a0}34\u{a0}56</a>')
    expect(foot).toContain('href="https://wa.me/22376123456"')
  }
  await service.rest('PUT', `/payment-links/${id}`, { token: shop.token, body: { is_active: false } })
  expect(await footOf(url)).toContain('tel:+22376123456')
  await set({ business_phone: '20 22 33 44', business_address: '' })
  for (const page of [url, ...pages]) {
    const foot = await footOf(page)
    expect(foot).toContain('<b>Boutique &lt;Awa&gt;</b></p>')
    expect(foot).toContain('tel:+22320223344')
    // A fixed number has no WhatsApp.
    expect(foot).not.toContain('wa.me')
  }
})

test('a merchant that says nothing has no foot', async () => {
  const { url } = await link(silent)
  expect(await footOf(url)).toBeNull()
  expect(await footOf(await payBy(url, '70000102'))).toBeNull()
})
