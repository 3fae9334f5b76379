import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { totpCode } from '../../src/identity/members/totp.ts'
import { passwordBounds } from '../../src/identity/members/passwords.ts'
import { startTestApp, type TestApp } from '../kit/app.ts'
import { fromBase32 } from '../kit/base32.ts'
import { cannotLook, type TestBrowser } from '../kit/browser.ts'
import { openDashboard, signedIn } from '../kit/dashboard.ts'
import { makePerson, type PasswordMember } from '../kit/people.ts'
import { useBounds } from '../kit/use-bounds.ts'

// A person switches the second factor on and off, and changes the password.

// `passwords.test.ts` tests the cost of a password hash.
useBounds(passwordBounds, { memoryKib: 64, passes: 1 })

let service: TestApp
let browser: TestBrowser

const openPage = (person: PasswordMember) => signedIn(browser, service, person, '/sessions')
const press = (page: Page, name: string | RegExp) =>
  page.getByRole('button', { name, exact: true }).first().click()
/** A person waits a second after a wrong password, which a test need not. */
const forgetWaits = () => service.database.owner.query('TRUNCATE sign_in_wait')
async function ownerOf(): Promise<PasswordMember> {
  const shop = await service.merchant('Pharmacie du Fleuve')
  return makePerson(service, shop.merchantId)
}

describe.skipIf(cannotLook)('the security of a person', () => {
  beforeAll(async () => {
    ;({ service, browser } = await openDashboard(() => startTestApp()))
  })
  afterAll(async () => {
    await browser.close()
    await service.close()
  })

  test('the second factor is switched on with a code, and off with a recovery code', async () => {
    const person = await ownerOf()
    const page = await openPage(person)
    await press(page, 'Activer')
    await page.getByLabel('Votre mot de passe').fill('faux mot de passe')
    await press(page, 'Continuer')
    await page.getByText('Ce mot de passe est incorrect.').waitFor()
    await forgetWaits()
    await page.getByLabel('Votre mot de passe').fill(person.password)
    await press(page, 'Continuer')
    await page.getByRole('img', { name: 'Code QR' }).waitFor()
    const secret = (await page.locator('code').innerText()).replaceAll(/\s/g, '')
    await page.getByLabel('Code affiché').fill('000000')
    await press(page, 'Confirmer')
    await page.getByText('Ce code est incorrect ou a déjà servi.').waitFor()
    await forgetWaits()
    const code = totpCode(fromBase32(secret), BigInt(Math.floor(Date.now() / 30_000)))
    await page.getByLabel('Code affiché').fill(code)
    await press(page, 'Confirmer')
    await page.getByText('Vos codes de secours').waitFor()
    const codes = await page.locator('.codes code').allInnerTexts()
    expect(new Set(codes).size).toBeGreaterThanOrEqual(8)
    await press(page, 'Je les ai gardés')
    await page.getByText('Activé : vous vous connectez avec un code.').waitFor()
    expect(await page.locator('.codes').count()).toBe(0)
    await press(page, 'Désactiver')
    await page.getByLabel('Votre mot de passe').fill(person.password)
    await page.getByLabel('Un code de l’application').fill(codes[0] ?? '')
    await press(page, 'Désactiver')
    await page.getByText('Désactivé.').waitFor()
    const { body } = await service.graphql('{ me { member { hasSecondFactor } } }', {}, person.token)
    expect(body['data'].me.member.hasSecondFactor).toBe(false)
    await page.close()
  })

  test('the password is changed with the present one, and a weak one is refused', async () => {
    const person = await ownerOf()
    const page = await openPage(person)
    await page.getByText('Changer le mot de passe').click()
    await page.getByLabel('Mot de passe actuel').fill('faux mot de passe')
    await page.getByLabel('Nouveau mot de passe').fill('la lune de Kayes 2026')
    await press(page, 'Changer')
    await page.getByText('Le mot de passe actuel est incorrect.').waitFor()
    await forgetWaits()
    await page.getByLabel('Mot de passe actuel').fill(person.password)
    await page.getByLabel('Nouveau mot de passe').fill('court')
    await press(page, 'Changer')
    await page.getByText('Trop court, ou trop facile à deviner.').waitFor()
    await page.getByLabel('Nouveau mot de passe').fill('la lune de Kayes 2026')
    await press(page, 'Changer')
    await page.getByText('Mot de passe changé.').waitFor()
    expect(await page.getByLabel('Mot de passe actuel').count()).toBe(0)
    await page.close()
  })
})
