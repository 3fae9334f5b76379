import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { passwordBounds } from '../../src/identity/members/passwords.ts'
import { startTestApp, type TestApp, type TestMerchant } from '../kit/app.ts'
import { cannotLook, type TestBrowser } from '../kit/browser.ts'
import { openDashboard, signedIn } from '../kit/dashboard.ts'
import { eventually } from '../kit/eventually.ts'
import { expectAccessible } from '../kit/look.ts'
import { makePerson, type PasswordMember } from '../kit/people.ts'
import {
  addLines,
  addMoney,
  linesOn,
  monthBefore,
  moveMoney,
  operationsOn,
  sumsOn,
} from '../kit/statements.ts'
import { useBounds } from '../kit/use-bounds.ts'

// The statement of a month with a keyboard alone, in haste, and on a bad network.

// `passwords.test.ts` tests the cost of a password hash.
useBounds(passwordBounds, { memoryKib: 64, passes: 1 })

let service: TestApp
let browser: TestBrowser

async function shopOf(): Promise<{ shop: TestMerchant; owner: PasswordMember }> {
  const shop = await service.merchant('Boulangerie du Sahel')
  return { shop, owner: await makePerson(service, shop.merchantId) }
}
const openPage = (person: PasswordMember, query = '') =>
  signedIn(browser, service, person, `/statement${query}`)
const nameOf = (month: string) =>
  new Intl.DateTimeFormat('fr', { month: 'long', year: 'numeric', timeZone: 'UTC' }).format(
    new Date(`${month}-01`),
  )
const shows = (page: Page, month: string) =>
  page.getByRole('heading', { name: `Relevé : ${nameOf(month)}`, exact: true }).waitFor()
const focused = (page: Page) =>
  page.evaluate<string>(
    `document.activeElement.tagName + ' ' + document.activeElement.innerText.slice(0, 20)`,
  )

