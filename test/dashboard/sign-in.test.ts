import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { passwordBounds } from '../../src/identity/members/passwords.ts'
import { deactivateMerchant } from '../../src/resources/merchants/deactivate.ts'
import { fundMerchant } from '../../src/resources/merchants/fund.ts'
import { offerSandboxSignIn } from '../../src/resources/team/sandbox-sign-in.ts'
import { startTestApp, type TestApp, type TestMerchant } from '../kit/app.ts'
import { cannotLook, type TestBrowser } from '../kit/browser.ts'
import { openDashboard, typeCredentials, visit } from '../kit/dashboard.ts'
import { eventually } from '../kit/eventually.ts'
import { customer } from '../kit/fixture.ts'
import { makePerson, type PasswordMember, secondFactor } from '../kit/people.ts'
import { useBounds } from '../kit/use-bounds.ts'

// A person signs in and out, in real Chromium on a small telephone.

// `passwords.test.ts` tests the cost of a password hash.
useBounds(passwordBounds, { memoryKib: 64, passes: 1 })

let service: TestApp
let browser: TestBrowser
let shop: TestMerchant

const forgive = () => service.database.owner.query('TRUNCATE sign_in_wait')
const shows = async (page: Page, name: string) => {
  await page.getByRole('heading', { name, exact: true }).waitFor()
  return true
}
const isHome = (page: Page) => shows(page, 'Disponible')
const isSignIn = (page: Page) => shows(page, 'Connexion')
/** Signs a person in by the form, as a stranger does. */
async function signedIn(person: PasswordMember): Promise<Page> {
  const page = await visit(browser, `${service.url}/app`)
  await typeCredentials(page, person)
  await isHome(page)
  return page
}
const openMenu = (page: Page) => page.locator('.menu > summary').click()

