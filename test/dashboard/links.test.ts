import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { passwordBounds } from '../../src/identity/members/passwords.ts'
import { startTestApp, type TestApp, type TestMerchant } from '../kit/app.ts'
import { cannotLook, type TestBrowser } from '../kit/browser.ts'
import { openDashboard, signedIn } from '../kit/dashboard.ts'
import { customer } from '../kit/fixture.ts'
import { makePerson, type PasswordMember } from '../kit/people.ts'
import { useBounds } from '../kit/use-bounds.ts'

// A person makes a payment link, hands it on, sees who paid, changes it, and closes it.

// `passwords.test.ts` tests the cost of a password hash.
useBounds(passwordBounds, { memoryKib: 64, passes: 1 })

let service: TestApp
let browser: TestBrowser

async function shopOf(): Promise<{ shop: TestMerchant; owner: PasswordMember }> {
  const shop = await service.merchant('Boulangerie du Sahel')
  return { shop, owner: await makePerson(service, shop.merchantId) }
}
const openPage = (person: PasswordMember, path: string) => signedIn(browser, service, person, path)
const press = (page: Page, name: string | RegExp) =>
  page.getByRole('button', { name, exact: true }).first().click()

/** Makes a link by REST. @returns its id and its address */
async function linkOf({ token }: TestMerchant, more: object = {}): Promise<{ id: number; url: string }> {
  const body = { title: 'Sac de riz', amount: 15_000, ...more }
  const answer = await service.rest('POST', '/payment-links', { token, body })
  expect(answer.status).toBe(201)
  return answer.body.data
}
async function countOf({ merchantId }: TestMerchant): Promise<number> {
  const { rows } = await service.database.owner.query<{ count: number }>(
    'SELECT count(*)::int FROM payment_link WHERE merchant_id = $1',
    [merchantId],
  )
  return rows[0]?.count ?? -1
}
/** Pays by the page of a link, as its form does. */
async function payBy(url: string, amount: number, operator = 'OperatorA'): Promise<void> {
  const body = new URLSearchParams({ amount: String(amount), phone: customer('00'), operator })
  const paid = await fetch(url, { method: 'POST', body, redirect: 'manual' })
  expect(paid.status).toBe(303)
}

