import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { passwordBounds } from '../../src/identity/members/passwords.ts'
import type { Role } from '../../src/identity/members/roles.ts'
import { startTestApp, type TestApp, type TestMerchant } from '../kit/app.ts'
import { cannotLook, type TestBrowser } from '../kit/browser.ts'
import { openDashboard, signedIn } from '../kit/dashboard.ts'
import { eventually } from '../kit/eventually.ts'
import { makePerson, type PasswordMember } from '../kit/people.ts'
import { useBounds } from '../kit/use-bounds.ts'

// Secrets that are shown once, lost answers, impatient hands, two windows, and people without the right.

// `passwords.test.ts` tests the cost of a password hash.
useBounds(passwordBounds, { memoryKib: 64, passes: 1 })

let service: TestApp
let browser: TestBrowser

interface Shop extends TestMerchant {
  owner: PasswordMember
}
async function shopOf(): Promise<Shop> {
  const shop = await service.merchant('Pharmacie du Fleuve')
  return { ...shop, owner: await makePerson(service, shop.merchantId) }
}
const openPage = ({ owner }: Pick<Shop, 'owner'>, path = '') =>
  signedIn(browser, service, owner, `/developers${path}`)
const press = (page: Page, name: string | RegExp) =>
  page.getByRole('button', { name, exact: true }).first().click()
const confirm = async (page: Page, name: string) => {
  await press(page, name)
  await page.getByRole('dialog').getByRole('button', { name, exact: true }).click()
}
const addressOf = (n: number) => `http://127.0.0.1:1/${n}`
const events = ['payment_failed', 'payment_received']
async function endpointOf({ token }: TestMerchant, n = 1): Promise<number> {
  const { body } = await service.rest('POST', '/webhooks', { token, body: { url: addressOf(n), events } })
  return body.data.id
}
const readEndpoint = async ({ token }: TestMerchant) =>
  (await service.rest('GET', '/webhooks', { token })).body.data[0]
async function balanceOf({ token }: TestMerchant): Promise<number> {
  return (await service.rest('GET', '/balance', { token })).body['data'].available
}
/** Loses the first answer to a mutation, after the service carried it out. */
async function loseAnswer(page: Page, mutation: string): Promise<void> {
  let isLost = false
  await page.route('**/graphql', async (route, request) => {
    if (isLost || !request.postData()?.includes(mutation)) return route.continue()
    isLost = true
    await route.fetch()
    return route.abort()
  })
}
/** Counts the requests of a mutation. */
function countOf(page: Page, mutation: string): () => number {
  let sent = 0
  page.on('request', (request) => {
    if (request.postData()?.includes(mutation)) sent += 1
  })
  return () => sent
}
async function addEndpoint(page: Page, url: string): Promise<void> {
  await page.getByText('Ajouter une adresse').click()
  await page.getByLabel('Adresse (https)').fill(url)
  await press(page, 'Ajouter')
}

