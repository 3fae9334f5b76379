import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { eventually } from '../kit/eventually.ts'
import { lateWatchMaxMs } from '../../src/http/pages/payment-stream.ts'
import { limits } from '../../src/shared/limits.ts'
import { startTestApp, type TestApp, type TestMerchant } from '../kit/app.ts'

// The pages of payment links as the service sends them, and the forms that it receives.

let service: TestApp
let shop: TestMerchant
beforeAll(async () => {
  service = await startTestApp()
  shop = await service.merchant('Atelier Sogoniko')
})
afterAll(() => service.close())

async function link(more: object = {}): Promise<string> {
  const body = { title: 'Cours', amount: 5_000, ...more }
  const { body: answer } = await service.rest('POST', '/payment-links', { token: shop.token, body })
  return `${service.url}/l/${answer.data.url_slug}`
}
async function send(address: string, fields: Record<string, string>, headers: Record<string, string> = {}) {
  const body = new URLSearchParams({ amount: '5000', ...fields })
  const response = await fetch(address, { method: 'POST', body, headers, redirect: 'manual' })
  return { status: response.status, location: response.headers.get('location'), text: await response.text() }
}
async function attempts(address: string): Promise<number> {
  const { rows } = await service.app.services.database.pool.query<{ count: number }>(
    `SELECT count(*)::int FROM transaction t JOIN payment_link l ON l.id = t.payment_link_id
     WHERE l.url_slug = $1`,
    [new URL(address).pathname.split('/').at(-1)],
  )
  return rows[0]?.count ?? -1
}
const token = () => crypto.randomUUID().replaceAll('-', '')

test('of 20 payers at once by a link for one, one is prompted; the others read when to retry', async () => {
  const address = await link({ usage_limit: 1 })
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, i) => send(address, { phone: `700900${10 + i}` })),
  )
  const statuses = answers.map(({ status }) => status).toSorted((a, b) => a - b)
  expect(statuses).toEqual([303, ...Array.from({ length: 19 }, () => 429)])
  const asked = await service.app.services.database.pool.query(
    `SELECT DISTINCT r.correlation_id FROM operator_request r JOIN transaction t ON t.id = r.transaction_id
     WHERE t.customer_phone LIKE '+223700900%'`,
  )
  expect(asked.rowCount).toBe(1)
  const phones = answers.map((_, i) => `${service.simulator.url}/phone/+223700900${10 + i}`)
  const screens = await Promise.all(phones.map(async (url) => (await fetch(url)).text()))
  expect(screens.filter((screen) => screen.includes('name="pin"'))).toHaveLength(1)
})

test('a form sent twice, also at once, is one attempt; with another number it is a second', async () => {
  const address = await link()
  const fields = { phone: '70090001', token: token() }
  const [first, second] = await Promise.all([send(address, fields), send(address, fields)])
  expect([first.status, second.status]).toEqual([303, 303])
  expect(second.location).toBe(first.location)
  expect((await send(address, fields)).location).toBe(first.location)
  expect(await attempts(address)).toBe(1)
  const other = await send(address, { ...fields, phone: '70090002' })
  expect(other.status).toBe(303)
  expect(other.location).not.toBe(first.location)
})

test('by a link for one payment the same form leads to its attempt again', async () => {
  const address = await link({ usage_limit: 1 })
  const fields = { phone: '70090003', token: token() }
  const answers = await Promise.all(Array.from({ length: 5 }, () => send(address, fields)))
  expect(new Set(answers.map(({ location }) => location)).size).toBe(1)
  expect(await attempts(address)).toBe(1)
})

test.each([
  ['another site', { 'sec-fetch-site': 'cross-site' }],
  ['a neighbour', { 'sec-fetch-site': 'same-site' }],
  ['an older browser on another site', { origin: 'https://elsewhere.example' }],
  ['an unknown origin', { origin: 'null' }],
])('a form from %s sends no prompt, and is shown instead', async (_name, headers) => {
  const address = await link()
  const { status, text } = await send(address, { phone: '70000001' }, headers)
  expect(status).toBe(403)
  expect(text).toContain('value="70000001"')
  expect(await attempts(address)).toBe(0)
})

test.each([
  [{ amount: '5000', phone: '' }, 'à 8 chiffres'],
  [{ amount: '5000', phone: '<script>alert(1)</script>' }, 'value="&lt;script&gt;alert(1)&lt;/script&gt;"'],
  [{ amount: '5000', phone: '70000001', operator: 'BankTransfer' }, 'Choisissez votre opérateur'],
  [{ amount: '99', phone: '70000001' }, 'Le montant minimum'],
  [{ amount: '1 000 001', phone: '70000001' }, 'Le montant maximum'],
  [{ amount: '12,5', phone: '70000001' }, 'Saisissez un montant'],
  [{ amount: '-5000', phone: '70000001' }, 'Saisissez un montant'],
  [{ amount: '', phone: '\u0000' }, 'Saisissez un montant'],
])('the form %o is answered with %s', async (fields, words) => {
  const address = await link({ amount: undefined })
  const { status, text } = await send(address, fields)
  expect(text).toContain(words)
  expect(status).toBe(422)
  expect(text).toMatch(/ autofocus>/)
  expect(await attempts(address)).toBe(0)
})

