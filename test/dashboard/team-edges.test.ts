import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { passwordBounds } from '../../src/identity/members/passwords.ts'
import { startTestApp, type TestApp, type TestMerchant } from '../kit/app.ts'
import { cannotLook, type TestBrowser } from '../kit/browser.ts'
import { openDashboard, signedIn } from '../kit/dashboard.ts'
import { makePerson, type PasswordMember } from '../kit/people.ts'
import { useBounds } from '../kit/use-bounds.ts'

// The team where something comes between: another window, a lost answer, a wrong press, people who left.

// `passwords.test.ts` tests the cost of a password hash.
useBounds(passwordBounds, { memoryKib: 64, passes: 1 })

let service: TestApp
let browser: TestBrowser

async function shopOf(): Promise<{ shop: TestMerchant; owner: PasswordMember }> {
  const shop = await service.merchant('Pharmacie du Fleuve')
  return { shop, owner: await makePerson(service, shop.merchantId, { name: 'Awa Traoré' }) }
}
const openPage = (person: PasswordMember, path: string) => signedIn(browser, service, person, path)
const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).first()
/** Runs a mutation as a person in another window. */
const elsewhere = async ({ token }: PasswordMember, mutation: string) => {
  const { body } = await service.graphql(`mutation { ${mutation} { __typename } }`, {}, token)
  expect(JSON.stringify(body)).not.toMatch(/Error"|errors/)
}
/** Opens the second look of a button. @returns its words */
async function secondLook(page: Page, name: string): Promise<string> {
  await button(page, name).click()
  return page.getByRole('dialog').innerText()
}
const invite = (owner: PasswordMember, email: string) =>
  elsewhere(owner, `inviteMember(input: { name: "Ali Koné", email: "${email}", role: VIEWER })`)
const confirm = async (page: Page, name: string) => {
  await button(page, name).click()
  await page.getByRole('dialog').getByRole('button', { name, exact: true }).click()
}
/** Loses the answers to mutations: the service makes the changes, the page does not learn of them. */
const loseAnswers = (page: Page) =>
  page.route('**/graphql', async (route) => {
    if (!(route.request().postData() ?? '').includes('"mutation ')) return route.continue()
    await route.fetch()
    return route.abort()
  })
const focused = (page: Page) => page.evaluate('document.activeElement.textContent')

describe.skipIf(cannotLook)('the team, where something comes between', () => {
  beforeAll(async () => {
    ;({ service, browser } = await openDashboard(() => startTestApp()))
  })
  afterAll(async () => {
    await browser.close()
    await service.close()
  })

  test('an address of the team is refused in words; the focus stays with an invitation', async () => {
    const { owner } = await shopOf()
    const page = await openPage(owner, '/team')
    await page.getByText('Inviter une personne').click()
    await page.getByLabel('Nom').fill('Awa')
    await page.getByLabel('Adresse e-mail').fill(owner.email)
    await button(page, 'Envoyer l’invitation').click()
    await page.getByText('Cette adresse est déjà dans l’équipe').waitFor()
    await page.getByLabel('Adresse e-mail').fill('fanta@shop.test')
    await page.keyboard.press('Enter')
    await page.getByText('Invitation envoyée à fanta@shop.test.').waitFor()
    await page.getByRole('link', { name: 'Awa', exact: true }).waitFor()
    expect(await focused(page)).toBe('Invitation envoyée à fanta@shop.test.')
    await page.close()
  })

  test('a role that was changed in another window is the one that the page shows', async () => {
    const { shop, owner } = await shopOf()
    const clerk = await makePerson(service, shop.merchantId, { role: 'viewer', name: 'Moussa Keïta' })
    const page = await openPage(owner, `/team/${clerk.memberId}`)
    await page.getByRole('combobox').waitFor()
    await page.getByText('Toute l’équipe').click()
    await elsewhere(owner, `changeMemberRole(id: ${clerk.memberId}, role: FINANCE)`)
    await page.getByRole('link', { name: 'Moussa Keïta' }).click()
    await page.getByText('Encaisse, paie et approuve.').first().waitFor()
    expect(await page.getByRole('combobox').inputValue()).toBe('FINANCE')
    expect(await page.getByRole('button', { name: 'Changer le rôle' }).count()).toBe(0)
    await page.getByRole('combobox').selectOption('ADMIN')
    await confirm(page, 'Changer le rôle')
    await page.getByText('Rôle changé.').waitFor()
    await page.getByRole('button', { name: 'Changer le rôle' }).waitFor({ state: 'detached' })
    expect(await focused(page)).toBe('Rôle changé.')
    await page.close()
  })

  test('a removal names the programs that stop, and the list says who left', async () => {
    const { shop, owner } = await shopOf()
    const admin = await makePerson(service, shop.merchantId, { role: 'admin', name: 'Moussa Keïta' })
    await elsewhere(admin, 'createApiKey(input: { name: "Caisse du marché", scopes: [PAY] })')
    const page = await openPage(owner, `/team/${admin.memberId}`)
    await page.getByText('Caisse du marché').first().waitFor({ state: 'attached' })
    await page.getByRole('combobox').selectOption('VIEWER')
    expect(await secondLook(page, 'Changer le rôle')).toContain('Caisse du marché')
    await page.keyboard.press('Escape')
    expect(await secondLook(page, 'Retirer de l’équipe')).toMatch(/s’arrêtent.*: Caisse du marché/)
    await page.getByRole('dialog').getByRole('button', { name: 'Retirer de l’équipe' }).click()
    await page.getByText('Moussa Keïta n’est plus dans l’équipe.').waitFor()
    await page.close()
  })

  test('a second look fits an invited person, and oneself', async () => {
    const { shop, owner } = await shopOf()
    await makePerson(service, shop.merchantId)
    await invite(owner, 'ali@shop.test')
    const page = await openPage(owner, '/team')
    await page.getByRole('link', { name: 'Ali Koné' }).click()
    expect(await secondLook(page, 'Retirer de l’équipe')).toContain(
      'Le lien de son invitation ne marche plus',
    )
    await page.keyboard.press('Escape')
    await page.getByRole('combobox').selectOption('FINANCE')
    expect(await secondLook(page, 'Changer le rôle')).not.toContain('connexions')
    await page.keyboard.press('Escape')
    await page.goto(`${service.url}/app/team/${owner.memberId}`)
    expect(await secondLook(page, 'Retirer de l’équipe')).toContain('Vous vous retirez vous-même')
    await page.keyboard.press('Escape')
    await page.getByRole('combobox').selectOption('VIEWER')
    expect(await secondLook(page, 'Changer le rôle')).toContain('Vous ne pourrez pas le reprendre')
    await page.keyboard.press('Escape')
    expect(await page.locator('main').innerText()).not.toContain('demandez-lui')
    await page.close()
  })

  test('a change whose answer was lost shows what became of it', async () => {
    const { shop, owner } = await shopOf()
    const clerk = await makePerson(service, shop.merchantId, { role: 'viewer', name: 'Moussa Keïta' })
    const page = await openPage(owner, `/team/${clerk.memberId}`)
    await loseAnswers(page)
    await page.getByRole('combobox').selectOption('FINANCE')
    await confirm(page, 'Changer le rôle')
    await page.getByText('Encaisse, paie et approuve.').nth(1).waitFor()
    await page.getByRole('button', { name: 'Changer le rôle' }).waitFor({ state: 'detached' })
    await page.waitForLoadState('networkidle')
    expect(await page.locator('.problem').count()).toBe(0)
    await confirm(page, 'Retirer de l’équipe')
    await page.getByText('Cette personne n’est pas dans l’équipe.').waitFor()
    await page.close()
  })

  test('a person who gives up a right or leaves comes to the sign-in', async () => {
    const { shop, owner } = await shopOf()
    const second = await makePerson(service, shop.merchantId)
    for (const [person, name] of [
      [owner, 'Changer le rôle'],
      [await makePerson(service, shop.merchantId), 'Retirer de l’équipe'],
    ] as const) {
      const page = await openPage(person, `/team/${person.memberId}`)
      await page.getByRole('combobox').selectOption('VIEWER')
      await confirm(page, name)
      await page.getByText('Votre session est terminée.').waitFor()
      await page.close()
    }
    const page = await openPage(second, '/team')
    await page.getByText('lecture seule').waitFor()
    expect(await page.locator('.rows li').count()).toBe(2)
    await page.close()
  })

  test('a person without the right reads one plain sentence at every address of the team', async () => {
    const { shop, owner } = await shopOf()
    const clerk = await makePerson(service, shop.merchantId, { role: 'finance' })
    for (const path of ['/team', '/team/log', `/team/${owner.memberId}`]) {
      const page = await openPage(clerk, path)
      await page.getByText('Votre rôle ne permet pas de voir cette page.').waitFor()
      expect(await page.locator('main').getByRole('button').count()).toBe(0)
      expect(await page.locator('main').innerText()).not.toContain('assistance')
      await page.close()
    }
  })
})
