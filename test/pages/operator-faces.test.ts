import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { formatXof } from '../../src/shared/money.ts'
import { startTestApp, type TestApp, type TestMerchant } from '../kit/app.ts'
import { cannotLook, openBrowser, type TestBrowser } from '../kit/browser.ts'
import { expectGoodLook } from '../kit/look.ts'

// The pages of payers where the platform says how its operators look, on a telephone of 360 by 640.

const logo = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"><circle r="9" fill="#ff7900"/></svg>'
const folder = mkdtempSync(join(tmpdir(), 'merchant-payments-faces-'))
writeFileSync(join(folder, 'logo.svg'), logo)
/** A black logo that is far larger and wider than the pages show one. */
const wide =
  '<svg xmlns="http://www.w3.org/2000/svg" width="4000" height="800"><rect width="4000" height="800"/></svg>'
writeFileSync(join(folder, 'wide.svg'), wide)
/** The longest name that a setting may have, in one word. */
const longest = 'SaraliMoneyInternationalDuCercleDeKayesX'

let service: TestApp
let shop: TestMerchant
beforeAll(async () => {
  service = await startTestApp({
    OPERATOR_A_LABEL: 'Sarali Money',
    OPERATOR_A_COLOUR: '#ff7900',
    OPERATOR_A_LOGO: join(folder, 'logo.svg'),
    OPERATOR_A_USSD: '#144#',
    OPERATOR_B_LABEL: 'Wari, "chez = nous" <b>',
    OPERATOR_C_LABEL: longest,
    OPERATOR_C_LOGO: join(folder, 'wide.svg'),
    OPERATOR_D_LABEL: longest.replace('X', 'Y'),
    OPERATOR_D_COLOUR: '#000000',
    NUMBER_RANGES: '70=OperatorA,5=OperatorD',
  })
  shop = await service.merchant('Boutique Awa')
  const body = { business_phone: '76 12 34 56', business_address: 'Marché rose, porte 12, Bamako' }
  await service.rest('PUT', '/settings', { token: shop.token, body })
})
afterAll(async () => {
  await service.close()
  rmSync(folder, { recursive: true })
})

async function link(more: object = {}): Promise<string> {
  const body = { title: 'Cours de couture, novembre', description: 'Six séances, tissu compris.', ...more }
  const { body: answer } = await service.rest('POST', '/payment-links', { token: shop.token, body })
  return `${service.url}/l/${answer.data.url_slug}`
}

test('GraphQL gives the name, the colour, the code and the logo of each operator', async () => {
  const { body } = await service.graphql(
    '{ operators { paymentMethod label colour ussd logoUrl } }',
    {},
    shop.token,
  )
  expect(body.errors).toBeUndefined()
  const [first, second] = body.data.operators
  expect(first).toMatchObject({ label: 'Sarali Money', colour: '#ff7900', ussd: '#144#' })
  expect(second).toMatchObject({ label: 'Wari, "chez = nous" <b>', colour: null, ussd: null, logoUrl: null })
  const answer = await fetch(first.logoUrl)
  expect(answer.headers.get('content-type')).toBe('image/svg+xml')
  expect(answer.headers.get('content-security-policy')).toContain("default-src 'none'")
  expect(await answer.text()).toBe(logo)
})

test('a message that names a link shows its title, the amount and the merchant', async () => {
  const meta = async (address: string) => {
    const text = await (await fetch(address)).text()
    return Object.fromEntries(
      [...text.matchAll(/<meta property="og:(\w+)" content="([^"]*)">/g)].map(([, name, value]) => [
        name,
        value,
      ]),
    )
  }
  const address = await link({ title: 'Robe "bleue"', amount: 5_000 })
  expect(await meta(address)).toEqual({
    title: 'Robe &quot;bleue&quot;',
    description: `Payez ${formatXof(5_000)} à Boutique Awa par mobile money`,
    type: 'website',
    site_name: 'Boutique Awa',
  })
  expect((await meta(`${await link()}?lang=en`))['description']).toBe('Pay Boutique Awa by mobile money')
})