test('no redirect follows an address in the query', async () => {
  const address = await link()
  const elsewhere = 'return_url=https://evil.example&next=//evil.example&lang=//evil.example'
  const { location } = await send(`${address}?${elsewhere}`, {
    phone: '70000001',
    return_url: 'https://evil.example',
  })
  expect(location).toMatch(/^[a-z0-9]{10}\/mp_[0-9a-f]{32}$/)
  expect((await send(`${service.url}/l//evil.example`, { phone: '70000001' })).location).toBeNull()
})

test('a changed amount is shown before a prompt is sent', async () => {
  const address = await link()
  const { status, text } = await send(address, { phone: '70000001', amount: '4000' })
  expect(status).toBe(409)
  expect(text).toContain('Le montant vient de changer')
  expect(text).toMatch(/name="amount" value="5000"/)
  expect(await attempts(address)).toBe(0)
})

test('a form that is too large is refused', async () => {
  const { status } = await send(await link(), { phone: '7'.repeat(5_000) })
  expect(status).toBe(413)
})

test.each(['/l/none', '/l/%00', '/l/%ff%fe', '/l/UPPER', '/l/none/mp_1', `/l/none/mp_${'0'.repeat(32)}`])(
  'the page %s is a 404 in words',
  async (path) => {
    const response = await fetch(service.url + path)
    expect(response.status).toBe(404)
    expect(await response.text()).toContain('<html lang="fr">')
    expect(response.headers.get('x-robots-tag')).toContain('noindex')
  },
)

test.each([
  ['en-GB,en;q=0.9,fr;q=0.5', 'en'],
  ['bm,en;q=0.2,fr;q=0.8', 'fr'],
  ['de', 'fr'],
  ['*', 'fr'],
])('a browser that prefers %s is answered in %s', async (wished, language) => {
  const response = await fetch(await link(), { headers: { 'Accept-Language': wished } })
  expect(await response.text()).toContain(`<html lang="${language}">`)
})

test('an attempt is shown under its own link only, and its stream ends with it', async () => {
  const [address, other] = [await link(), await link()]
  const { location } = await send(address, { phone: '70000101' })
  const reference = location?.split('/').at(-1)
  expect((await fetch(`${other}/${reference}`)).status).toBe(404)
  expect((await fetch(`${other}/${reference}/live`)).status).toBe(404)
  const live = await fetch(`${address}/${reference}/live`)
  expect(live.headers.get('content-type')).toContain('text/event-stream')
  expect(await live.text()).toContain('event: over\n')
  expect(await (await fetch(`${address}/${reference}`)).text()).toContain('Paiement effectué')
  expect([...service.app.services.streams.keys()]).toEqual([])
})

test.each([
  ['70010001', ['Vous avez refusé ce paiement.', 'You declined this payment.']],
  ['70030001', ['Votre numéro n’a pas de compte', 'Your number has no account']],
  ['70060001', ['Le code que vous avez saisi est incorrect.', 'The code that you entered is wrong.']],
])('a payer whose number is %s reads the reason in the second person', async (phone, words) => {
  const address = await link()
  const { location } = await send(address, { phone })
  const page = `${address}/${location?.split('/').at(-1)}`
  await (await fetch(`${page}/live`)).text()
  for (const [place, language] of ['fr', 'en'].entries())
    expect(await (await fetch(`${page}?lang=${language}`)).text()).toContain(words[place])
})

test('the page of a failed payment waits for late money, but not for ever', async () => {
  const address = await link()
  const { location } = await send(address, { phone: '70020001' })
  const page = `${address}/${location?.split('/').at(-1)}`
  await (await fetch(`${page}/live`)).text()
  expect(await (await fetch(page)).text()).toContain('/live?shown=failed"')
  const live = await fetch(`${page}/live?shown=failed`)
  const reader = live.body?.getReader()
  expect(Buffer.from((await reader?.read())?.value ?? []).toString()).toBe('retry: 1000\n\n')
  await reader?.cancel()
  await service.app.services.sandbox?.advanceClock(lateWatchMaxMs)
  expect(await (await fetch(page)).text()).not.toContain('/live')
  expect(await (await fetch(`${page}/live?shown=failed`)).text()).toContain('event: over\n')
  await eventually(() => expect([...service.app.services.streams.keys()]).toEqual([]))
})