describe.skipIf(cannotLook)('edges of the screens for developers', () => {
  beforeAll(async () => {
    ;({ service, browser } = await openDashboard(() => startTestApp()))
    browser.context.setDefaultTimeout(10_000)
  })
  afterAll(async () => {
    await browser.close()
    await service.close()
  })

  test('the secret of an address stays until it is kept, also that of the fifth address', async () => {
    const shop = await shopOf()
    for (const n of [1, 2, 3, 4]) await endpointOf(shop, n)
    const page = await openPage(shop)
    await addEndpoint(page, addressOf(5))
    const secret = page.locator('.secret code')
    await secret.waitFor()
    await page.locator('.card', { hasText: 'Notifications' }).getByRole('link').nth(4).waitFor()
    for (const summary of await page.locator('main summary').all()) await summary.click()
    expect(await secret.count()).toBe(1)
    await press(page, 'Je l’ai gardée')
    await secret.waitFor({ state: 'detached' })
    await page.getByText('Cinq adresses au plus.').waitFor()
    await page.close()
  })

  test('an address beyond the fifth, added in another window, is refused in fitting words', async () => {
    const shop = await shopOf()
    const page = await openPage(shop)
    await page.getByText('Ajouter une adresse').click()
    for (const n of [1, 2, 3, 4, 5]) await endpointOf(shop, n)
    await page.getByLabel('Adresse (https)').fill(addressOf(6))
    await press(page, 'Ajouter')
    await page.getByText('Cinq adresses au plus.').waitFor()
    expect(await page.getByText('il faut une adresse publique').count()).toBe(0)
    await page.close()
  })

  test('a secret on the screen is not left without a question', async () => {
    const page = await openPage(await shopOf())
    await addEndpoint(page, addressOf(1))
    await page.locator('.secret').waitFor()
    const questions: string[] = []
    page.on('dialog', (dialog) => {
      questions.push(dialog.type())
      void dialog.dismiss()
    })
    await page.getByRole('link', { name: 'Journal des événements' }).click()
    expect(await page.locator('.secret').count()).toBe(1)
    await page.close({ runBeforeUnload: true })
    await eventually(() => expect(questions).toEqual(['confirm', 'beforeunload']))
    await press(page, 'Je l’ai gardée')
    await page.getByRole('link', { name: 'Journal des événements' }).click()
    await page.getByText('Tout ce qui est arrivé').waitFor()
    await page.close()
  })

  test('the secret of a key is kept nowhere in the browser', async () => {
    const page = await openPage(await shopOf(), '/keys/new')
    await page.getByLabel('Nom').fill('Caisse')
    await page.getByLabel('Encaisser').check()
    await loseAnswer(page, 'createApiKey')
    await press(page, 'Créer la clé')
    await page.getByText('Vérifiez votre connexion').waitFor()
    await press(page, 'Créer la clé')
    const secret = await page.locator('.secret code').nth(1).innerText()
    await press(page, 'Je l’ai gardée')
    await page.getByRole('heading', { name: 'Caisse' }).waitFor()
    const kept = await page.evaluate(`[JSON.stringify(localStorage), JSON.stringify(sessionStorage),
      JSON.stringify(history.state), location.href, document.documentElement.outerHTML].join()`)
    expect(kept).not.toContain(secret)
    await page.getByRole('link', { name: '‹ Développeurs' }).click()
    await page.getByRole('link', { name: 'Caisse' }).waitFor()
    expect(await page.getByRole('link', { name: 'Caisse' }).count()).toBe(1)
    await page.close()
  })

  test('a renewal whose answer was lost gives the same pair when it is sent again', async () => {
    const shop = await shopOf()
    const make = `mutation ($input: CreateApiKeyInput!) { createApiKey(input: $input) {
      ... on IssuedApiKey { apiKey { databaseId } } } }`
    const input = { name: 'Caisse', scopes: ['PAY'] }
    const made = await service.graphql(make, { input }, shop.owner.token)
    const { databaseId } = made.body['data'].createApiKey.apiKey
    const page = await openPage(shop, `/keys/${databaseId}`)
    await loseAnswer(page, 'regenerateApiKey')
    await confirm(page, 'Renouveler la clé')
    await page.getByText('Vérifiez votre connexion').waitFor()
    const sql = 'SELECT version FROM api_key WHERE id = $1'
    const before = await service.database.owner.query(sql, [databaseId])
    await confirm(page, 'Renouveler la clé')
    await page.locator('.secret').first().waitFor()
    expect((await service.database.owner.query(sql, [databaseId])).rows).toEqual(before.rows)
    await page.close()
  })

  test('money of a sandbox whose answer was lost, or sent twice at once, is added once', async () => {
    const shop = await shopOf()
    const page = await openPage(shop, '/sandbox')
    await page.getByLabel('Montant').fill('1000')
    await loseAnswer(page, 'sandboxFund')
    await press(page, 'Ajouter')
    await page.getByText('Vérifiez votre connexion').waitFor()
    await press(page, 'Ajouter')
    await page.getByText(/Disponible maintenant.*1.000.F.CFA/).waitFor()
    expect(await balanceOf(shop)).toBe(1_000)
    await page.evaluate(`for (const form of [1, 2].map(() => document.querySelector('main form')))
      form.requestSubmit()`)
    await page.getByText(/Disponible maintenant.*2.000.F.CFA/).waitFor()
    expect(await balanceOf(shop)).toBe(2_000)
    await page.close()
  })

  test('a form sends only what was changed in it, and nothing where nothing was', async () => {
    const shop = await shopOf()
    const id = await endpointOf(shop)
    const page = await openPage(shop, `/webhooks/${id}`)
    const sent = countOf(page, 'updateWebhook')
    await page.getByText('Modifier', { exact: true }).click()
    await page.getByLabel('Paiement échoué').uncheck()
    await page.getByLabel('Paiement échoué').check()
    await press(page, 'Enregistrer')
    await page.getByText('Modifier', { exact: true }).waitFor()
    await page.getByLabel('Adresse (https)').waitFor({ state: 'detached' })
    expect(sent()).toBe(0)
    await page.getByText('Modifier', { exact: true }).click()
    await service.rest('PUT', `/webhooks/${id}`, { token: shop.token, body: { url: addressOf(2) } })
    // Any other change on the page reads the address again, as its other window left it.
    await press(page, 'Envoyer un essai')
    await page.getByRole('heading', { name: addressOf(2) }).waitFor()
    await press(page, 'Tous')
    await press(page, 'Aucun')
    await page.getByLabel('Paiement reçu').check()
    await press(page, 'Enregistrer')
    await page.getByLabel('Adresse (https)').waitFor({ state: 'detached' })
    expect(await readEndpoint(shop)).toMatchObject({ url: addressOf(2), events: ['payment_received'] })
    await page.close()
  })

  test('the last day of a key with a year of five digits is refused in words', async () => {
    const page = await openPage(await shopOf(), '/keys/new')
    await page.getByLabel('Nom').fill('Caisse')
    await page.getByLabel('Encaisser').check()
    await page.getByLabel('Dernier jour').fill('12026-12-31')
    await press(page, 'Créer la clé')
    await page.getByText('Choisissez un jour à venir').waitFor()
    expect(await page.locator('[aria-invalid]').count()).toBe(1)
    await page.close()
  })

  test.each<Role>(['viewer', 'finance'])(
    'the role %s reads a plain sentence at each address',
    async (role) => {
      const { merchantId } = await shopOf()
      const owner = await makePerson(service, merchantId, { role })
      for (const path of ['', '/keys/new', '/keys/1', '/webhooks/1', '/events', '/sandbox']) {
        const page = await openPage({ owner }, path)
        await page.getByText('Votre rôle ne permet pas').waitFor()
        expect(await page.locator('main').getByRole('button').count()).toBe(0)
        await page.close()
      }
    },
  )

  test('a path that does not exist says so', async () => {
    const page = await openPage(await shopOf(), '/keys')
    await page.getByRole('heading', { level: 1 }).waitFor({ timeout: 5_000 })
    expect(await page.locator('main').innerText()).toContain('n’existe pas')
    await page.close()
  })

  test('production has no tools of a sandbox', async () => {
    const { owner } = await shopOf()
    await browser.context.route('**/app/**', async (route) => {
      const answer = await route.fetch()
      const body = (await answer.text()).replace('content="sandbox"', 'content="production"')
      await route.fulfill({ response: answer, body })
    })
    const page = await openPage({ owner }, '/sandbox')
    await page.getByText('n’existe pas').waitFor({ timeout: 5_000 })
    expect(await page.locator('main').getByRole('button').count()).toBe(0)
    await page.close()
    await browser.context.unroute('**/app/**')
  })
})
