import { beforeAll, expect, test } from 'vitest'
import { eventually } from '../kit/eventually.ts'
import { openFixture } from '../kit/fixture.ts'
import type { TestMerchant } from '../kit/app.ts'

// The slots of a link, within production's limits: visitors who do not pay cannot keep them, and an attempt
// holds its slot for ten minutes at most.

const fixture = await openFixture({
  RATE_LIMIT_PUBLIC: '60',
  RATE_LIMIT_PROMPTS: '5',
  TRUSTED_PROXIES: '127.0.0.1',
})
const { owner } = fixture.database
const minute = 60_000
const advance = (ms: number) => fixture.app.services.sandbox?.advanceClock(ms)
let shop: TestMerchant
beforeAll(async () => {
  shop = await fixture.merchant()
})

interface Link {
  id: number
  url: string
}

async function link(usageLimit?: number): Promise<Link> {
  const body = { title: 'Tournoi', amount: 5_000, ...(usageLimit && { usage_limit: usageLimit }) }
  const { body: made } = await fixture.rest('POST', '/payment-links', { token: shop.token, body })
  return { id: made['data'].id, url: `${fixture.url}/l/${made['data'].url_slug}` }
}
async function availability({ id }: Link): Promise<unknown> {
  const { body } = await fixture.rest('GET', `/payment-links/${id}`, { token: shop.token })
  return body['data'].availability
}

async function ask(url: string, from: string, init: RequestInit = {}) {
  const headers = { 'X-Forwarded-For': from }
  const response = await fetch(url, { ...init, headers, redirect: 'manual' })
  return {
    status: response.status,
    goTo: new URL(response.headers.get('location') ?? '', url).href,
    retryAfterS: Number(response.headers.get('retry-after')),
    text: await response.text(),
  }
}
const look = ({ url }: Link, from: string, language = 'fr') => ask(`${url}?lang=${language}`, from)
const pay = ({ url }: Link, from: string, phone: string) =>
  ask(url, from, { method: 'POST', body: new URLSearchParams({ amount: '5000', phone }) })

let numbers = 0
/** A phone that never answers its prompt, and one that pays at once. */
const silent = () => `7011${String((numbers += 1)).padStart(4, '0')}`
const paying = () => `700000${String((numbers += 1) % 100).padStart(2, '0')}`

const thief = '203.0.113.9'
let visitors = 0
const visitor = () => `198.51.${Math.floor((visitors += 1) / 250)}.${visitors % 250}`
const countOf = (answers: readonly { status: number }[]) => {
  const counts: Record<number, number> = {}
  for (const { status } of answers) counts[status] = (counts[status] ?? 0) + 1
  return counts
}
const times = <T>(count: number, act: () => Promise<T>) => Promise.all(Array.from({ length: count }, act))

test('one address with 40 phones takes 4 of 40 slots, and 40 others pay', async () => {
  const forty = await link(40)
  const tries = await times(40, () => pay(forty, thief, silent()))
  expect(countOf(tries)).toEqual({ 303: 4, 429: 36 })
  const refused = tries.find(({ status }) => status === 429)
  expect(refused?.text).toContain('Plusieurs paiements sont déjà en cours depuis votre connexion.')
  expect(refused?.text).toContain('ou réessayez dans 10 min.')
  expect(refused?.retryAfterS).toBeGreaterThan(9 * 60)
  expect(await availability(forty)).toBe('open')
  // Every visitor sees the form, the first address too.
  expect((await look(forty, thief)).status).toBe(200)
  expect(countOf(await times(36, () => pay(forty, visitor(), paying())))).toEqual({ 303: 36 })
  await eventually(async () => expect((await usesOf(forty)).used).toBe(36))

  const [busy, english] = [await look(forty, visitor()), await look(forty, visitor(), 'en')]
  expect([busy.status, english.status]).toEqual([429, 429])
  expect(busy.text).toContain('D’autres paiements sont en cours')
  expect(busy.text).toContain('Réessayez dans 10 min.')
  expect(english.text).toContain('Other payments are under way')
  expect(english.text).toContain('Try again in 10 min.')
  expect(busy.text).not.toContain('tous les paiements prévus')
  expect(busy.retryAfterS).toBeGreaterThan(9 * 60)
  expect(await availability(forty)).toBe('exhausted')
  const form = await pay(forty, visitor(), paying())
  expect([form.status, form.text.includes('D’autres paiements sont en cours')]).toEqual([429, true])

  await advance(10 * minute)
  expect(await availability(forty)).toBe('open')
  expect(countOf(await times(4, () => pay(forty, visitor(), paying())))).toEqual({ 303: 4 })
  await eventually(async () => expect(await usesOf(forty)).toEqual({ used: 40, open: 4 }))
  const closed = await look(forty, visitor())
  expect([closed.status, closed.text.includes('Il a reçu tous les paiements prévus.')]).toEqual([410, true])
})

