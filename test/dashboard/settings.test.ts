import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { passwordBounds } from '../../src/identity/members/passwords.ts'
import { startTestApp, type TestApp, type TestMerchant } from '../kit/app.ts'
import { cannotLook, type TestBrowser } from '../kit/browser.ts'
import { openDashboard, signedIn } from '../kit/dashboard.ts'
import { makePerson, type PasswordMember } from '../kit/people.ts'
import { useBounds } from '../kit/use-bounds.ts'

// An owner changes the settings of the account: each form writes only what was changed in it.

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
const save = (page: Page, title: string) =>
  card(page, title).getByRole('button', { name: 'Enregistrer' }).click()
const put = ({ token }: { token: string }, body: object) => service.rest('PUT', '/settings', { token, body })
const settingsOf = async ({ token }: { token: string }) =>
  (await service.rest('GET', '/settings', { token })).body['data']

describe.skipIf(cannotLook)('the settings', () => {
  beforeAll(async () => {
    ;({ service, browser } = await openDashboard(() => startTestApp()))
  })
  afterAll(async () => {
    await browser.close()
    await service.close()
  })

  test('only what was changed in a form is written', async () => {
    const { shop, owner } = await shopOf()
    const page = await openPage(owner)
    await card(page, 'Commerce').getByLabel('E-mail pour les messages').fill('awa')
    await save(page, 'Commerce')
    await page.getByText('Écrivez une adresse e-mail complète, ou rien.').waitFor()
    // Another window changes the name meanwhile.
    await put(owner, { business_name: 'Pharmacie du Marché' })
    await card(page, 'Commerce').getByLabel('E-mail pour les messages').fill('awa@shop.test')
    await save(page, 'Commerce')
    await page.getByText('Enregistré.').waitFor()
    expect(await settingsOf(shop)).toMatchObject({
      business_name: 'Pharmacie du Marché',
      notification_email: 'awa@shop.test',
    })
    await page.close()
  })

  test('the telephone number and the address of the shop are what a payer reads', async () => {
    const { shop, owner } = await shopOf()
    const page = await openPage(owner)
    await card(page, 'Commerce').getByLabel('Téléphone').fill('76 12')
    await save(page, 'Commerce')
    await page.getByText('Écrivez un numéro complet, par exemple 76 12 34 56, ou rien.').waitFor()
    await card(page, 'Commerce').getByLabel('Téléphone').fill('76 12 34 56')
    await card(page, 'Commerce').getByLabel('Adresse (facultatif)').fill('Rue 12, Bamako')
    await save(page, 'Commerce')
    await page.getByText('Enregistré.').waitFor()
    const kept = { business_phone: '+22376123456', business_address: 'Rue 12, Bamako' }
    expect(await settingsOf(shop)).toMatchObject(kept)
    await page.close()
    // The form that shows the number as people read it writes nothing that was not changed.
    const again = await openPage(owner)
    expect(await again.getByLabel('Téléphone').inputValue()).toBe('76 12 34 56')
    await put(owner, { business_phone: '+33142685300' })
    await card(again, 'Commerce').getByLabel('Adresse (facultatif)').fill('')
    await save(again, 'Commerce')
    await again.getByText('Enregistré.').waitFor()
    expect(await settingsOf(shop)).toMatchObject({ business_phone: '+33142685300', business_address: null })
    await again.close()
  })

  test('approvals warn a team that is too small, and a less strict rule waits for approval', async () => {
    const { shop, owner } = await shopOf()
    const page = await openPage(owner)
    await page.getByLabel('Les versements et les paies demandent').check()
    await page.getByText('Invitez d’abord une personne').waitFor()
    await page.close()
    await makePerson(service, shop.merchantId, { role: 'finance' })
    const again = await openPage(owner)
    await again.getByLabel('Les versements et les paies demandent').check()
    await again.getByLabel('À partir de ce montant').fill('25 000')
    expect(await again.getByText('Invitez d’abord une personne').count()).toBe(0)
    await save(again, 'Approbations')
    await again.getByText('Enregistré.').waitFor()
    expect(await settingsOf(shop)).toMatchObject({
      payouts_require_approval: true,
      approval_threshold: 25_000,
      approvals_required: 1,
    })
    await again.getByLabel('À partir de ce montant').fill('90000')
    await save(again, 'Approbations')
    await again.getByText('Demandé : le changement attend une approbation.').waitFor()
    expect(await settingsOf(shop)).toMatchObject({ approval_threshold: 25_000 })
    await again.close()
  })

  test('a whitelist without the address of the person is refused, and one with it is kept', async () => {
    const { shop, owner } = await shopOf()
    const page = await openPage(owner)
    await page.getByLabel('Adresses', { exact: true }).fill('10.0.0.1')
    await save(page, 'Adresses autorisées')
    await page.getByText('ou la vôtre manque').waitFor()
    await page.getByLabel('Adresses', { exact: true }).fill('10.0.0.1\n127.0.0.0/8')
    await save(page, 'Adresses autorisées')
    await page.getByText('Enregistré.').waitFor()
    expect((await settingsOf(shop)).ip_whitelist).toEqual(['10.0.0.1', '127.0.0.0/8'])
    await page.close()
  })

  test('a member of the finances sees no settings', async () => {
    const { shop } = await shopOf()
    const clerk = await makePerson(service, shop.merchantId, { role: 'finance' })
    const page = await openPage(clerk)
    await page.getByText('Votre rôle ne permet pas de voir les réglages.').waitFor()
    expect(await page.locator('form').count()).toBe(0)
    await page.close()
  })
})