describe.skipIf(cannotLook)('the statement in use', () => {
  beforeAll(async () => {
    ;({ service, browser } = await openDashboard(() => startTestApp()))
  })
  afterAll(async () => {
    await browser.close()
    await service.close()
  })

  test('a keyboard reaches everything, and its focus is never lost', async () => {
    const { shop, owner } = await shopOf()
    await addLines(service, shop, 150)
    const page = await openPage(owner, `?month=${monthBefore(1)}`)
    const more = page.getByRole('button', { name: 'Afficher la suite' })
    await more.waitFor()
    await page.getByLabel('Mois', { exact: true }).focus()
    const reached = []
    for (let presses = 0; presses < 5; presses += 1) {
      await page.keyboard.press('Tab')
      reached.push((await focused(page)).replaceAll(/\s/g, ' '))
    }
    expect(reached).toEqual([
      'A ‹ Mois précédent',
      'A Mois suivant ›',
      'BUTTON Imprimer',
      'A Télécharger (CSV)',
      'BUTTON Afficher la suite',
    ])
    await page.keyboard.press('Enter')
    await eventually(async () => expect(await linesOn(page)).toHaveLength(150))
    expect(await more.count()).toBe(0)
    expect(await focused(page)).toMatch(/^TR /)
    expect(await page.evaluate('document.activeElement.matches("tr:nth-child(101)")')).toBe(true)
    await expectAccessible(page)
    await page.getByRole('link', { name: 'Mois suivant' }).press('Enter')
    await shows(page, monthBefore(0))
    await eventually(async () => expect(await focused(page)).toMatch(/^MAIN /))
    await page.close()
  })

  test('more lines that were asked for while the figures are read anew come', async () => {
    const { shop, owner } = await shopOf()
    const amounts = Array.from({ length: 150 }, (_, index) => 1_000 + index)
    await addMoney(service, shop, `${monthBefore(0)}-01T00:00:00Z`, amounts)
    const page = await openPage(owner)
    const more = page.getByRole('button', { name: 'Afficher la suite' })
    await more.waitFor()
    let go = () => {}
    const held = new Promise<void>((resolve) => (go = resolve))
    const isHeld = new Promise<void>((resolve) => {
      void page.route('**/graphql', async (route) => {
        const body = route.request().postData() ?? ''
        if (body.includes('StatementQuery') && body.includes('"first":1,')) {
          resolve()
          await held
        }
        await route.continue()
      })
    })
    await addMoney(service, shop, `${monthBefore(0)}-01T00:00:01Z`, [77])
    const pay = { amount: 5_000, customer_phone: '+22370000000', payment_method: 'OperatorA' }
    await service.rest('POST', '/pay', { token: shop.token, body: pay })
    await isHeld
    await page.locator('.lines + button').press('Enter')
    go()
    await eventually(async () => expect((await linesOn(page)).length).toBeGreaterThan(150))
    await page.close()
  })

  test('months in haste end at the last one, also where another answers later', async () => {
    const { shop, owner } = await shopOf()
    await addMoney(service, shop, `${monthBefore(3)}-10T12:00:00Z`, [1_000])
    const page = await openPage(owner)
    await sumsOn(page)
    let count = 0
    await page.route('**/graphql', async (route) => {
      if (!route.request().postData()?.includes('StatementQuery')) return route.continue()
      count += 1
      const response = await route.fetch()
      await new Promise((resolve) => setTimeout(resolve, Math.max(0, 1_500 - count * 120)))
      return route.fulfill({ response }).catch(() => {})
    })
    for (let presses = 0; presses < 10; presses += 1) await page.getByText('Mois précédent').click()
    for (let presses = 0; presses < 7; presses += 1) await page.getByText('Mois suivant').click()
    await shows(page, monthBefore(3))
    expect(await sumsOn(page)).toContain('Entrées 1 000 F CFA')
    await page.waitForTimeout(2_000)
    expect(await sumsOn(page)).toContain('Entrées 1 000 F CFA')
    expect(count).toBeGreaterThanOrEqual(10)
    await page.close()
  })

  test.for(['2026-13', '2026-1', '999999-01', '2999-01', '2019-12', ''])(
    'months that are none, or lie ahead, are the running one: %s',
    async (month) => {
      const { owner } = await shopOf()
      const page = await openPage(owner, `?month=${month}&month=2026-01`)
      await shows(page, monthBefore(0))
      expect(await sumsOn(page)).toContain('= Solde à ce moment 0 F CFA')
      expect(await page.getByLabel('Mois', { exact: true }).inputValue()).toBe(monthBefore(0))
      await page.close()
    },
  )

  test('a month that could not be read comes by the keyboard, and the focus stays in the page', async () => {
    const { shop, owner } = await shopOf()
    await addMoney(service, shop, `${monthBefore(1)}-10T12:00:00Z`, [1_000])
    const page = await openPage(owner)
    await sumsOn(page)
    let isOffline = true
    await page.route('**/graphql', (route) => {
      const isStatement = route.request().postData()?.includes('StatementQuery')
      return isOffline && isStatement ? route.abort() : route.continue()
    })
    await page.getByRole('link', { name: 'Mois précédent' }).press('Enter')
    const retry = page.getByRole('alert').getByRole('button')
    await retry.waitFor()
    await expectAccessible(page)
    await retry.focus()
    isOffline = false
    await retry.press('Enter')
    expect(await sumsOn(page)).toContain('Entrées 1 000 F CFA')
    await eventually(async () => expect(await focused(page)).toMatch(/^MAIN /))
    await page.close()
  })

  test('a print that breaks off says so, and works when the network is back', async () => {
    const { shop, owner } = await shopOf()
    await addLines(service, shop, 250)
    const page = await openPage(owner, `?month=${monthBefore(1)}`)
    const button = page.getByRole('button', { name: 'Imprimer' })
    await button.waitFor()
    await page.evaluate(`window.papers = []
      window.print = () => {
        dispatchEvent(new Event('beforeprint'))
        window.papers.push(document.title + ' ' + document.querySelectorAll('.lines tbody tr').length)
        dispatchEvent(new Event('afterprint'))
      }`)
    let reads = 0
    let isOffline = true
    await page.route('**/graphql', (route) => {
      if (!route.request().postData()?.includes('StatementQuery')) return route.continue()
      reads += 1
      return isOffline && reads > 1 ? route.abort() : route.continue()
    })
    await button.press('Enter')
    await page.getByText('Toutes les lignes n’ont pas pu être lues. Réessayez.').waitFor()
    await expectAccessible(page)
    expect(await page.evaluate('window.papers')).toEqual([])
    isOffline = false
    await button.press('Enter')
    const paper = `Relevé ${nameOf(monthBefore(1))} · Boulangerie du Sahel 250`
    await eventually(async () => expect(await page.evaluate('window.papers')).toEqual([paper]))
    await button.press('Enter')
    await eventually(async () => expect(await page.evaluate('window.papers')).toEqual([paper, paper]))
    expect(await page.title()).toBe('Relevé · Boulangerie du Sahel')
    expect(await focused(page)).toBe('BUTTON Imprimer')
    await page.close()
  })

  test('a refund shows the reference of its payment, and a payout leads to its page', async () => {
    const { shop, owner } = await shopOf()
    await moveMoney(service, shop)
    const page = await openPage(owner)
    await sumsOn(page)
    const operations = await operationsOn(page)
    expect(operations.filter((text) => text.startsWith('Remboursement'))).toEqual([
      expect.stringMatching(/^Remboursement 70 00 .* · vente-7$/),
    ])
    await page.getByRole('link', { name: 'Versement', exact: true }).click()
    await page.getByText('loyer').waitFor()
    expect(new URL(page.url()).pathname).toMatch(/^\/app\/payouts\/\d+$/)
    await page.close()
  })

  test('a month that ends while the page is open stays the month of its figures', async () => {
    const { shop, owner } = await shopOf()
    await addMoney(service, shop, `${monthBefore(0)}-01T00:00:00Z`, [9_000])
    const page = await openPage(owner)
    await sumsOn(page)
    await page.clock.install()
    await page.clock.setFixedTime(new Date(`${monthBefore(-1)}-01T00:00:05Z`))
    const pay = { amount: 5_000, customer_phone: '+22370000000', payment_method: 'OperatorA' }
    await service.rest('POST', '/pay', { token: shop.token, body: pay })
    await page.waitForTimeout(3_000)
    expect(await page.locator('h1').innerText()).toContain(nameOf(monthBefore(0)))
    expect(await sumsOn(page)).toMatch(/Entrées (9|14) 000 F CFA/)
    await page.close()
  })
})
