import { setTimeout } from 'node:timers/promises'
import { beforeAll, describe, expect, test } from 'vitest'
import { claimBounds } from '../../src/requests/store.ts'
import type { TestMerchant } from '../kit/app.ts'
import { cannotLook, openBrowser, type TestBrowser } from '../kit/browser.ts'
import { customer, type Fixture, openFixture, second } from '../kit/fixture.ts'
import { operatorCalls } from '../kit/operator-calls.ts'
import { eventually } from '../kit/eventually.ts'
import { useBounds } from '../kit/use-bounds.ts'

// Withdrawals under bad conditions: an operator that is silent, and a payer whose network breaks.

const slots = 20
let service: Fixture
let shop: TestMerchant
beforeAll(async () => {
  service = await openFixture({ IN_FLIGHT_MAX: String(slots) })
  shop = await service.merchant('Atelier Sogoniko')
})

async function link(): Promise<string> {
  const body = { title: 'Cours', amount: 5_000 }
  const { body: made } = await service.rest('POST', '/payment-links', { token: shop.token, body })
  return `${service.url}/l/${made.data.url_slug}`
}
async function post(address: string, fields: Record<string, string> = {}) {
  const init = { method: 'POST', body: new URLSearchParams(fields), redirect: 'manual' } as const
  const response = await fetch(address, init)
  await response.text()
  return { status: response.status, goTo: new URL(response.headers.get('location') ?? '', address).href }
}
const pay = (form: string, operator: string) =>
  post(form, { amount: '5000', phone: customer('09'), operator })

test('withdrawals that wait for a silent operator leave slots for payments', async () => {
  const form = await link()
  const pages: string[] = []
  for (let n = 0; n < slots; n++) pages.push((await pay(form, 'OperatorA')).goTo)
  const fault = await fetch(`${service.simulator.url}/_sim/faults`, {
    method: 'POST',
    headers: { 'x-control-token': service.controlToken, 'content-type': 'application/json' },
    body: JSON.stringify({ effect: 'hang', match: { op: 'cancel', operator: 'OperatorA' } }),
  })
  expect(fault.status).toBe(201)
  useBounds(claimBounds, { operatorQueryIntervalMs: second })
  await service.database.owner.query("UPDATE operator_request SET query_after = now() + interval '900 ms'")
  const pressed: Promise<unknown>[] = []
  for (const page of pages) {
    pressed.push(post(page))
    await setTimeout(10)
  }
  await eventually(async () => {
    const calls = await operatorCalls(service.simulator.url, service.controlToken, 'cancel')
    expect(calls.length).toBeGreaterThan(4)
  })
  await setTimeout(500)
  expect((await pay(form, 'OperatorC')).status).toBe(303)
  await Promise.all(pressed)
})

describe.skipIf(cannotLook)('a payer whose network breaks', () => {
  let browser: TestBrowser
  beforeAll(async () => {
    browser = await openBrowser({ width: 360, javaScript: true })
    return () => browser.close()
  })

  test('and who gives up the withdrawal still sees the receipt', async () => {
    const page = await browser.context.newPage()
    const { goTo } = await pay(await link(), 'OperatorC')
    await page.clock.install()
    await page.goto(goTo)
    await page.route(goTo, async (route) => {
      // The browser stays on the page, as when its user stops the loading.
      if (route.request().method() === 'POST') await route.abort('aborted')
      else await route.continue()
    })
    const given = page.waitForEvent('requestfailed', (request) => request.method() === 'POST')
    await page.getByRole('button', { name: 'Annuler et recommencer' }).click()
    await given
    const { rows } = await service.database.owner.query<{ id: string }>(
      'SELECT id::text FROM transaction WHERE reference = $1',
      [goTo.split('/').at(-1)],
    )
    await service.answer(rows[0]?.id, 'confirm')
    await service.advance(30 * second)
    await eventually(async () => expect(await service.creditsOf(rows[0]?.id)).toEqual([5_000]))
    await setTimeout(second)
    await page.clock.fastForward(30 * second)
    await page.getByRole('heading', { name: 'Paiement effectué' }).waitFor({ timeout: 15 * second })
    expect(await page.locator('main').innerText()).toContain('Atelier Sogoniko')
    await page.close()
  })
})
