import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { passwordBounds } from '../../src/identity/members/passwords.ts'
import { startTestApp, type TestApp, type TestMerchant } from '../kit/app.ts'
import { cannotLook, type TestBrowser } from '../kit/browser.ts'
import { openDashboard, signedIn } from '../kit/dashboard.ts'
import { customer } from '../kit/fixture.ts'
import { settleMany } from '../kit/money.ts'
import { makePerson, type PasswordMember } from '../kit/people.ts'
import { useBounds } from '../kit/use-bounds.ts'

// Two windows, impatient hands, lost answers, days in other time zones, and links of strangers.

// `passwords.test.ts` tests the cost of a password hash.
useBounds(passwordBounds, { memoryKib: 64, passes: 1 })

let service: TestApp
let browser: TestBrowser

interface Shop extends TestMerchant {
  owner: PasswordMember
}
async function shopOf(): Promise<Shop> {
  const shop = await service.merchant('Boulangerie du Sahel')
  return { ...shop, owner: await makePerson(service, shop.merchantId) }
}
const openPage = ({ owner }: Shop, path: string) => signedIn(browser, service, owner, path)
const press = (page: Page, name: string | RegExp) =>
  page.getByRole('button', { name, exact: true }).first().click()
const openForm = (page: Page) => page.locator('main summary').click()

/** Makes a link by REST. @returns its id and its address */
async function linkOf({ token }: TestMerchant, more: object = {}): Promise<{ id: number; url: string }> {
  const body = { title: 'Sac de riz', amount: 15_000, ...more }
  const answer = await service.rest('POST', '/payment-links', { token, body })
  expect(answer.status).toBe(201)
  return answer.body.data
}
const change = ({ token }: TestMerchant, id: number, body: object) =>
  service.rest('PUT', `/payment-links/${id}`, { token, body })
async function read({ token }: TestMerchant, id: number): Promise<Record<string, unknown>> {
  return (await service.rest('GET', `/payment-links/${id}`, { token })).body.data
}
async function titlesOf({ merchantId }: TestMerchant): Promise<string[]> {
  const { rows } = await service.database.owner.query<{ title: string }>(
    'SELECT title FROM payment_link WHERE merchant_id = $1 ORDER BY id',
    [merchantId],
  )
  return rows.map(({ title }) => title)
}
/** Pays by the page of a link, as its form does. */
async function payBy(url: string, phone = customer('00')): Promise<void> {
  const body = new URLSearchParams({ amount: '15000', phone, operator: 'OperatorA' })
  const paid = await fetch(url, { method: 'POST', body, redirect: 'manual' })
  expect(paid.status).toBe(303)
}
/** Lets links end a minute ago. */
const expire = (id: number) =>
  service.database.owner.query(
    `UPDATE payment_link SET expires_at = now() - interval '1 minute' WHERE id = $1`,
    [id],
  )
const focused = (page: Page) => page.evaluate('document.activeElement.tagName')

