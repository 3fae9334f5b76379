import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { eventually } from '../kit/eventually.ts'
import { formatXof } from '../../src/shared/money.ts'
import { startTestApp, type TestApp, type TestMerchant } from '../kit/app.ts'
import { cannotLook, openBrowser, type TestBrowser } from '../kit/browser.ts'

/** A person pays by a link, with a phone of 320 pixels, in real Chromium. */
let service: TestApp
let shop: TestMerchant
let browser: TestBrowser

/** A new link. @returns its address */
async function link(more: object = {}): Promise<string> {
  const body = { title: 'Cours de couture, novembre', description: 'Six séances, tissu compris.', ...more }
  const { body: answer } = await service.rest('POST', '/payment-links', { token: shop.token, body })
  return `${service.url}/l/${answer.data.url_slug}`
}
async function open(address: string): Promise<Page> {
  const page = await browser.context.newPage()
  const response = await page.goto(address)
  expect(response?.headers()['content-security-policy']).toContain("script-src 'self'")
  return page
}
async function withoutScript(address: string): Promise<Page> {
  const page = await browser.context.newPage()
  const session = await browser.context.newCDPSession(page)
  await session.send('Emulation.setScriptExecutionDisabled', { value: true })
  await page.goto(address)
  return page
}
async function send(page: Page, phone: string, operator = '') {
  await page.locator('#phone').fill(phone)
  const choice = page.locator('.operators')
  if (operator !== '' && (await choice.getAttribute('open')) === null) await choice.locator('summary').click()
  if (operator !== '') await page.getByRole('radio', { name: operator }).check()
  await page.locator('form button').click()
}
const hour = 3_600_000
const titled = (page: Page, title: string) => page.getByRole('heading', { level: 1, name: title }).waitFor()

const mainOf = (page: Page) => page.locator('main').innerText()