async function usesOf({ id }: Link): Promise<{ used: number; open: number }> {
  const { rows } = await owner.query<{ used: number; open: number }>(
    'SELECT usage_count AS used, open_count AS open FROM payment_link WHERE id = $1',
    [id],
  )
  return rows[0] ?? { used: -1, open: -1 }
}

test('a link without a limit prompts 100 phones of one address at a time', async () => {
  const any = await link()
  expect(countOf(await times(104, () => pay(any, thief, silent())))).toEqual({ 303: 100, 429: 4 })
  expect((await pay(any, visitor(), silent())).status).toBe(303)
  // The same address has slots of its own at another link.
  expect((await pay(await link(), thief, silent())).status).toBe(303)
})

test('a payer who paid or refused frees the slot for the next payer of that address', async () => {
  const many = await link(30)
  for (let n = 1; n <= 6; n += 1) {
    expect((await pay(many, thief, paying())).status).toBe(303)
    await eventually(async () => expect((await usesOf(many)).used).toBe(n))
  }
  expect(countOf(await times(4, () => pay(many, thief, silent())))).toEqual({ 303: 3, 429: 1 })
})

test('a small link lets three payers of an address try at a time', async () => {
  const ten = await link(10)
  expect(countOf(await times(5, () => pay(ten, thief, silent())))).toEqual({ 303: 3, 429: 2 })
  // The 48-bit network of an IPv6 address counts as one address.
  const network = (subnet: number) => `2001:db8:1:${subnet}::7`
  expect(countOf(await Promise.all([1, 2, 3, 4].map((host) => pay(ten, network(host), silent()))))).toEqual({
    303: 3,
    429: 1,
  })
})

test('no address is stored in the clear, and none longer than it counts', async () => {
  const one = await link(30)
  await pay(one, '192.0.2.77', silent())
  const kept = async () => {
    const { rows } = await owner.query<{ row: string }>(
      'SELECT row_to_json(p)::text AS row FROM link_slot p WHERE payment_link_id = $1',
      [one.id],
    )
    return rows.map(({ row }) => row)
  }
  expect(await kept()).toEqual([expect.not.stringContaining('192.0.2')])
  await advance(360 * minute)
  await owner.query('SELECT sweep_link_slots(1000)')
  expect(await kept()).toEqual([])
})

test('ten addresses that do not pay hold all slots once, and half of them after that', async () => {
  const ten = Array.from({ length: 10 }, visitor)
  const forty = await link(40)
  const take = async () =>
    countOf(await Promise.all(ten.flatMap((from) => [1, 2, 3, 4].map(() => pay(forty, from, silent())))))
  expect(await take()).toEqual({ 303: 40 })
  expect((await pay(forty, visitor(), paying())).status).toBe(429)
  // The half of the slots that is left is for others, again and again.
  for (let round = 1; round <= 3; round += 1) {
    await advance(10 * minute)
    const half = Math.floor((41 - round) / 2)
    expect(await take()).toEqual({ 303: half, 429: 40 - half })
    expect((await pay(forty, visitor(), paying())).status).toBe(303)
    await eventually(async () => expect((await usesOf(forty)).used).toBe(round))
  }
})