describe.skipIf(cannotLook)('payment links', () => {
  beforeAll(async () => {
    ;({ service, browser } = await openDashboard(() => startTestApp()))
  })
  afterAll(async () => {
    await browser.close()
    await service.close()
  })

  test('a link is made, paid from a second window, and closed', async () => {
    const { shop, owner } = await shopOf()
    const page = await openPage(owner, '/links')
    await page.getByText('Aucun lien ouvert.').waitFor()
    await page.getByRole('link', { name: 'Nouveau lien' }).click()
    await press(page, 'Créer le lien')
    await page.getByText('Écrivez un titre de 200 caractères au plus.').waitFor()
    await page.getByLabel('Titre').fill('Sac de riz, 25 kg')
    await page.getByLabel('Montant').fill('15,5')
    await press(page, 'Créer le lien')
    await page.getByText('Écrivez un montant entier').waitFor()
    await page.getByLabel('Montant').fill('50')
    await press(page, 'Créer le lien')
    await page.getByText('Écrivez un montant entier').waitFor()
    expect(await countOf(shop)).toBe(0)
    await page.getByLabel('Montant').fill('15 000')
    await page.getByLabel('Nombre de paiements').fill('40')
    await press(page, 'Créer le lien')
    await page.getByRole('heading', { name: 'Sac de riz, 25 kg', exact: true }).waitFor()
    await page.getByText('payé 0 fois sur 40').waitFor()
    const url = (await page.locator('.share a').first().getAttribute('href')) ?? ''
    expect(await codeIsDrawn(page)).toBe(true)

    const payer = await browser.context.newPage()
    await payer.goto(url)
    await payer.getByLabel('Votre numéro de téléphone').fill(customer('00').slice(4))
    await payer.getByRole('button', { name: /Payer/ }).click()
    await payer.getByRole('heading', { level: 1, name: 'Paiement effectué' }).waitFor()
    await payer.close()
    await page.getByText('payé 1 fois sur 40').waitFor()
    await page.getByText('réussi').waitFor()
    expect(await page.getByText('Encaissé par ce lien').count()).toBe(1)

    await press(page, 'Fermer le lien')
    await page.getByRole('dialog').getByRole('button', { name: 'Fermer le lien' }).click()
    await page.getByText('fermé', { exact: true }).waitFor()
    expect((await fetch(url)).status).toBe(410)
    await press(page, 'Rouvrir le lien')
    await page.getByText('ouvert', { exact: true }).waitFor()
    expect((await fetch(url)).status).toBe(200)
    await page.close()
  })

  test('the message for WhatsApp has the title, the amount and the address', async () => {
    const { shop, owner } = await shopOf()
    const { id, url } = await linkOf(shop, { title: 'Riz & mil #1?' })
    const page = await openPage(owner, `/links/${id}`)
    const address = await page.getByRole('link', { name: 'Envoyer par WhatsApp' }).getAttribute('href')
    const { origin, searchParams } = new URL(address ?? '')
    expect(origin).toBe('https://wa.me')
    expect(searchParams.get('text')?.replaceAll(/\s+/g, ' ')).toBe(`Riz & mil #1? · 15 000 F CFA ${url}`)
    await page.close()
  })

  test('the print has the title, the amount and the code, and nothing of the dashboard', async () => {
    const { shop, owner } = await shopOf()
    const page = await openPage(owner, `/links/${(await linkOf(shop)).id}`)
    await page.getByRole('button', { name: 'Imprimer' }).waitFor()
    await page.emulateMedia({ media: 'print' })
    expect(await codeIsDrawn(page)).toBe(true)
    const shown = (await page.locator('body').innerText()).replaceAll(/\s+/g, ' ').trim()
    expect(shown).toMatch(/^Boulangerie du Sahel Payez avec votre téléphone Sac de riz 15 000 F CFA http\S+$/)
    await page.close()
  })

  test('an answer that was lost makes no second link', async () => {
    const { shop, owner } = await shopOf()
    const page = await openPage(owner, '/links/new')
    await page.route('**/graphql', async (route) => {
      if (!route.request().postData()?.includes('createPaymentLink')) return route.continue()
      await route.fetch()
      return route.abort()
    })
    await page.getByLabel('Titre').fill('Cotisation')
    await press(page, 'Créer le lien')
    await page.getByText('Le service ne répond pas.').waitFor()
    await page.unroute('**/graphql')
    await press(page, 'Créer le lien')
    await page.getByRole('heading', { name: 'Cotisation', exact: true }).waitFor()
    expect(await countOf(shop)).toBe(1)
    await page.close()
  })

  test('a change keeps what it does not name, and removes what is emptied', async () => {
    const { shop, owner } = await shopOf()
    const { id, url } = await linkOf(shop, { usage_limit: 5, description: 'Livré à Bamako' })
    await payBy(url, 15_000)
    const page = await openPage(owner, `/links/${id}`)
    await page.getByText('Modifier').click()
    await page.getByLabel('Montant').fill('')
    await page.getByLabel('Nombre de paiements').fill('7')
    await page.getByLabel('Dernier jour').fill('2050-12-31')
    await press(page, 'Enregistrer')
    await page.getByText('Enregistré.').waitFor()
    const { body } = await service.rest('GET', `/payment-links/${id}`, { token: shop.token })
    expect(body.data).toMatchObject({
      title: 'Sac de riz',
      description: 'Livré à Bamako',
      usage_limit: 7,
      expires_at: '2051-01-01T00:00:00.000Z',
    })
    expect(body.data.amount ?? null).toBe(null)
    await page.close()
  })

  test('a viewer sees links and who paid, and changes nothing', async () => {
    const { shop } = await shopOf()
    const { id } = await linkOf(shop)
    const viewer = await makePerson(service, shop.merchantId, { role: 'viewer' })
    const page = await openPage(viewer, '/links')
    await page.getByRole('link', { name: 'Sac de riz' }).click()
    await page.getByText('Aucun paiement encore.').waitFor()
    expect(await page.getByRole('button', { name: /Fermer|Modifier|Rouvrir/ }).count()).toBe(0)
    const refused = await service.graphql(
      `mutation { updatePaymentLink(id: "${id}", input: { isActive: false }) { __typename } }`,
      {},
      viewer.token,
    )
    expect(refused.body['errors'][0].extensions.code).toBe('FORBIDDEN')
    await page.close()
  })
})

/** Whether the browser has drawn the QR code. */
async function codeIsDrawn(page: Page): Promise<boolean> {
  const code = page.locator('.qr')
  await code.waitFor()
  return page.evaluate(`new Promise((resolve) => {
    const code = document.querySelector('.qr')
    const say = () => resolve(code.naturalWidth > 0)
    if (code.complete) say()
    else code.onload = code.onerror = say
  })`)
}
