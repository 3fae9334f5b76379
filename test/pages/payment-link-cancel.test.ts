import { setTimeout } from 'node:timers/promises'
import { beforeAll, expect, test } from 'vitest'
import { claimBounds } from '../../src/requests/store.ts'
import type { Provider } from '../../src/shared/providers.ts'
import type { TestMerchant } from '../kit/app.ts'
import { eventually } from '../kit/eventually.ts'
import { customer, type Fixture, openFixture, second } from '../kit/fixture.ts'
import { operatorCalls } from '../kit/operator-calls.ts'
import { useBounds } from '../kit/use-bounds.ts'

// A payer who typed a wrong number withdraws the payment on its page.

let service: Fixture
let shop: TestMerchant
beforeAll(async () => {
  service = await openFixture()
  shop = await service.merchant('Atelier Sogoniko')
})

async function post(address: string, fields: Record<string, string> = {}, headers = {}) {
  const body = new URLSearchParams(fields)
  const response = await fetch(address, { method: 'POST', body, headers, redirect: 'manual' })
  const location = response.headers.get('location')
  const goTo = location === null ? null : new URL(location, address).href
  return { status: response.status, goTo, text: await response.text() }
}
/** An attempt to pay by a link for one payment. */
interface Attempt {
  form: string
  page: string
  id: string
}
async function attempt(operator: Provider, scenario = '09'): Promise<Attempt> {
  const body = { title: 'Cours', amount: 5_000, usage_limit: 1 }
  const { body: made } = await service.rest('POST', '/payment-links', { token: shop.token, body })
  const form = `${service.url}/l/${made.data.url_slug}`
  const { goTo } = await pay(form, operator, scenario)
  const page = goTo ?? ''
  const { rows } = await service.database.owner.query<{ id: string }>(
    'SELECT id::text FROM transaction WHERE reference = $1',
    [page.split('/').at(-1)],
  )
  return { form, page, id: rows[0]?.id ?? '' }
}
const pay = (form: string, operator: Provider, scenario = '09') =>
  post(form, { amount: '5000', phone: customer(scenario), operator })
const look = async (page: string) => (await fetch(page)).text()
async function stateOf(id: string) {
  const { rows } = await service.database.owner.query<{ status: string; reason: string | null }>(
    'SELECT status, failure_reason AS reason FROM transaction WHERE id = $1',
    [id],
  )
  return rows[0]
}
async function cancelsOf(id: string): Promise<number> {
  const name = await service.correlationOf(id)
  const calls = await operatorCalls(service.simulator.url, service.controlToken, 'cancel')
  return calls.filter((call) => JSON.stringify(call).includes(name)).length
}

test.each(['OperatorA', 'OperatorB', 'OperatorC'] as const)(
  'a payment at %s is withdrawn, and the link takes the next one',
  async (operator) => {
    const { form, page, id } = await attempt(operator)
    expect(await look(page)).toContain('Annuler et recommencer')
    expect((await pay(form, operator)).status).toBe(429)
    const answers = await Promise.all([post(page), post(page)])
    expect(answers.map(({ status, goTo }) => [status, goTo])).toEqual([
      [303, form],
      [303, form],
    ])
    expect(await stateOf(id)).toEqual({ status: 'failed', reason: 'CANCELLED' })
    expect(await service.executionsOf(id)).toEqual([])
    expect(await look(page)).toContain('Ce paiement a été annulé.')
    expect(await post(page)).toMatchObject({ status: 303, goTo: form })
    expect((await pay(form, operator)).status).toBe(303)
  },
)

test('an operator that cannot withdraw a payment is not asked to', async () => {
  const { page, id } = await attempt('OperatorD')
  const waiting = await look(page)
  expect(waiting).toContain('Ne validez qu’une seule demande.')
  expect(waiting).not.toContain('Annuler et recommencer')
  expect(await post(page)).toMatchObject({
    status: 409,
    text: expect.stringContaining('n’a pas pu être annulée'),
  })
  expect(await cancelsOf(id)).toBe(0)
  await service.answer(id, 'confirm')
  await eventually(async () => expect(await service.creditsOf(id)).toEqual([5_000]))
})

test('a payment that its payer confirms at the same moment is credited once, or not paid', async () => {
  const attempts = await Promise.all(
    Array.from({ length: 8 }, (_, i) => attempt(i % 2 === 0 ? 'OperatorA' : 'OperatorC')),
  )
  await Promise.all(
    attempts.flatMap(({ page, id }) => [
      service.answer(id, 'confirm').catch(() => {}),
      post(page),
      post(page),
    ]),
  )
  for (const { id } of attempts) {
    await eventually(async () => expect((await stateOf(id))?.status).toMatch(/success|failed/))
    const paid = (await service.executionsOf(id)).length
    expect((await service.creditsOf(id)).length).toBe(paid)
    expect(await stateOf(id)).toEqual(
      paid === 1 ? { status: 'success', reason: null } : { status: 'failed', reason: 'CANCELLED' },
    )
  }
})

test('a paid payment is not touched: its page shows the receipt', async () => {
  const { page, id } = await attempt('OperatorA', '00')
  await eventually(async () => expect((await stateOf(id))?.status).toBe('success'))
  expect(await post(page)).toMatchObject({ status: 303, goTo: page })
  expect(await cancelsOf(id)).toBe(0)
  expect(await look(page)).toContain('Paiement effectué')
})

