import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { passwordBounds } from '../../src/identity/members/passwords.ts'
import { startTestApp, type TestApp, type TestMerchant } from '../kit/app.ts'
import { cannotLook, type TestBrowser } from '../kit/browser.ts'
import { openDashboard, signedIn } from '../kit/dashboard.ts'
import { eventually } from '../kit/eventually.ts'
import { makePerson, type PasswordMember } from '../kit/people.ts'
import { useBounds } from '../kit/use-bounds.ts'
import { startReceiver } from '../kit/webhooks/receivers.ts'

// A developer makes keys with limits, registers addresses that are notified, looks at what was sent and sends
// it again, and uses the tools of a sandbox.

// `passwords.test.ts` tests the cost of a password hash.
useBounds(passwordBounds, { memoryKib: 64, passes: 1 })

let service: TestApp
let browser: TestBrowser

async function shopOf(): Promise<{ shop: TestMerchant; owner: PasswordMember }> {
  const shop = await service.merchant('Pharmacie du Fleuve')
  return { shop, owner: await makePerson(service, shop.merchantId, { name: 'Awa Traoré' }) }
}
const openPage = (person: PasswordMember, path = '') =>
  signedIn(browser, service, person, `/developers${path}`)
const press = (page: Page, name: string | RegExp) =>
  page.getByRole('button', { name, exact: true }).first().click()
const confirm = async (page: Page, name: string) => {
  await press(page, name)
  await page.getByRole('dialog').getByRole('button', { name, exact: true }).click()
}
const authenticate = (key: string, secret: string) =>
  service.rest('POST', '/auth', {
    headers: { 'X-API-Key': key, 'X-API-Secret': secret },
    body: { scopes: ['payout'] },
  })

describe.skipIf(cannotLook)('the screens for developers', () => {
  beforeAll(async () => {
    ;({ service, browser } = await openDashboard(() => startTestApp()))
  })
  afterAll(async () => {
    await browser.close()
    await service.close()
  })

  test('a key with limits is made, works within them, and stops when it is revoked', async () => {
    const { owner } = await shopOf()
    const page = await openPage(owner)
    await page.getByRole('link', { name: 'Nouvelle clé' }).click()
    await press(page, 'Créer la clé')
    await page.getByText('Écrivez un nom de 100 caractères au plus.').waitFor()
    await page.getByLabel('Nom').fill('Caisse de Kayes')
    await page.getByLabel('Faire et lire les versements').check()
    await page.getByText(/^Limites/).click()
    await page.getByLabel('Montant le plus haut').fill('5 000')
    await page.getByLabel('Seulement depuis').fill('pas une adresse')
    await press(page, 'Créer la clé')
    await page.getByText('Une adresse n’est pas correcte.').waitFor()
    await page.getByLabel('Seulement depuis').fill('')
    await press(page, 'Créer la clé')
    await page.getByText('À copier maintenant').waitFor()
    const [key = '', secret = ''] = await page.locator('.secret code').allInnerTexts()
    const { body } = await authenticate(key, secret)
    const payout = (amount: number) =>
      service.rest('POST', '/payouts', {
        token: body['data'].token,
        body: { amount, destination_phone: '70000001', payment_method: 'OperatorA' },
      })
    expect(await payout(5_001)).toMatchObject({ status: 403 })
    await press(page, 'Je l’ai gardée')
    await page.getByRole('heading', { name: 'Caisse de Kayes' }).waitFor()
    expect(await page.getByText(secret).count()).toBe(0)
    await page.getByText(/5.000.F.CFA/).waitFor()
    await confirm(page, 'Retirer la clé')
    await page.getByText('retirée', { exact: true }).waitFor()
    await eventually(async () => expect((await authenticate(key, secret)).status).toBe(401))
    await page.close()
  })

  test('an address is added, a delivery that failed is looked at, and sent again', async () => {
    const { shop, owner } = await shopOf()
    let status = 500
    const receiver = await startReceiver((response) => response.writeHead(status).end('la base est pleine'))
    const url = `http://127.0.0.1:${receiver.port}/hook`
    const page = await openPage(owner)
    await page.getByText('Ajouter une adresse').click()
    await press(page, 'Ajouter')
    await page.getByText('Cette adresse n’est pas possible').waitFor()
    await page.getByLabel('Adresse (https)').fill(url)
    await press(page, 'Ajouter')
    await page.getByText('Secret qui signe les notifications').waitFor()
    await press(page, 'Je l’ai gardée')
    await page.getByRole('link', { name: url }).click()
    const body = { amount: 500, customer_phone: '70000000', payment_method: 'OperatorA' }
    await service.rest('POST', '/pay', { token: shop.token, body })
    await eventually(() => expect(receiver.arrived.length).toBeGreaterThan(0))
    await eventually(async () => {
      await page.reload()
      await page.getByText('1 essai').first().waitFor({ timeout: 1_000 })
    })
    await page.locator('summary', { hasText: '1 essai' }).first().click()
    await page.getByText('la base est pleine').first().waitFor()
    status = 200
    const failed = receiver.arrived.length
    await press(page, 'Envoyer de nouveau')
    await page.getByText('L’événement repart.').waitFor()
    await eventually(() => expect(receiver.arrived.length).toBeGreaterThan(failed))
    await press(page, 'Envoyer un essai')
    await page.getByText(/Votre serveur a répondu 200/).waitFor()
    await page.close()
  })

  test('the event log shows each event as it happens', async () => {
    const { shop, owner } = await shopOf()
    const page = await openPage(owner, '/events')
    await page.getByText('Rien encore.').waitFor()
    const body = { amount: 500, customer_phone: '70000000', payment_method: 'OperatorA' }
    await service.rest('POST', '/pay', { token: shop.token, body })
    await page.getByText('Paiement reçu').first().waitFor()
    await page.getByText('Voir les données').first().click()
    expect(await page.locator('pre').first().innerText()).toContain('"reference"')
    await page.close()
  })

  test('a sandbox gets money, and its clock moves on', async () => {
    const { owner } = await shopOf()
    const page = await openPage(owner, '/sandbox')
    await page.getByLabel('Montant').fill('1,5')
    await press(page, 'Ajouter')
    await page.getByText('Écrivez un montant entier').waitFor()
    await page.getByLabel('Montant').fill('250 000')
    await press(page, 'Ajouter')
    await page.getByText(/Disponible maintenant.*250.000.F.CFA/).waitFor()
    const before = service.app.services.clock.now().getTime()
    await press(page, 'Avancer d’un jour')
    await page.getByText('Horloge avancée.').waitFor()
    expect(service.app.services.clock.now().getTime() - before).toBeGreaterThanOrEqual(86_400_000)
    await page.close()
  })
})