describe.skipIf(cannotLook)('a payer', () => {
  let browser: TestBrowser
  beforeAll(async () => {
    browser = await openBrowser({ width: 360, javaScript: true })
  })
  afterAll(() => browser.close())

  async function open(address: string): Promise<Page> {
    const page = await browser.context.newPage()
    await page.goto(address)
    return page
  }
  const titled = (page: Page, title: string) => page.getByRole('heading', { level: 1, name: title }).waitFor()
  const mainOf = (page: Page) => page.locator('main').innerText()
  const send = async (page: Page, phone: string) => {
    await page.locator('#phone').fill(phone)
    await page.locator('form button').click()
  }

  test.each([
    ['fixed', { amount: 5_000 }, '?lang=fr'],
    ['fixed', { amount: 5_000 }, '?lang=en'],
    ['typed', {}, '?lang=fr'],
    ['typed', {}, '?lang=en'],
  ])('sees the button without scrolling: %s amount, %j, %s', async (_name, more, query) => {
    const page = await open((await link(more)) + query)
    const box = await page.locator('form button').boundingBox()
    expect((box?.y ?? 1_000) + (box?.height ?? 0)).toBeLessThanOrEqual(640)
    await page.close()
  })

  test('reads the name and the logo of the operator everywhere, and the code of its menu', async () => {
    const page = await open(await link({ amount: 5_000 }))
    await page.locator('#phone').fill('70 09 00 01')
    expect(await page.locator('#suggested').textContent()).toBe('Sarali Money')
    await page.getByText('changer').click()
    const image = page.locator('.choice img[src*=OperatorA]')
    expect(await image.evaluate((one: HTMLImageElement) => one.naturalWidth > 0)).toBe(true)
    await expectGoodLook(page, 'face-choice')
    await page.getByRole('radio', { name: 'Wari, "chez = nous" <b>' }).check()
    expect(await page.locator('#suggested').textContent()).toBe('Wari, "chez = nous" <b>')
    await page.getByRole('radio', { name: 'Selon mon numéro' }).check()
    expect(await page.locator('#suggested').textContent()).toBe('Sarali Money')
    await page.locator('form button').click()
    await titled(page, 'Confirmez sur votre téléphone')
    const waiting = await mainOf(page)
    expect(waiting).toContain('Sarali Money envoie une demande au +223')
    expect(waiting).toContain('Vous pouvez aussi composer #144#.')
    await expectGoodLook(page, 'face-waiting')
    expect(await page.content()).not.toContain('OperatorA')
    await page.close()
  })

  test('sees each sign in its line, however large the logo and however long the name', async () => {
    const page = await open(await link({ amount: 5_000 }))
    await page.getByText('changer').click()
    await page.getByRole('radio', { name: longest }).check()
    await page.setViewportSize({ width: 320, height: 640 })
    const size = async (sign: string) => {
      const box = await page.locator(`.choice ${sign}`).boundingBox()
      return [box?.width, box?.height]
    }
    const signs = [await size('img[src*=OperatorC]'), await size('svg')]
    expect(signs).toEqual([
      [72, 28],
      [28, 28],
    ])
    await expectGoodLook(page, 'face-wide-choice')
    await page.locator('#phone').fill('70 09 00 04')
    await page.locator('form button').click()
    await titled(page, 'Confirmez sur votre téléphone')
    await expectGoodLook(page, 'face-wide-waiting')
    await page.close()
  })

  test('sees the time that is left, goes back with another number, and shares the receipt', async () => {
    const page = await open(await link({ amount: 5_000 }))
    await send(page, '70 09 00 02')
    await titled(page, 'Confirmez sur votre téléphone')
    expect(await page.locator('#left b').textContent()).toMatch(/^4:[0-5]\d$|^5:00$/)
    await page.getByRole('button', { name: 'Annuler et recommencer' }).click()
    await titled(page, 'Cours de couture, novembre')
    await send(page, '70 00 00 02')
    await titled(page, 'Paiement effectué')
    const share = page.getByRole('link', { name: 'Envoyer le reçu par WhatsApp' })
    const address = new URL((await share.getAttribute('href')) ?? '')
    expect([address.origin, address.searchParams.get('text')]).toEqual([
      'https://wa.me',
      `Paiement effectué · Boutique Awa ${page.url()}`,
    ])
    expect(await mainOf(page)).toContain('Sarali Money')
    // A message with this address shows the sum.
    const described = page.locator('meta[property="og:description"]')
    expect(await described.getAttribute('content')).toBe(`${formatXof(5_000)} · Boutique Awa`)
    await page.close()
  })

  test('is not left with a clock at zero: after the usual time the page says what happens', async () => {
    const page = await open(await link({ amount: 5_000 }))
    // The customer of this number answers after ten minutes.
    await send(page, '70 12 00 03')
    await titled(page, 'Confirmez sur votre téléphone')
    await service.app.services.sandbox?.advanceClock(6 * 60_000)
    await page.reload()
    expect(await mainOf(page)).toContain('Le temps pour confirmer est sans doute écoulé.')
    await page.close()
  })
})