describe.skipIf(cannotLook)('signing in', () => {
  beforeAll(async () => {
    ;({ service, browser } = await openDashboard(() => startTestApp()))
    shop = await service.merchant('Épicerie de Médine')
  })
  afterAll(async () => {
    await browser.close()
    await service.close()
  })

  test('a mistake is shown beside its field; the right password opens the first screen', async () => {
    const person = await makePerson(service, shop.merchantId, { name: 'Awa Traoré' })
    const page = await visit(browser, `${service.url}/app`)
    await page.getByRole('button', { name: 'Se connecter' }).click()
    await page.getByText('Écrivez votre adresse e-mail et votre mot de passe.').waitFor()
    await typeCredentials(page, { ...person, password: 'la lune de Kayes' })
    const problem = page.getByText('L’adresse e-mail ou le mot de passe est incorrect.')
    await problem.waitFor()
    const field = page.getByLabel('Mot de passe', { exact: true })
    expect(await field.getAttribute('aria-describedby')).toBe(await problem.getAttribute('id'))
    // As after many failures: the wait after the first one is over within a second.
    await service.database.owner.query(`UPDATE sign_in_wait SET until = now() + interval '100 seconds'`)
    await typeCredentials(page, person)
    await page.getByText(/Trop d’essais. Réessayez dans \d+ s./).waitFor()
    await forgive()
    await typeCredentials(page, person)
    expect(await isHome(page)).toBe(true)
    expect(await page.locator('header').textContent()).toContain('Épicerie de Médine')
    expect(await page.locator('header').textContent()).toContain('TEST')
    await page.close()
  })

  test('no script holds a secret of the session', async () => {
    const page = await signedIn(await makePerson(service, shop.merchantId))
    const held = await page.evaluate(
      'JSON.stringify([document.cookie, { ...localStorage }, { ...sessionStorage }, location.href])',
    )
    expect(held).toBe(JSON.stringify(['', {}, {}, `${service.url}/app`]))
    const [cookie] = await browser.context.cookies()
    expect(cookie).toMatchObject({ name: 'merchant_session', httpOnly: true, sameSite: 'Strict', path: '/' })
    await page.close()
  })

  test('by the keyboard alone, with a code, and without the telephone with a recovery code', async () => {
    const person = await makePerson(service, shop.merchantId)
    const { code, codes } = await secondFactor(service, person)
    const credentials = async (page: Page) => {
      await page.getByLabel('Adresse e-mail').waitFor()
      await page.keyboard.type(person.email)
      await page.keyboard.press('Tab')
      await page.keyboard.type(person.password)
      await page.keyboard.press('Enter')
      await page.getByLabel('Code à six chiffres').waitFor()
    }
    const page = await visit(browser, `${service.url}/app`)
    await credentials(page)
    await page.keyboard.type('000000')
    await page.keyboard.press('Enter')
    await page.getByText('Ce code est incorrect ou a déjà servi. Attendez le suivant.').waitFor()
    await forgive()
    await page.keyboard.press('ControlOrMeta+A')
    await page.keyboard.type(code())
    await page.keyboard.press('Enter')
    expect(await isHome(page)).toBe(true)
    await page.close()
    const lost = await visit(browser, `${service.url}/app`)
    await credentials(lost)
    await lost.keyboard.type(codes[0] ?? '')
    await lost.keyboard.press('Enter')
    expect(await isHome(lost)).toBe(true)
    await lost.close()
  })

  test('a forgotten password: a letter, a new password, and signed in', async () => {
    const person = await makePerson(service, shop.merchantId, { email: 'oublie@shop.test' })
    const page = await visit(browser, `${service.url}/app`)
    await page.getByRole('link', { name: 'Mot de passe oublié ?' }).click()
    await page.getByLabel('Adresse e-mail').fill('awa')
    await page.getByRole('button', { name: 'Envoyer le lien' }).click()
    await page.getByText('Écrivez une adresse e-mail complète').waitFor()
    await page.getByLabel('Adresse e-mail').fill(person.email)
    await page.getByRole('button', { name: 'Envoyer le lien' }).click()
    await page.getByText('Si cette adresse a un compte').waitFor()
    const letters = async () => (await fetch(`${service.url}/mail`)).text()
    const link = await eventually(async () => {
      const [, found] = /(\/reset-password\?lang=fr#[\w-]+)/.exec(await letters()) ?? []
      return found ?? false
    })
    await page.goto(`${service.url}${link}`)
    await page.locator('#password').fill('une autre nuit à Mopti')
    await page.locator('#again').fill('une autre nuit à Mopti')
    await page.locator('form button').click()
    await page.getByRole('link', { name: 'Se connecter' }).click()
    await forgive()
    await typeCredentials(page, { email: person.email, password: 'une autre nuit à Mopti' })
    expect(await isHome(page)).toBe(true)
    await page.close()
  })

  test('the link of a sandbox signs in once, and leaves no trace in the address', async () => {
    const token = await offerSandboxSignIn(service.app.services, shop.merchantId)
    const page = await visit(browser, `${service.url}/app#${token}`)
    expect(await isHome(page)).toBe(true)
    expect(page.url()).toBe(`${service.url}/app`)
    await page.close()
    const again = await visit(browser, `${service.url}/app#${token}`)
    expect(await isSignIn(again)).toBe(true)
    await again.getByText('Ce lien a déjà servi ou a expiré.').waitFor()
    expect(again.url()).toBe(`${service.url}/app`)
    await again.close()
  })

  test('in production the part behind the `#` of an address is no link', async () => {
    const page = await browser.context.newPage()
    await browser.context.clearCookies()
    await page.route('**/app', async (route) => {
      const response = await route.fetch()
      const body = (await response.text()).replace('content="sandbox"', 'content="production"')
      await route.fulfill({ response, body })
    })
    const sent: string[] = []
    page.on('request', (request) => sent.push(request.postData() ?? ''))
    await page.goto(`${service.url}/app#anything`)
    await page.evaluate(`localStorage.setItem('language', 'fr')`)
    expect(await isSignIn(page)).toBe(true)
    expect(await page.locator('header').textContent()).not.toContain('TEST')
    expect(sent.join('\n')).toContain('SessionQuery')
    expect(sent.join('\n')).not.toContain('sandboxSignIn')
    await page.close()
  })

  test('signing out ends the session, and the way back shows nothing', async () => {
    const page = await signedIn(await makePerson(service, shop.merchantId))
    const [cookie] = await browser.context.cookies()
    await openMenu(page)
    await page.getByRole('button', { name: 'Se déconnecter' }).click()
    await page.getByText('Vous êtes déconnecté.').waitFor()
    expect(await browser.context.cookies()).toEqual([])
    const headers = { cookie: `${cookie?.name}=${cookie?.value}` }
    expect((await service.rest('GET', '/balance', { headers })).status).toBe(401)
    await page.goto(`${service.url}/app/sessions`)
    expect(await isSignIn(page)).toBe(true)
    await page.close()
  })

  test('the sessions of a person: one is ended, then all of them', async () => {
    const person = await makePerson(service, shop.merchantId)
    const page = await signedIn(person)
    await openMenu(page)
    await page.getByRole('link', { name: 'Ma sécurité' }).click()
    await page.getByText('Cet appareil').waitFor()
    const ends = page.getByRole('button', { name: 'Déconnecter', exact: true })
    await eventually(async () => expect(await ends.count()).toBe(1))
    await ends.click()
    await eventually(async () => expect(await ends.count()).toBe(0))
    const old = await service.rest('GET', '/balance', { token: person.token })
    expect(old.status).toBe(401)
    await page.getByRole('button', { name: 'Déconnecter tous les appareils' }).click()
    expect(await isSignIn(page)).toBe(true)
    await page.close()
  })

  test('a person who was signed out elsewhere is asked to sign in again, and comes back', async () => {
    const person = await makePerson(service, shop.merchantId)
    const page = await signedIn(person)
    const everywhere = 'mutation { signOutEverywhere { __typename } }'
    await service.graphql(everywhere, {}, person.token)
    await page.getByText('Votre session est terminée. Connectez-vous de nouveau.').waitFor()
    await forgive()
    await typeCredentials(page, person)
    expect(await isHome(page)).toBe(true)
    await page.close()
  })

  test('a person in two teams goes to the other account with its own password', async () => {
    const email = 'deux@shop.test'
    const first = await makePerson(service, shop.merchantId, { email })
    const other = await service.merchant('Pharmacie du Fleuve')
    await makePerson(service, other.merchantId, { email, role: 'viewer' })
    const page = await signedIn(first)
    await openMenu(page)
    await page.getByRole('button', { name: 'Passer à Pharmacie du Fleuve' }).click()
    await page.getByText('Connectez-vous à Pharmacie du Fleuve').waitFor()
    await page.getByLabel('Mot de passe', { exact: true }).fill(first.password)
    await page.getByRole('button', { name: 'Se connecter' }).click()
    expect(await isHome(page)).toBe(true)
    expect(await page.locator('header').textContent()).toContain('Pharmacie du Fleuve')
    await page.close()
  })

  test('a page of one account never shows the money of another that was signed in elsewhere', async () => {
    const [alpha, beta] = [await service.merchant('Alpha'), await service.merchant('Bêta')]
    await fundMerchant(service.app.services, alpha.merchantId, { amount: 11_111 })
    await fundMerchant(service.app.services, beta.merchantId, { amount: 22_222 })
    const [ali, binta] = [
      await makePerson(service, alpha.merchantId),
      await makePerson(service, beta.merchantId),
    ]
    const first = await signedIn(ali)
    await first.getByText('en direct').waitFor()
    const second = await signedIn(binta)
    expect(await second.locator('main').innerText()).toMatch(/22.222/)
    const shown: string[] = []
    const mixed: string[] = []
    first.on('framenavigated', () => void shown.push('loaded anew'))
    const body = { amount: 500, customer_phone: customer('00'), payment_method: 'OperatorA' }
    await service.rest('POST', '/pay', { token: alpha.token, body })
    await eventually(async () => {
      // Both texts at one moment: the page may load anew between two questions to it.
      const shownNow = await first.evaluate<string[]>(
        `['header', 'main'].map((name) => document.querySelector(name)?.innerText ?? '')`,
      )
      const [header = '', main = ''] = shownNow
      if (header.includes('Alpha') && /22.222/.test(main)) mixed.push(main)
      return header.includes('Bêta') && /22.222/.test(main)
    })
    expect([shown, mixed]).toEqual([['loaded anew'], []])
    await first.close()
    await second.close()
  })

  test('the typed credentials stay while the page is out of sight and asks again', async () => {
    const page = await visit(browser, `${service.url}/app`)
    await page.getByLabel('Adresse e-mail').fill('awa@shop.test')
    const asked = page.waitForResponse('**/graphql')
    await page.evaluate(`dispatchEvent(new Event('visibilitychange'))`)
    await asked
    expect(await page.getByLabel('Adresse e-mail').inputValue()).toBe('awa@shop.test')
    await page.route('**/graphql', (route) => route.abort())
    const failed = page.waitForEvent('requestfailed')
    await page.evaluate(`dispatchEvent(new Event('visibilitychange'))`)
    await failed
    expect(await page.getByLabel('Adresse e-mail').inputValue()).toBe('awa@shop.test')
    await page.close()
  })

  test('an account that is closed ends the session of its page', async () => {
    const closed = await service.merchant('Fermé')
    const person = await makePerson(service, closed.merchantId)
    const page = await signedIn(person)
    await page.getByText('en direct').waitFor()
    await deactivateMerchant(service.app.services, closed.merchantId)
    await page.getByText('Votre session est terminée. Connectez-vous de nouveau.').waitFor()
    await typeCredentials(page, person)
    expect(await page.getByText('Ce compte marchand est fermé.').textContent()).toContain('responsables')
    await page.close()
  })

  test('a service that does not answer is said in words, and the next try works', async () => {
    const person = await makePerson(service, shop.merchantId)
    const page = await visit(browser, `${service.url}/app`)
    expect(await isSignIn(page)).toBe(true)
    await page.route('**/graphql', (route) => route.abort())
    await typeCredentials(page, person)
    await page.getByText('Le service ne répond pas. Vérifiez votre connexion').waitFor()
    await page.unroute('**/graphql')
    await page.getByRole('button', { name: 'Se connecter' }).click()
    expect(await isHome(page)).toBe(true)
    await page.close()
  })
})