test('each reader gets a form of its own, and at once every change', async () => {
  const body = { title: 'Cours', amount: 5_000 }
  const { body: made } = await service.rest('POST', '/payment-links', { token: shop.token, body })
  const address = `${service.url}/l/${made.data.url_slug}`
  const read = async () => (await fetch(address)).text()
  const tokenOf = (page: string) => /name="token" value="([0-9a-f]{32})"/.exec(page)?.[1]
  const pages = await Promise.all(Array.from({ length: 20 }, read))
  expect(new Set(pages.map(tokenOf)).size).toBe(20)
  const bare = pages.map((page) => page.replace(tokenOf(page) ?? '', ''))
  expect(new Set(bare).size).toBe(1)
  const change = (more: object) =>
    service.rest('PUT', `/payment-links/${made.data.id}`, { token: shop.token, body: more })
  for (const amount of [6_000, 7_000]) {
    await change({ amount, title: `À ${amount}` })
    const page = await read()
    expect(page).toContain(`<h1>À ${amount}</h1>`)
    expect(page).toContain(`name="amount" value="${amount}"`)
  }
  expect(await (await fetch(`${address}?lang=en`)).text()).toContain('<html lang="en">')
  await change({ is_active: false })
  expect((await fetch(address)).status).toBe(410)
})

test('a HEAD request gives the length of a page; an unknown method finds no page', async () => {
  const address = await link({ title: 'Élève' })
  const whole = await fetch(address)
  const length = (await whole.arrayBuffer()).byteLength
  const head = await fetch(address, { method: 'HEAD' })
  expect([head.status, Number(head.headers.get('content-length'))]).toEqual([200, length])
  expect(await head.text()).toBe('')
  expect((await fetch(address, { method: 'PUT' })).status).toBe(404)
})

test('a page with all its files is below 30 KB; the files are cached for ever', async () => {
  const page = await (await fetch(await link())).text()
  expect(page).not.toMatch(/<style|<script>|style="|onclick/)
  const files = [...page.matchAll(/(?:href|src)="\.\.\/(assets\/[^"]+)"/g)].map(([, path]) => path)
  expect(files).toHaveLength(3)
  const loaded = await Promise.all(
    files.map(async (path) => {
      const response = await fetch(`${service.url}/${path}`)
      expect(response.headers.get('cache-control')).toContain('immutable')
      return response.text()
    }),
  )
  const bytes = [page, ...loaded].reduce((sum, text) => sum + Buffer.byteLength(text), 0)
  expect(bytes).toBeLessThan(30_000)
})

test('a service without operators says that no payment is possible yet', async () => {
  const address = await link()
  const none = vi.spyOn(service.app.services.operators, 'list').mockReturnValue([])
  onTestFinished(() => none.mockRestore())
  for (const [language, title] of [
    ['fr', 'Le paiement n’est pas encore possible'],
    ['en', 'Payment is not possible yet'],
  ]) {
    const answer = await fetch(`${address}?lang=${language}`)
    expect(answer.status).toBe(503)
    expect(await answer.text()).toContain(`<h1>${title}</h1>`)
  }
})

test('an operator that is down is marked; a form for it keeps its fields', async () => {
  const outage = (mode: string) =>
    fetch(`${service.simulator.url}/_sim/outage`, {
      method: 'POST',
      headers: { 'x-control-token': service.controlToken, 'content-type': 'application/json' },
      body: JSON.stringify({ operator: 'OperatorD', mode }),
    })
  const address = await link()
  const fields = { phone: '50000001' }
  const down = /value="OperatorD">\s*<span class="name">OperatorD<\/span><span class="soft">indisponible</
  const look = async () => (await fetch(address)).text()
  expect(await look()).not.toMatch(down)
  expect((await outage('refuse')).ok).toBe(true)
  for (let failures = 0; failures < 5; failures += 1) await send(address, fields)
  const before = await attempts(address)
  const { status, text } = await send(address, fields)
  expect(status).toBe(503)
  expect(text).toContain('OperatorD ne répond pas')
  expect(text).toContain('value="50000001"')
  expect(text).toMatch(down)
  expect(await look()).toMatch(down)
  expect(await attempts(address)).toBe(before)
  await outage('none')
})

test('live pages of one address are bounded; one more is asked to retry', async () => {
  const address = await link()
  const { location } = await send(address, { phone: '70090009' })
  const live = `${address}/${location?.split('/').at(-1)}/live`
  const gone = new AbortController()
  const open = () => fetch(live, { signal: gone.signal })
  const opened = await Promise.all(Array.from({ length: limits.linkStreamsPerAddressMax }, open))
  expect(opened.every(({ status }) => status === 200)).toBe(true)
  const more = await open()
  expect([more.status, more.headers.get('retry-after')]).toEqual([429, '5'])
  gone.abort()
  await eventually(() => expect([...service.app.services.streams.keys()]).toEqual([]))
})
