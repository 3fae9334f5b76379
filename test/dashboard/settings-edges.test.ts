import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { passwordBounds } from '../../src/identity/members/passwords.ts'
import { startTestApp, type TestApp, type TestMerchant } from '../kit/app.ts'
import { cannotLook, type TestBrowser } from '../kit/browser.ts'
import { openDashboard, signedIn } from '../kit/dashboard.ts'
import { eventually } from '../kit/eventually.ts'
import { makePerson, type PasswordMember } from '../kit/people.ts'
import { useBounds } from '../kit/use-bounds.ts'

// Settings that two windows change, hidden fields, and rules that wait for an approval.

// `passwords.test.ts` tests the cost of a password hash.
useBounds(passwordBounds, { memoryKib: 64, passes: 1 })

let service: TestApp
let browser: TestBrowser

async function shopOf(): Promise<{ shop: TestMerchant; owner: PasswordMember }> {
  const shop = await service.merchant('Pharmacie du Fleuve')
  return { shop, owner: await makePerson(service, shop.merchantId, { name: 'Awa Traoré' }) }
}
const openPage = (person: PasswordMember) => signedIn(browser, service, person, '/settings')
const card = (page: Page, title: string) =>
  page.locator('.card', { has: page.getByRole('heading', { name: title, exact: true }) })
/** Saves a form and waits for its answer. */
const save = async (page: Page, title: string, words: string | RegExp = 'Enregistré.') => {
  await card(page, title).getByRole('button', { name: 'Enregistrer' }).click()
  await card(page, title).getByText(words).waitFor({ timeout: 8_000 })
}
const put = ({ token }: { token: string }, body: object) => service.rest('PUT', '/settings', { token, body })
const settingsOf = async ({ token }: { token: string }) =>
  (await service.rest('GET', '/settings', { token })).body['data']

describe.skipIf(cannotLook)('edges of the settings', () => {
  beforeAll(async () => {
    ;({ service, browser } = await openDashboard(() => startTestApp()))
    browser.context.setDefaultTimeout(10_000)
  })
  afterAll(async () => {
    await browser.close()
    await service.close()
  })

  test('a second saving does not undo what another window changed before the first', async () => {
    const { shop, owner } = await shopOf()
    const page = await openPage(owner)
    await card(page, 'Commerce').waitFor()
    await put(owner, { business_name: 'Pharmacie du Marché' })
    await page.getByLabel('E-mail pour les messages').fill('awa@shop.test')
    await save(page, 'Commerce')
    await page.getByLabel('E-mail pour les messages').fill('')
    await save(page, 'Commerce')
    await eventually(async () =>
      expect(await settingsOf(shop)).toMatchObject({
        business_name: 'Pharmacie du Marché',
        notification_email: null,
      }),
    )
    await page.close()
  })

  test('a new name is in the frame of the page at once', async () => {
    const { owner } = await shopOf()
    const page = await openPage(owner)
    await card(page, 'Commerce').getByLabel('Nom').fill('Pharmacie du Marché')
    await save(page, 'Commerce')
    await page.locator('header').getByText('Pharmacie du Marché').waitFor({ timeout: 5_000 })
    expect(await page.title()).toContain('Pharmacie du Marché')
    await page.close()
  })

  test('a time zone with half hours is refused in words, and the language of the page stays', async () => {
    const { shop, owner } = await shopOf()
    const page = await openPage(owner)
    await page.getByLabel('Fuseau horaire').selectOption('Australia/Adelaide')
    await save(page, 'Commerce', 'doit être d’heures entières')
    await page.getByLabel('Fuseau horaire').selectOption('Africa/Lagos')
    await page.getByLabel('Langue des e-mails').selectOption('EN')
    await save(page, 'Commerce')
    expect(await settingsOf(shop)).toMatchObject({ locale: 'en', time_zone: 'Africa/Lagos' })
    await page.close()
  })

  test('a wrong amount does not stand in the way of rules that are switched off', async () => {
    const { shop, owner } = await shopOf()
    const page = await openPage(owner)
    const isOn = page.getByLabel('Les versements et les paies demandent')
    await isOn.check()
    await page.getByLabel('À partir de ce montant').fill('mille')
    await isOn.uncheck()
    await save(page, 'Approbations')
    expect(await settingsOf(shop)).toMatchObject({ payouts_require_approval: false })
    await page.close()
  })

  test('a stricter rule applies at once while a less strict one waits, and each is said', async () => {
    const { shop, owner } = await shopOf()
    await makePerson(service, shop.merchantId, { role: 'finance' })
    await put(owner, { payouts_require_approval: true, approval_threshold: 25_000 })
    const page = await openPage(owner)
    await page.getByLabel('À partir de ce montant').fill('90000')
    await save(page, 'Approbations', 'Demandé : le changement attend')
    await page.reload()
    await page.getByText('les règles d’avant valent encore').waitFor()
    expect(await page.getByLabel('À partir de ce montant').inputValue()).toBe('25000')
    await page.getByLabel('Les dépôts et les remboursements aussi').check()
    await save(page, 'Approbations')
    expect(await settingsOf(shop)).toMatchObject({
      approvals_cover_deposits: true,
      approval_threshold: 25_000,
    })
    await page.getByLabel('À partir de ce montant').fill('95000')
    await save(page, 'Approbations', 'Un autre changement attend déjà une approbation')
    await page.close()
  })
})