test('while the operator is down a payment stays open, and the page says so', async () => {
  const { page, id } = await attempt('OperatorC')
  await service.outage('OperatorC', 'refuse')
  const { status, text } = await post(`${page}?lang=en`)
  await service.outage('OperatorC', 'none')
  expect(status).toBe(409)
  expect(text).toContain('the request can still be approved on the telephone')
  expect((await stateOf(id))?.status).toBe('pending')
  await service.answer(id, 'confirm')
  await service.advance(30 * second)
  await eventually(async () => expect(await service.creditsOf(id)).toEqual([5_000]))
})

test('a payment about which the operator was asked just now is withdrawn after a short while', async () => {
  useBounds(claimBounds, { operatorQueryIntervalMs: second })
  const { form, page, id } = await attempt('OperatorA')
  await service.database.owner.query(
    "UPDATE operator_request SET query_after = now() + interval '500 ms' WHERE transaction_id = $1",
    [id],
  )
  expect(await post(page)).toMatchObject({ status: 303, goTo: form })
})

test('a form from another site withdraws nothing; an unknown payment is a 404', async () => {
  const { form, page, id } = await attempt('OperatorA')
  const foreign = await post(page, {}, { 'sec-fetch-site': 'cross-site' })
  expect(foreign).toMatchObject({ status: 303, goTo: page })
  expect((await stateOf(id))?.status).toBe('pending')
  expect((await post(`${form}/mp_${'0'.repeat(32)}`)).status).toBe(404)
})

async function fault(effect: string, match: object, params: object = {}): Promise<void> {
  const response = await fetch(`${service.simulator.url}/_sim/faults`, {
    method: 'POST',
    headers: { 'x-control-token': service.controlToken, 'content-type': 'application/json' },
    body: JSON.stringify({ effect, match: { op: 'cancel', ...match }, params }),
  })
  expect(response.status).toBe(201)
}

test('an operator that answers a withdrawal slowly gets one, however often its payer presses', async () => {
  const { form, page, id } = await attempt('OperatorC')
  await fault('delay', { clientRef: await service.correlationOf(id) }, { ms: 1_500 })
  const pressed: Promise<{ status: number; goTo: string | null }>[] = []
  for (let n = 0; n < 4; n++) {
    pressed.push(post(page))
    await setTimeout(200)
  }
  for (const { status, goTo } of await Promise.all(pressed)) expect([status, goTo]).toEqual([303, form])
  expect(await cancelsOf(id)).toBe(1)
})

test.each([
  ['OperatorA', 'garbage', 'CANCELLED'],
  ['OperatorB', 'garbage', 'CANCELLED'],
  ['OperatorA', 'close_after', 'CANCELLED'],
  ['OperatorB', 'close_after', 'CANCELLED'],
  ['OperatorA', 'status', null],
  ['OperatorB', 'status', null],
  ['OperatorC', 'html', null],
  ['OperatorC', 'close_before', null],
] as const)('the outcome of a withdrawal at %s that shows %s is what a question tells', async (...row) => {
  const [operator, effect, ended] = row
  const { page, id } = await attempt(operator)
  await fault(effect, { clientRef: await service.correlationOf(id) })
  const { status } = await post(page)
  expect([status, (await stateOf(id))?.reason]).toEqual([ended === null ? 409 : 303, ended])
  await service.answer(id, 'confirm').catch(() => {})
  await service.advance(30 * second)
  await eventually(async () => expect(await service.creditsOf(id)).toEqual(ended === null ? [5_000] : []))
  expect((await service.executionsOf(id)).length).toBe(ended === null ? 1 : 0)
})

test('a withdrawal of a payment whose first send is under way leaves no payment twice', async () => {
  const phone = customer('09')
  await fault('delay', { op: 'collect', msisdn: phone }, { ms: 2_000 })
  const body = { title: 'Cours', amount: 5_000, usage_limit: 1 }
  const { body: made } = await service.rest('POST', '/payment-links', { token: shop.token, body })
  const form = `${service.url}/l/${made.data.url_slug}`
  const token = 'a'.repeat(32)
  const sending = post(form, { amount: '5000', phone, operator: 'OperatorB', token })
  const page = `${form}/mp_${token}`
  await eventually(async () => expect((await fetch(page)).status).toBe(200))
  const pressed = await Promise.all([post(page), post(page)])
  for (const { status } of pressed) expect([303, 409]).toContain(status)
  expect((await sending).goTo).toBe(page)
  expect((await post(page)).status).toBe(303)
  expect(await look(page)).toContain('Ce paiement a été annulé.')
  const { rows } = await service.database.owner.query<{ id: string }>(
    'SELECT id::text FROM transaction WHERE reference = $1',
    [`mp_${token}`],
  )
  expect(await service.executionsOf(rows[0]?.id)).toEqual([])
})

test('a node and its sibling that withdraw one payment at once agree; another method is a 404', async () => {
  const { form, page, id } = await attempt('OperatorC')
  const there = page.replace(service.url, await service.sibling())
  const answers = await Promise.all([post(page), post(there), post(page), post(there)])
  // A node whose question waits for longer than the pause between two says that the prompt still stands.
  expect(answers.filter(({ status }) => status !== 303 && status !== 409)).toEqual([])
  expect(answers.map(({ status }) => status)).toContain(303)
  await eventually(async () => expect(await stateOf(id)).toEqual({ status: 'failed', reason: 'CANCELLED' }))
  for (const method of ['PUT', 'DELETE', 'PATCH']) expect((await fetch(page, { method })).status).toBe(404)
  const other = await attempt('OperatorC')
  const foreign = `${form}/${other.page.split('/').at(-1)}`
  expect((await post(foreign)).status).toBe(404)
  expect((await stateOf(other.id))?.status).toBe('pending')
  expect(await service.eventsOf(id)).toEqual(['payment_pending', 'payment_failed'])
})