test('the last payment of a link is not for an address that let three attempts lapse', async () => {
  const one = await link(1)
  for (let n = 0; n < 3; n += 1) {
    expect((await pay(one, thief, silent())).status).toBe(303)
    await advance(10 * minute)
  }
  const refused = await pay(one, thief, silent())
  expect(refused.status).toBe(429)
  expect(refused.retryAfterS).toBeGreaterThan(5 * 3_600)
  expect((await pay(one, visitor(), paying())).status).toBe(303)
  await eventually(async () => expect((await usesOf(one)).used).toBe(1))
})

test('a payer whose own prompts lapsed may try again, also for the last payment of a link', async () => {
  const [one, from, phone] = [await link(1), visitor(), silent()]
  for (let n = 0; n < 4; n += 1) {
    expect((await pay(one, from, phone)).status).toBe(303)
    await advance(30 * minute)
  }
})

test('a prompt that ends after a minute counts as unpaid, one that is refused at once does not', async () => {
  const [slow, quick] = [await link(2), await link(2)]
  /** A phone whose prompt ends after a minute, and one that refuses it at once. */
  const ending = () => `701001${String((numbers += 1) % 100).padStart(2, '0')}`
  const refusing = () => `700100${String((numbers += 1) % 100).padStart(2, '0')}`
  const unpaid = async (of: Link, phone: string) => {
    expect((await pay(of, thief, phone)).status).toBe(303)
    await eventually(async () => expect((await usesOf(of)).open).toBe(0))
  }
  for (let n = 0; n < 4; n += 1) await unpaid(quick, refusing())
  expect(await remembered(quick)).toBe(0)
  for (let n = 0; n < 3; n += 1) {
    expect((await pay(slow, thief, ending())).status).toBe(303)
    // The service may read the end of the prompt before it reads the new time.
    await owner.query(
      `UPDATE link_slot SET created_at = created_at - interval '1 minute' WHERE payment_link_id = $1`,
      [slow.id],
    )
    await advance(2 * minute)
    await eventually(async () => expect((await usesOf(slow)).open).toBe(0))
  }
  expect(await remembered(slow)).toBe(3)
  // One of two slots is taken by another payer, so half of them is not free.
  expect((await pay(slow, visitor(), silent())).status).toBe(303)
  expect((await pay(slow, thief, silent())).status).toBe(429)
  expect((await pay(slow, visitor(), silent())).status).toBe(303)
})

async function remembered({ id }: Link): Promise<number> {
  const { rows } = await owner.query('SELECT FROM link_slot WHERE payment_link_id = $1', [id])
  return rows.length
}

test('an address that withdraws its prompts prompts no more strangers than one that waits', async () => {
  const thirty = await link(30)
  const statuses: number[] = []
  for (let n = 0; n < 5; n += 1) {
    const { status, goTo } = await pay(thirty, thief, silent())
    statuses.push(status)
    if (status === 303) await ask(goTo, thief, { method: 'POST' })
  }
  expect(statuses).toEqual([303, 303, 303, 429, 429])
  // A withdrawn prompt holds no slot of the link, and after its ten minutes it counts no more.
  expect(await usesOf(thirty)).toEqual({ used: 0, open: 0 })
  await advance(10 * minute)
  expect((await pay(thirty, thief, silent())).status).toBe(303)
})

test('a payer who withdraws the prompt of the own phone may begin again', async () => {
  const [one, from, phone] = [await link(1), visitor(), silent()]
  for (let n = 0; n < 4; n += 1) {
    const { status, goTo } = await pay(one, from, phone)
    expect([status, (await ask(goTo, from, { method: 'POST' })).goTo]).toEqual([303, one.url])
  }
  // Wrong numbers that were withdrawn at once do not count for six hours.
  const [two, mistaken] = [await link(1), visitor()]
  for (let n = 0; n < 3; n += 1) {
    const { status, goTo } = await pay(two, mistaken, silent())
    expect([status, (await ask(goTo, mistaken, { method: 'POST' })).goTo]).toEqual([303, two.url])
  }
  await advance(10 * minute)
  expect((await pay(two, mistaken, silent())).status).toBe(303)
})