describe.skipIf(cannotLook)('a payment link', () => {
  beforeAll(async () => {
    ;[service, browser] = await Promise.all([startTestApp(), openBrowser({ width: 320, javaScript: true })])
    shop = await service.merchant('Atelier Sogoniko')
  })
  afterAll(async () => {
    await browser.close()
    await service.close()
  })

  test('is paid: the number suggests the operator, and the page turns to the receipt by itself', async () => {
    const page = await open(await link({ amount: 5_000 }))
    expect(await page.locator('html').getAttribute('lang')).toBe('fr')
    expect(await page.title()).toBe('Cours de couture, novembre · Atelier Sogoniko')
    expect(await page.locator('.sum').textContent()).toBe(formatXof(5_000))
    await page.locator('#phone').fill('70 00 01 01')
    expect(await page.locator('#suggested').textContent()).toBe('OperatorA')
    await page.locator('form button').click()
    await titled(page, 'Confirmez sur votre téléphone')
    await titled(page, 'Paiement effectué')
    const receipt = await mainOf(page)
    for (const part of [
      'Atelier Sogoniko',
      'Cours de couture',
      '+223\u{a0}70\u{a0}••\u{a0}••\u{a0}01',
      'OperatorA',
      'mp_',
    ])
      expect(receipt).toContain(part)
    expect(await page.content()).not.toMatch(/70 ?00 ?01 ?01/)
    await page.emulateMedia({ media: 'print' })
    expect(await page.locator('#print').isVisible()).toBe(false)
    await page.close()
  })

  test('shows a refusal in words for the payer, and offers another try', async () => {
    const page = await open(await link({ amount: 5_000 }))
    await send(page, '70 02 00 01')
    await titled(page, 'Le paiement n’a pas abouti')
    expect(await mainOf(page)).toContain('Votre solde est insuffisant.')
    await page.getByRole('link', { name: 'Réessayer' }).click()
    await send(page, '70 00 00 01')
    await titled(page, 'Paiement effectué')
    await page.close()
  })

  test('ends its waiting page when the prompt expires', async () => {
    const page = await open(await link({ amount: 5_000 }))
    await send(page, '70 10 01 01')
    await titled(page, 'Confirmez sur votre téléphone')
    await service.app.services.sandbox?.advanceClock(2 * 60_000)
    await titled(page, 'Le paiement n’a pas abouti')
    expect(await mainOf(page)).toContain('Vous n’avez pas confirmé ce paiement à temps.')
    await page.close()
  })

  test('turns a failed page to the receipt by late money, and shows a reversal', async () => {
    const [once, other] = await Promise.all([link({ amount: 5_000, usage_limit: 1 }), link({ amount: 700 })])
    const [late, back] = await Promise.all([open(`${once}?lang=en`), open(`${other}?lang=en`)])
    const advance = async (ms: number) => service.app.services.sandbox?.advanceClock(ms)
    // Confirmed after 25 hours, one hour after its expiry.
    await send(late, '70 12 00 01')
    await titled(late, 'Confirm on your telephone')
    await advance(24 * hour)
    await titled(late, 'The payment was not completed')
    expect(await mainOf(late)).toContain('Do not pay a second time')
    // Paid, and taken back after 50 seconds.
    await send(back, '70 40 50 01')
    await advance(10_000)
    await titled(back, 'Payment complete')
    await advance(2 * hour)
    await titled(late, 'Payment complete')
    expect(await mainOf(late)).toContain(formatXof(5_000))
    expect((await late.goto(once))?.status()).toBe(410)
    const title = async () => {
      await back.reload()
      return back.locator('h1').textContent()
    }
    await eventually(async () => expect(await title()).toBe('Payment refunded'))
    const receipt = await mainOf(back)
    for (const part of ['refunded to your account', formatXof(700), 'Atelier Sogoniko', 'mp_'])
      expect(receipt).toContain(part)
    await Promise.all([late.close(), back.close()])
  })

  test('says so here when the payer cancels at the page of OperatorB, in the chosen language', async () => {
    const page = await open(await link({ amount: 5_000 }))
    await page.getByRole('link', { name: 'English' }).click()
    await page.waitForURL('**?lang=en')
    await send(page, '70 09 00 01', 'OperatorB')
    await titled(page, 'Finish at OperatorB')
    await page.getByRole('link', { name: 'Continue at OperatorB' }).click()
    await page.locator('button[value=cancel]').click()
    await page.waitForURL(`${service.url}/l/**?lang=en`)
    await titled(page, 'The payment was not completed')
    expect(await page.locator('html').getAttribute('lang')).toBe('en')
    await page.getByRole('link', { name: 'Try again' }).click()
    await send(page, '70 09 00 01', 'OperatorB')
    await page.getByRole('link', { name: 'Continue at OperatorB' }).click()
    await page.locator('#pin').fill('0000')
    await page.locator('button[value=confirm]').click()
    await titled(page, 'Payment complete')
    await page.close()
  })

  test('shows mistakes beside their fields, keeps the typed text, and needs no mouse', async () => {
    const page = await open(await link({ title: 'Don libre' }))
    const { keyboard } = page
    await page.locator('#amount').focus()
    await keyboard.type('50')
    await keyboard.press('Tab')
    await keyboard.type('12 34')
    await keyboard.press('Enter')
    await eventually(async () => expect(await page.title()).toMatch(/^Erreur/))
    expect(await page.locator('#amount-problem').textContent()).toBe(
      `Le montant minimum est de ${formatXof(100)}.`,
    )
    expect(await page.locator('#phone-problem').textContent()).toContain('un numéro mobile du Mali')
    expect(await page.locator('#phone').inputValue()).toBe('12 34')
    expect(await page.evaluate('document.activeElement.id')).toBe('amount')
    await keyboard.press('ControlOrMeta+A')
    await keyboard.type('1 500 F')
    await keyboard.press('Tab')
    await keyboard.press('ControlOrMeta+A')
    await keyboard.type('70000001')
    await keyboard.press('Tab')
    expect(await page.locator('#suggested').textContent()).toBe('OperatorA')
    await keyboard.press('Enter')
    await keyboard.press('Tab')
    await keyboard.press('ArrowDown')
    await keyboard.press('ArrowDown')
    expect(await page.locator('#suggested').textContent()).toBe('OperatorB')
    expect(await page.locator(':checked').getAttribute('value')).toBe('OperatorB')
    await keyboard.press('ArrowUp')
    await keyboard.press('Tab')
    await keyboard.press('Enter')
    await titled(page, 'Paiement effectué')
    expect(await page.locator('.sum').textContent()).toBe(formatXof(1_500))
    await page.close()
  })

  test('is paid without JavaScript as well: the page reloads by itself', async () => {
    const page = await withoutScript(await link({ amount: 5_000 }))
    await send(page, '70 00 02 01')
    await titled(page, 'Confirmez sur votre téléphone')
    expect(await page.locator('meta[http-equiv=refresh]').count()).toBe(1)
    const refresh = page.getByRole('link', { name: 'Actualiser cette page' })
    await service.app.services.sandbox?.advanceClock(10_000)
    await eventually(async () => {
      const title = await page.locator('h1').textContent()
      // Once the payment is complete the link is gone, and a click would wait for it.
      if (title !== 'Paiement effectué') await refresh.click({ timeout: 5_000 }).catch(() => {})
      expect(title).toBe('Paiement effectué')
    })
    expect(await page.locator('#print').isVisible()).toBe(false)
    await page.close()
  })

  test('that takes no payment any more says why; an unknown link says so', async () => {
    const address = await link({ amount: 5_000, usage_limit: 1 })
    const page = await open(`${address}?lang=en`)
    await send(page, '70 00 00 01')
    await titled(page, 'Payment complete')
    expect((await page.goto(`${address}?lang=en`))?.status()).toBe(410)
    await titled(page, 'This link no longer accepts payments')
    expect(await mainOf(page)).toContain('It has received all its payments')
    await page.close()
  })
})
