import type { Dialog, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { passwordBounds } from '../../src/identity/members/passwords.ts'
import { totpCode } from '../../src/identity/members/totp.ts'
import { startTestApp, type TestApp } from '../kit/app.ts'
import { fromBase32 } from '../kit/base32.ts'
import { cannotLook, type TestBrowser } from '../kit/browser.ts'
import { openDashboard, signedIn } from '../kit/dashboard.ts'
import { eventually } from '../kit/eventually.ts'
import { photograph } from '../kit/look.ts'
import { makePerson, type PasswordMember, secondFactor } from '../kit/people.ts'
import { useBounds } from '../kit/use-bounds.ts'

// The security of a person stays clear where an answer is lost, another window was quicker, or the person
// leaves in the middle.

// `passwords.test.ts` tests the cost of a password hash.
useBounds(passwordBounds, { memoryKib: 64, passes: 1 })

let service: TestApp
let browser: TestBrowser

const shopName = 'Pharmacie du Fleuve'
const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).first().click()
const passwordOf = (page: Page) => page.getByLabel('Votre mot de passe')
const status = (page: Page, words: RegExp) => page.getByRole('status').filter({ hasText: words }).waitFor()
const focused = (page: Page) => page.evaluate('document.activeElement.textContent')
async function open(): Promise<{ person: PasswordMember; page: Page }> {
  const shop = await service.merchant(shopName)
  const person = await makePerson(service, shop.merchantId)
  return { person, page: await signedIn(browser, service, person, '/sessions') }
}
/** Goes on until the QR code is shown. @returns the code of the application */
async function scan(page: Page, { password }: PasswordMember): Promise<string> {
  await press(page, 'Activer')
  await passwordOf(page).fill(password)
  await press(page, 'Continuer')
  await page.getByRole('img', { name: 'Code QR' }).waitFor()
  const secret = (await page.locator('code').innerText()).replaceAll(/\s/g, '')
  return totpCode(fromBase32(secret), BigInt(Math.floor(Date.now() / 30_000)))
}
async function showCodes(page: Page, person: PasswordMember): Promise<string[]> {
  await page.getByLabel('Code affiché').fill(await scan(page, person))
  await press(page, 'Confirmer')
  await page.locator('.codes').waitFor()
  return page.locator('.codes code').allInnerTexts()
}
/** Lets the requests of a document reach the service, and loses the first answer. */
async function loseAnswerOf(page: Page, document: string): Promise<void> {
  let isLost = false
  await page.route('**/graphql', async (route) => {
    if (isLost || !route.request().postData()?.includes(document)) return route.fallback()
    isLost = true
    await route.fetch()
    return route.abort()
  })
}
/** Counts the requests of a document. */
function countOf(page: Page, document: string): () => number {
  let count = 0
  page.on('request', (request) => {
    if (request.postData()?.includes(document)) count += 1
  })
  return () => count
}

