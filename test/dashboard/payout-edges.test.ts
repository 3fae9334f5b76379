import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { dayOf } from '../../src/dashboard/format.ts'
import { passwordBounds } from '../../src/identity/members/passwords.ts'
import { fundMerchant } from '../../src/resources/merchants/fund.ts'
import { startTestApp, type TestApp, type TestMerchant } from '../kit/app.ts'
import { cannotLook, type TestBrowser } from '../kit/browser.ts'
import { openDashboard, signedIn } from '../kit/dashboard.ts'
import { eventually } from '../kit/eventually.ts'
import { customer } from '../kit/fixture.ts'
import { makePerson, type PasswordMember } from '../kit/people.ts'
import { useBounds } from '../kit/use-bounds.ts'

// Payouts whose answers are lost, late or refused, and pages that are read by a clock of another zone. No
// person is paid twice, nor by another amount, account or moment than the page showed.

useBounds(passwordBounds, { memoryKib: 64, passes: 1 })

let service: TestApp
let browser: TestBrowser

async function shopOf(): Promise<{ shop: TestMerchant; owner: PasswordMember }> {
  const shop = await service.merchant('Pharmacie du Fleuve')
  await fundMerchant(service.app.services, shop.merchantId, { amount: 500_000 })
  return { shop, owner: await makePerson(service, shop.merchantId) }
}
const openPage = (person: PasswordMember, path: string) => signedIn(browser, service, person, path)
const press = (page: Page, name: string | RegExp) =>
  page.getByRole('button', { name, exact: true }).first().click()
const says = (page: Page, text: string | RegExp) => page.getByText(text).first().waitFor()
const isUnknown = (page: Page) =>
  page.getByRole('heading', { name: 'Résultat inconnu', exact: true }).waitFor()
const toNew = async (page: Page) => {
  await page.getByRole('link', { name: /Tous les versements/ }).click()
  await page.getByRole('link', { name: 'Nouveau versement' }).click()
}

async function personOf({ token }: TestMerchant, more: object = {}): Promise<number> {
  const body = { name: 'Élise Dembélé', account: customer('00'), payment_method: 'OperatorA', ...more }
  const answer = await service.rest('POST', '/beneficiaries', { token, body })
  expect(answer.status).toBe(201)
  return answer.body.data.id
}
/** Returns amount, status and number of each payout of a merchant, the oldest first. */
async function payoutsOf({ merchantId }: TestMerchant): Promise<string[]> {
  const { rows } = await service.database.owner.query<{ text: string }>(
    `SELECT concat_ws(' ', amount, status, destination_phone) AS text FROM payout
     WHERE merchant_id = $1 ORDER BY id`,
    [merchantId],
  )
  return rows.map(({ text }) => text)
}
async function typePayout(page: Page, phone: string, amount: string): Promise<void> {
  await page.getByLabel('Numéro de téléphone').fill(phone)
  await page.getByLabel('Opérateur du numéro').selectOption('OperatorA')
  await page.getByLabel('Montant').fill(amount)
  await press(page, 'Continuer')
}
type Handler = Parameters<Page['route']>[1]
/** Answers the requests that make a payout. */
const onPayouts = (page: Page, answer: Handler) =>
  page.route('**/graphql', (route, request) =>
    request.postData()?.includes('createPayout') ? answer(route, request) : route.continue(),
  )
const refusal = (code: string): Handler => {
  const errors = [{ message: 'No.', extensions: { code } }]
  return (route) => route.fulfill({ json: { data: null, errors } })
}