describe.skipIf(cannotLook)('edges of payment links', () => {
  beforeAll(async () => {
    ;({ service, browser } = await openDashboard(() => startTestApp()))
  })
  afterAll(async () => {
    await browser.close()
    await service.close()
  })

  test('a change sends only the fields that the person changed', async () => {
    const shop = await shopOf()
    const more = { description: 'Livré à Bamako', usage_limit: 5, expires_at: '2050-12-31T10:00:00Z' }
    const { id } = await linkOf(shop, more)
    const page = await openPage(shop, `/links/${id}`)
    await openForm(page)
    await page.getByLabel('Titre').fill('Sac de mil')
    await change(shop, id, { amount: 20_000, description: 'Livré à Ségou' })
    await press(page, 'Enregistrer')
    await page.getByText('Enregistré.').waitFor()
    expect(await read(shop, id)).toMatchObject({
      title: 'Sac de mil',
      amount: 20_000,
      description: 'Livré à Ségou',
      usage_limit: 5,
      expires_at: '2050-12-31T10:00:00.000Z',
    })
    await page.close()
  })

  test('a link that ended says how to open it again, and can get another title', async () => {
    const shop = await shopOf()
    const { id, url } = await linkOf(shop)
    await expire(id)
    const page = await openPage(shop, `/links/${id}`)
    await page.getByText('Choisissez un autre dernier jour').waitFor()
    await openForm(page)
    await page.getByLabel('Titre').fill('Tombola')
    await press(page, 'Enregistrer')
    await page.getByText('Enregistré.').waitFor()
    await openForm(page)
    await page.getByLabel('Dernier jour').fill('')
    await press(page, 'Enregistrer')
    await page.getByText('ouvert', { exact: true }).waitFor()
    expect((await fetch(url)).status).toBe(200)
    await page.close()
  })

  test('a link that is used up says how to open it again', async () => {
    const shop = await shopOf()
    const { id, url } = await linkOf(shop, { usage_limit: 1 })
    const page = await openPage(shop, `/links/${id}`)
    await page.getByText('Aucun paiement encore.').waitFor()
    await payBy(url)
    await page.getByText('Augmentez le nombre de paiements').waitFor()
    await openForm(page)
    await page.getByLabel('Nombre de paiements').fill('2')
    await press(page, 'Enregistrer')
    await page.getByText('ouvert', { exact: true }).waitFor()
    expect(await page.getByRole('button', { name: 'Fermer le lien' }).count()).toBe(1)
    await page.close()
  })

  test('a form that is sent twice at once makes one link', async () => {
    const shop = await shopOf()
    const page = await openPage(shop, '/links/new')
    await page.getByLabel('Titre').fill('Cotisation')
    await page.evaluate(`for (const form of [1, 2, 3].map(() => document.querySelector('main form')))
      form.requestSubmit()`)
    await page.getByRole('heading', { name: 'Cotisation', exact: true }).waitFor()
    expect(await titlesOf(shop)).toEqual(['Cotisation'])
    await page.close()
  })

  test('the last day is one of the account, also where the clock of the browser is far ahead', async () => {
    const shop = await shopOf()
    const { id } = await linkOf(shop)
    const page = await openPage(shop, `/links/${id}`)
    const session = await browser.context.newCDPSession(page)
    await session.send('Emulation.setTimezoneOverride', { timezoneId: 'Asia/Tokyo' })
    await openForm(page)
    await page.getByLabel('Dernier jour').fill('2050-12-31')
    await press(page, 'Enregistrer')
    await page.getByText('Enregistré.').waitFor()
    expect(await read(shop, id)).toMatchObject({ expires_at: '2051-01-01T00:00:00.000Z' })
    await page.getByText(/31 déc. 2050/).waitFor()
    await openForm(page)
    expect(await page.getByLabel('Dernier jour').inputValue()).toBe('2050-12-31')
    await page.close()
  })

  test('a year of five digits is refused in words', async () => {
    const page = await openPage(await shopOf(), '/links/new')
    await page.getByLabel('Titre').fill('Cotisation')
    await page.getByLabel('Dernier jour').fill('12026-12-31')
    await press(page, 'Créer le lien')
    await page.getByText('Choisissez un jour à venir.').waitFor()
    expect(await page.locator('[aria-invalid]').count()).toBe(1)
    await page.close()
  })

  test('the address is not said to be copied where the browser refuses to', async () => {
    const shop = await shopOf()
    const page = await openPage(shop, `/links/${(await linkOf(shop)).id}`)
    await page.evaluate(`Object.defineProperty(navigator, 'clipboard', { value: undefined })`)
    await press(page, 'Copier l’adresse')
    await page.getByText('Gardez le doigt sur l’adresse').waitFor()
    expect(await page.getByText('Copiée.').count()).toBe(0)
    await page.close()
  })

  test('the focus stays on the page after a change, a closing and a reopening', async () => {
    const shop = await shopOf()
    const page = await openPage(shop, `/links/${(await linkOf(shop)).id}`)
    await openForm(page)
    await page.getByLabel('Titre').fill('Sac de mil')
    await press(page, 'Enregistrer')
    await page.getByText('Enregistré.').waitFor()
    expect(await focused(page)).toBe('SUMMARY')
    await press(page, 'Fermer le lien')
    await page.getByRole('dialog').getByRole('button', { name: 'Fermer le lien' }).click()
    await page.getByText('fermé', { exact: true }).waitFor()
    expect(await focused(page)).toBe('SUMMARY')
    await press(page, 'Rouvrir le lien')
    await page.getByText('ouvert', { exact: true }).waitFor()
    expect(await focused(page)).toBe('SUMMARY')
    await page.close()
  })

  test.each(['abc', '0', '99999999999'])('the link "%s" does not exist, in words', async (id) => {
    const page = await openPage(await shopOf(), `/links/${id}`)
    await page.getByRole('heading', { level: 1 }).waitFor()
    expect(await page.locator('main').innerText()).toMatch(/Ce lien n’existe pas/)
    await page.close()
  })

  test('a link of another merchant does not exist', async () => {
    const { id } = await linkOf(await shopOf())
    const page = await openPage(await shopOf(), `/links/${id}`)
    await page.getByText('Ce lien n’existe pas').waitFor()
    expect(await page.getByText('Sac de riz').count()).toBe(0)
    await page.close()
  })

  test('a payment that fails is seen on the page of its link, live', async () => {
    const shop = await shopOf()
    const { id, url } = await linkOf(shop)
    // The number is charged after a minute of the simulated operator.
    await payBy(url, '70110001')
    const page = await openPage(shop, `/links/${id}`)
    await page.getByText('Paiements en cours').waitFor()
    const { rows } = await service.database.owner.query<{ id: string }>(
      'SELECT id FROM transaction WHERE payment_link_id = $1',
      [id],
    )
    await settleMany(service.database.database.pool, [{ id: BigInt(rows[0]?.id ?? 0), to: 'failed' }])
    await page.getByText('échoué').waitFor({ timeout: 5_000 })
    await page.getByText('Paiements en cours').waitFor({ state: 'detached' })
    expect(await page.getByText(/^0.F.CFA$/).count()).toBe(1)
    await page.close()
  })

  test('all payments of a link are those of the link, and no others', async () => {
    const shop = await shopOf()
    const [rice, millet] = [await linkOf(shop), await linkOf(shop, { title: 'Mil' })]
    await payBy(rice.url, customer('00'))
    await payBy(millet.url, customer('00'))
    const page = await openPage(shop, `/links/${rice.id}`)
    await page.getByRole('link', { name: 'Tous les paiements de ce lien' }).click()
    await page.getByText('réussi', { exact: true }).waitFor()
    expect(await page.locator('.rows > li').count()).toBe(1)
    await page.close()
  })

  test('the way back from a link keeps the page of the list, with its closed links', async () => {
    const shop = await shopOf()
    for (let n = 1; n <= 23; n += 1) await linkOf(shop, { title: `Lien ${n}` })
    const closed = await linkOf(shop, { title: 'Fermé hier' })
    await change(shop, closed.id, { is_active: false })
    const page = await openPage(shop, '/links')
    await page.getByLabel(/aussi/).check()
    await page.getByText('Fermé hier').waitFor()
    await press(page, 'Plus anciens')
    await page.getByRole('link', { name: 'Lien 2', exact: true }).click()
    await page.getByText('Aucun paiement encore.').waitFor()
    await page.goBack()
    await page.getByRole('link', { name: 'Lien 2', exact: true }).waitFor()
    expect(await page.getByLabel(/aussi/).isChecked()).toBe(true)
    await page.getByLabel(/aussi/).uncheck()
    await page.getByText('Lien 23').waitFor()
    expect(await page.getByRole('link', { name: /^Lien \d/ }).count()).toBe(20)
    expect(await page.getByText('Fermé hier').count()).toBe(0)
    await page.close()
  })

  test('the print says who is paid', async () => {
    const shop = await shopOf()
    const page = await openPage(shop, `/links/${(await linkOf(shop)).id}`)
    await page.locator('.qr').waitFor()
    await page.emulateMedia({ media: 'print' })
    expect(await page.locator('body').innerText()).toContain('Boulangerie du Sahel')
    await page.close()
  })
})