describe.skipIf(cannotLook)('the security of a person', () => {
  beforeAll(async () => {
    ;({ service, browser } = await openDashboard(() => startTestApp()))
  })
  afterAll(async () => {
    await browser.close()
    await service.close()
  })

  test('a lost answer to the first code comes with the next try, also with another code', async () => {
    const { person, page } = await open()
    const code = await scan(page, person)
    await loseAnswerOf(page, 'ConfirmTotpMutation')
    await page.getByLabel('Code affiché').fill(code)
    await press(page, 'Confirmer')
    await page.getByText(/ne répond pas/).waitFor()
    await page.getByLabel('Code affiché').fill('123 456')
    await press(page, 'Confirmer')
    await page.locator('.codes').waitFor()
    expect(await page.locator('.codes code').count()).toBe(10)
    await page.close()
  })

  test('codes that the other window showed: the page says how to get other ones', async () => {
    const { person, page } = await open()
    const code = await scan(page, person)
    const document = 'mutation ($code: String!) { confirmTotp(code: $code) { __typename } }'
    await service.graphql(document, { code }, person.token)
    await page.getByLabel('Code affiché').fill(code)
    await press(page, 'Confirmer')
    await status(page, /^Activé.*codes de secours.*désactivez/)
    expect(await page.getByLabel('Code affiché').count()).toBe(0)
    expect(await focused(page)).toBe('Désactiver')
    await page.close()
  })

  test('the other window was quicker: the page shows the state as it is now', async () => {
    const { person, page } = await open()
    await press(page, 'Activer')
    const { codes } = await secondFactor(service, person)
    await passwordOf(page).fill(person.password)
    await press(page, 'Continuer')
    await status(page, /^Activé/)
    await press(page, 'Désactiver')
    await passwordOf(page).fill(person.password)
    await page.getByLabel('Un code de l’application').fill(` ${codes[0]?.toLowerCase()} `)
    await loseAnswerOf(page, 'DisableTotpMutation')
    await press(page, 'Désactiver')
    await status(page, /^Désactivé/)
    expect(await passwordOf(page).count()).toBe(0)
    await page.close()
  })

  test('Enter in a field sends nothing while another field is empty', async () => {
    const { person, page } = await open()
    await secondFactor(service, person)
    await page.reload()
    const sent = countOf(page, 'DisableTotpMutation')
    await press(page, 'Désactiver')
    await passwordOf(page).fill(person.password)
    await passwordOf(page).press('Enter')
    await eventually(async () =>
      expect(await page.evaluate('document.activeElement.autocomplete')).toBe('one-time-code'),
    )
    expect(sent()).toBe(0)
    expect(await page.locator('.problem').count()).toBe(0)
    await page.close()
  })

  test('the recovery codes are on paper with the shop and the address, and nothing else is', async () => {
    const { person, page } = await open()
    const codes = await showCodes(page, person)
    await page.emulateMedia({ media: 'print', colorScheme: 'dark' })
    await photograph(page, 'app/security-codes-print')
    const lines = (await page.locator('body').innerText()).split(/\s*\n\s*/).filter((line) => line !== '')
    expect(lines).toEqual([shopName, person.email, ...codes])
    await page.close()
  })

  test('the codes are not left by mistake, and nothing of them stays behind', async () => {
    const { person, page } = await open()
    const codes = await showCodes(page, person)
    expect(await focused(page)).toBe('Vos codes de secours')
    const asked: string[] = []
    page.on('dialog', (dialog: Dialog) => {
      asked.push(dialog.type())
      void dialog.dismiss()
    })
    await page.getByRole('link', { name: 'Équipe' }).click()
    await page.evaluate('void setTimeout(() => location.reload())')
    await eventually(() => Promise.resolve(expect(asked).toEqual(['confirm', 'beforeunload'])))
    expect(await page.locator('.codes code').allInnerTexts()).toEqual(codes)
    await press(page, 'Je les ai gardés')
    await status(page, /^Activé/)
    expect(await focused(page)).toBe('Désactiver')
    const kept = await page.evaluate(
      'JSON.stringify([localStorage, sessionStorage, history.state, location.href, document.body.outerHTML])',
    )
    for (const secret of [...codes, person.password]) expect(kept).not.toContain(secret)
    await page.reload()
    await status(page, /^Activé/)
    expect(asked).toHaveLength(2)
    await page.close()
  })

  test('a changed password ends the other devices on the page too; a lost answer is no riddle', async () => {
    const { person, page } = await open()
    const { merchantId, memberId } = person
    await service.database.owner.query(
      `INSERT INTO session (merchant_id, member_id, expires_at) VALUES ($1, $2, now() + interval '1 hour')`,
      [merchantId, memberId],
    )
    await page.reload()
    const others = page.locator('.rows').getByRole('button')
    await eventually(async () => expect(await others.count()).toBe(1))
    const change = async (next: string) => {
      await page.getByLabel('Nouveau mot de passe').fill(next)
      await press(page, 'Changer')
    }
    await page.getByText('Changer le mot de passe').click()
    await page.getByLabel('Mot de passe actuel').fill(person.password)
    await change('la lune de Kayes 2026')
    await status(page, /^Mot de passe changé/)
    expect(await focused(page)).toBe('Changer le mot de passe')
    await eventually(async () => expect(await others.count()).toBe(0))
    await page.getByText('Changer le mot de passe').click()
    await page.getByLabel('Mot de passe actuel').fill('la lune de Kayes 2026')
    expect(await page.getByText('Mot de passe changé').count()).toBe(0)
    await loseAnswerOf(page, 'ChangePasswordMutation')
    await change('le fleuve de Ségou 2026')
    await page.getByText(/réponse n’est pas arrivée/).waitFor()
    await press(page, 'Changer')
    await page.getByText(/nouveau mot de passe est sans doute déjà en place/).waitFor()
    await page.close()
  })

  test('a session that was ended twice, or without an answer, leaves no problem', async () => {
    const { person, page } = await open()
    const { merchantId, memberId } = person
    await service.database.owner.query(
      `INSERT INTO session (merchant_id, member_id, expires_at)
       SELECT $1, $2, now() + interval '1 hour' FROM generate_series(1, 2)`,
      [merchantId, memberId],
    )
    await page.reload()
    const others = page.locator('.rows').getByRole('button')
    await eventually(async () => expect(await others.count()).toBe(2))
    await others.first().dblclick({ delay: 0 })
    await eventually(async () => expect(await others.count()).toBe(1))
    expect(await focused(page)).toBe('Mes connexions')
    await loseAnswerOf(page, 'RevokeSessionMutation')
    await others.first().click()
    await eventually(async () => expect(await others.count()).toBe(0))
    expect(await page.locator('.problem').allInnerTexts()).toEqual([])
    await page.close()
  })

  test('a password manager finds the address of the person beside each password', async () => {
    const { person, page } = await open()
    await press(page, 'Activer')
    await page.getByText('Changer le mot de passe').click()
    const names = page.locator('form:has([autocomplete$="password"]) [autocomplete="username"]')
    await page.getByLabel('Nouveau mot de passe').waitFor()
    const addresses = await Promise.all((await names.all()).map((field) => field.inputValue()))
    expect(addresses).toEqual([person.email, person.email])
    await page.close()
  })
})
