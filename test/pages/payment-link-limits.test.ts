import { afterAll, beforeAll, expect, test } from 'vitest'
import { eventually } from '../kit/eventually.ts'
import { linkFactors } from '../../src/limits/request-limits.ts'
import { prompts } from '../../src/resources/payment-links/pay.ts'
import { startTestApp, type TestApp } from '../kit/app.ts'

// The limits of views and prompts of a link: thousands share an address, and no phone is prompted too often.

const perMinute = 1
const perPhone = 2
let service: TestApp
beforeAll(async () => {
  service = await startTestApp({
    RATE_LIMIT_PUBLIC: String(perMinute),
    RATE_LIMIT_PROMPTS: String(perPhone),
    TRUSTED_PROXIES: '127.0.0.1',
  })
})
afterAll(() => service.close())

/** A link of a merchant of its own. */
async function link(more: object = {}): Promise<string> {
  const { token } = await service.merchant()
  const body = { title: 'Cours', amount: 5_000, ...more }
  const { body: answer } = await service.rest('POST', '/payment-links', { token, body })
  return `${service.url}/l/${answer.data.url_slug}`
}

let addresses = 0
/** A visitor with an address of its own. */
function visitor() {
  addresses += 1
  const headers = { 'X-Forwarded-For': `198.51.100.${addresses}` }
  const ask = async (url: string, init: RequestInit = {}) => {
    const response = await fetch(url, { ...init, headers, redirect: 'manual' })
    return {
      status: response.status,
      headers: response.headers,
      location: response.headers.get('location'),
      text: await response.text(),
    }
  }
  return {
    look: (url: string) => ask(url),
    send: (url: string, phone: string, more: Record<string, string> = {}) =>
      ask(url, { method: 'POST', body: new URLSearchParams({ amount: '5000', phone, ...more }) }),
  }
}
const statuses = (answers: { status: number }[]) =>
  answers.map(({ status }) => status).toSorted((a, b) => a - b)
const times = <T>(count: number, act: (n: number) => Promise<T>) =>
  Promise.all(Array.from({ length: count }, (_, n) => act(n)))

test('an address may view a link a hundred times as often as it may call another public route', async () => {
  const [address, one] = [await link(), visitor()]
  const most = perMinute * linkFactors.views
  const answers = []
  // Few at once: no request may be refused because the machine is busy.
  while (answers.length < most + 10) answers.push(...(await times(10, () => one.look(address))))
  expect(statuses(answers)).toEqual([...Array(most).fill(200), ...Array(10).fill(429)])
  const refused = answers.find(({ status }) => status === 429)
  expect(refused?.text).toContain('Trop de demandes')
  expect(Number(refused?.headers.get('retry-after'))).toBeLessThanOrEqual(60)
  expect(refused?.headers.get('ratelimit-policy')).toBe(`"views";q=${most};w=60`)
  expect((await visitor().look(address)).status).toBe(200)
  // An address that has used up its views can still pay.
  expect((await one.send(address, '70000001')).status).toBe(303)
})

test('forms of an address are counted apart, over all links', async () => {
  const [first, second, one] = [await link(), await link(), visitor()]
  const most = perMinute * linkFactors.forms
  const answers = await times(most + 2, (n) => one.send(n % 2 ? first : second, `700000${10 + n}`))
  expect(statuses(answers)).toEqual([...Array(most).fill(303), 429, 429])
  expect((await one.look(first)).status).toBe(200)
  expect((await visitor().send(first, '70000031')).status).toBe(303)
})

test('a link sends a limited number of prompts a minute; one more form keeps its fields', async () => {
  const address = await link()
  const most = perMinute * linkFactors.prompts
  const answers = await times(most + 1, (n) => visitor().send(address, `700000${40 + n}`))
  expect(statuses(answers)).toEqual([...Array(most).fill(303), 429])
  const { text } = answers.find(({ status }) => status === 429) ?? { text: '' }
  expect(text).toContain('Beaucoup de personnes paient en ce moment.')
  expect(text).toMatch(/value="700000[456]\d"/)
  expect((await visitor().send(await link(), '70000039')).status).toBe(303)
})

test('a phone that does not pay gets no prompt for a while, by any link', async () => {
  const [first, second] = [await link(), await link()]
  const answers = await times(perPhone + 3, (n) => visitor().send(n % 2 ? first : second, '70090070'))
  expect(statuses(answers)).toEqual([...Array(perPhone).fill(303), 429, 429, 429])
  const refused = answers.find(({ status }) => status === 429)
  expect(refused?.text).toContain('Ce numéro vient de recevoir plusieurs demandes.')
  expect(refused?.text).toContain('value="70090070"')
  expect(refused?.text).toContain('aria-describedby="phone-problem')
  const waitS = Number(refused?.headers.get('retry-after'))
  expect(waitS * 1_000).toBeLessThanOrEqual(prompts.windowMs)
  expect(waitS * 1_000).toBeGreaterThan(prompts.windowMs - 60_000)
  expect((await visitor().send(first, '70090071')).status).toBe(303)
  await service.app.services.sandbox?.advanceClock(prompts.windowMs)
  expect((await visitor().send(first, '70090070')).status).toBe(303)
})

test('over a day a phone gets four times as many prompts at most', async () => {
  const address = await link()
  const phone = '70090080'
  for (let window = 0; window < prompts.dayFactor; window += 1) {
    for (let n = 0; n < perPhone; n += 1) expect((await visitor().send(address, phone)).status).toBe(303)
    await service.app.services.sandbox?.advanceClock(prompts.windowMs)
  }
  const refused = await visitor().send(address, phone)
  expect([refused.status, refused.text.includes('réessayez plus tard')]).toEqual([429, true])
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(23 * 3_600)
  await service.app.services.sandbox?.advanceClock(prompts.dayMs)
  expect((await visitor().send(address, phone)).status).toBe(303)
})

test('a paid attempt does not count, and the same form leads to its attempt again', async () => {
  const address = await link()
  for (let n = 0; n < perPhone * 2; n += 1) {
    const { location } = await visitor().send(address, '70000091')
    await (await fetch(new URL(`${location}/live`, address))).text()
  }
  const token = crypto.randomUUID().replaceAll('-', '')
  const first = await visitor().send(address, '70090092', { token })
  await visitor().send(address, '70090092')
  expect((await visitor().send(address, '70090092')).status).toBe(429)
  const again = await visitor().send(address, '70090092', { token })
  expect([again.status, again.location]).toEqual([303, first.location])
})

test('attempts hold their slots until they end, and ten minutes at most', async () => {
  const most = perMinute * linkFactors.prompts
  const [address, silent] = [await link({ usage_limit: most }), await link({ usage_limit: 1 })]
  const look = async (url: string) => (await visitor().look(url)).status
  const advance = async (minutes: number) => service.app.services.sandbox?.advanceClock(minutes * 60_000)
  // No customer answers: the operator closes those prompts after five minutes, and never the other one.
  expect(statuses(await times(most, (n) => visitor().send(address, `701005${10 + n}`)))).not.toContain(429)
  expect((await visitor().send(silent, '70110001')).status).toBe(303)
  expect([await look(address), await look(silent)]).toEqual([429, 429])
  await advance(4)
  expect(await look(address)).toBe(429)
  await advance(2)
  await eventually(async () => expect(await look(address)).toBe(200))
  // It may still be paid, until its own end; its slot is free by then.
  expect(await look(silent)).toBe(429)
  await advance(4)
  expect(await look(silent)).toBe(200)
})