describe.skipIf(cannotLook)('payouts at their edges', () => {
  beforeAll(async () => {
    ;({ service, browser } = await openDashboard(() => startTestApp()))
  })
  afterAll(async () => {
    await browser.close()
    await service.close()
  })

  test('a person whose account changed before a lost payout is tried again is not paid', async () => {
    const { shop, owner } = await shopOf()
    const id = await personOf(shop)
    const page = await openPage(owner, `/payouts/new?person=${id}`)
    await page.getByLabel('Montant').fill('40000')
    await press(page, 'Continuer')
    await onPayouts(page, (route) => route.abort())
    await press(page, /Envoyer 40.000/)
    await isUnknown(page)
    await page.unroute('**/graphql')
    const account = customer('00')
    await service.rest('PUT', `/beneficiaries/${id}`, { token: shop.token, body: { account } })
    await press(page, 'Réessayer')
    await says(page, 'Cette personne a changé depuis que vous avez ouvert la page.')
    expect(await payoutsOf(shop)).toEqual([])
    await press(page, 'Continuer')
    await press(page, /Envoyer 40.000/)
    await page.getByText('payé', { exact: true }).waitFor()
    expect(await payoutsOf(shop)).toEqual([`40000 completed ${account}`])
    await page.close()
  })

  test('a person who was deactivated since the page showed them is not paid', async () => {
    const { shop, owner } = await shopOf()
    const id = await personOf(shop)
    const page = await openPage(owner, `/payouts/new?person=${id}`)
    await page.getByLabel('Montant').fill('40000')
    await press(page, 'Continuer')
    const body = { is_active: false }
    await service.rest('PUT', `/beneficiaries/${id}`, { token: shop.token, body })
    await press(page, /Envoyer 40.000/)
    await says(page, 'elle ne peut pas être payée')
    expect(await payoutsOf(shop)).toEqual([])
    await page.close()
  })

  test('a payout tried again after its page was left stays unknown where the try is refused', async () => {
    const { shop, owner } = await shopOf()
    const page = await openPage(owner, '/payouts/new')
    const phone = customer('00')
    await typePayout(page, phone.slice(4), '30000')
    let release = () => {}
    const isReleased = new Promise<void>((resolve) => (release = resolve))
    await onPayouts(page, async (route) => {
      await isReleased
      await route.continue()
    })
    await press(page, /Envoyer 30.000/)
    await says(page, 'Envoi…')
    await toNew(page)
    await isUnknown(page)
    // The answer comes to the page that was left: this one knows nothing of it.
    const late = page.waitForResponse((one) => one.request().postData()?.includes('createPayout') === true)
    release()
    await late
    await eventually(async () => expect(await payoutsOf(shop)).toEqual([`30000 completed ${phone}`]))
    await page.reload()
    await isUnknown(page)
    for (const code of ['RATE_LIMITED', 'FORBIDDEN', 'OVERLOADED', 'IDEMPOTENCY_KEY_BUSY', 'INTERNAL']) {
      await page.unroute('**/graphql')
      await onPayouts(page, refusal(code))
      const [answer] = await Promise.all([page.waitForResponse('**/graphql'), press(page, 'Réessayer')])
      expect(answer.status()).toBe(200)
      await page.getByRole('button', { name: 'Réessayer', exact: true }).waitFor()
      await isUnknown(page)
    }
    await page.unroute('**/graphql')
    await press(page, 'Réessayer')
    await page.getByText('payé', { exact: true }).waitFor()
    expect(await payoutsOf(shop)).toEqual([`30000 completed ${phone}`])
    await page.close()
  })

  test('an unknown payout comes first in every window, also after its own was closed', async () => {
    const { shop, owner } = await shopOf()
    const page = await openPage(owner, '/payouts/new')
    const other = await browser.context.newPage()
    await other.goto(page.url())
    const phone = customer('00')
    await typePayout(page, phone.slice(4), '30000')
    await onPayouts(page, async (route) => {
      await route.fetch()
      return route.abort()
    })
    await press(page, /Envoyer 30.000/)
    await isUnknown(page)
    await page.close()
    await typePayout(other, customer('00').slice(4), '2000')
    await press(other, /Envoyer 2.000/)
    await isUnknown(other)
    await says(other, /30.000.F.CFA/)
    await other.reload()
    await isUnknown(other)
    await press(other, 'Réessayer')
    await other.getByText('payé', { exact: true }).waitFor()
    expect(await payoutsOf(shop)).toEqual([`30000 completed ${phone}`])
    await other.close()
  })

  test('a payout to a saved person is known to the next page from the moment it was sent', async () => {
    const { shop, owner } = await shopOf()
    const id = await personOf(shop)
    const page = await openPage(owner, `/payouts/new?person=${id}`)
    await page.getByLabel('Montant').fill('45000')
    await press(page, 'Continuer')
    const isHeld = (text: string | null) => /createPayout|query PayeeQuery/.test(text ?? '')
    let isSlow = true
    let release = () => {}
    const isReleased = new Promise<void>((resolve) => (release = resolve))
    await page.route('**/graphql', async (route, request) => {
      if (isSlow && isHeld(request.postData())) await isReleased
      await route.continue()
    })
    await press(page, /Envoyer 45.000/)
    await says(page, 'Envoi…')
    await toNew(page)
    await isUnknown(page)
    isSlow = false
    release()
    await eventually(async () => expect((await payoutsOf(shop)).length).toBe(1))
    await press(page, 'Réessayer')
    await page.getByText('payé', { exact: true }).waitFor()
    expect((await payoutsOf(shop)).length).toBe(1)
    await page.close()
  })

  test('the moment of a payout has its day also today, and is in the zone of the account', async () => {
    const { shop, owner } = await shopOf()
    const timeZone = 'Asia/Tokyo'
    await service.rest('PUT', '/settings', { token: shop.token, body: { time_zone: timeZone } })
    const page = await openPage(owner, '/payouts/new')
    const leaves = new Date(Math.floor(Date.now() / 60_000) * 60_000 + 300_000)
    const time = new Intl.DateTimeFormat('sv', { timeZone, timeStyle: 'short' }).format(leaves)
    await page.getByLabel('Un autre jour').check()
    await page.getByLabel('Jour', { exact: true }).fill(dayOf(leaves, timeZone))
    await page.getByLabel('Heure').fill(time)
    await typePayout(page, customer('00').slice(4), '5000')
    const day = new Intl.DateTimeFormat('fr', { timeZone, day: 'numeric', month: 'short' }).format(leaves)
    await says(page, 'Départ')
    const shown = await page.locator('main').innerText()
    expect(shown.replaceAll(/\s/g, ' ')).toContain(day.replaceAll(/\s/g, ' '))
    expect(shown).toContain(time)
    expect(shown).toContain('UTC+9')
    await page.close()
  })

  test('the focus goes to the form that comes back, and to the field that was refused', async () => {
    const { owner } = await shopOf()
    const page = await openPage(owner, '/payouts/new')
    await typePayout(page, customer('00').slice(4), '5000')
    await press(page, 'Modifier')
    const focused = () => page.evaluate<string>('document.activeElement.labels?.[0]?.textContent ?? ""')
    expect(await focused()).toBe('Numéro de téléphone')
    await page.close()
  })
})
