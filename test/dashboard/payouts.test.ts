import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { passwordBounds } from '../../src/identity/members/passwords.ts'
import { dayOf } from '../../src/dashboard/format.ts'
import { fundMerchant } from '../../src/resources/merchants/fund.ts'
import { startTestApp, type TestApp, type TestMerchant } from '../kit/app.ts'
import { approvePayout, payOut, team } from '../kit/approval-team.ts'
import { cannotLook, type TestBrowser } from '../kit/browser.ts'
import { openDashboard, signedIn } from '../kit/dashboard.ts'
import { eventually } from '../kit/eventually.ts'
import { customer, hour } from '../kit/fixture.ts'
import { makePerson, type PasswordMember } from '../kit/people.ts'
import { useBounds } from '../kit/use-bounds.ts'

// A person pays out to a number or to a saved person, now or on a day, and cancels.

// `passwords.test.ts` tests the cost of a password hash.
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

/** Saves a person by REST. @returns the id in REST */
async function personOf({ token }: TestMerchant, more: object = {}): Promise<number> {
  const body = { name: 'Élise Dembélé', account: customer('00'), payment_method: 'OperatorA', ...more }
  const answer = await service.rest('POST', '/beneficiaries', { token, body })
  expect(answer.status).toBe(201)
  return answer.body.data.id
}
/** Returns amount and status of each payout of a merchant, the oldest first. */
async function payoutsOf({ merchantId }: TestMerchant): Promise<string[]> {
  const { rows } = await service.database.owner.query<{ text: string }>(
    `SELECT amount || ' ' || status AS text FROM payout WHERE merchant_id = $1 ORDER BY id`,
    [merchantId],
  )
  return rows.map(({ text }) => text)
}
/** Returns the amount of a payout to a new number, typed and continued to the second look. */
async function typePayout(page: Page, phone: string, amount: string): Promise<void> {
  await page.getByLabel('Numéro de téléphone').fill(phone.slice(4))
  await page.getByLabel('Opérateur du numéro').selectOption('OperatorA')
  await page.getByLabel('Montant').fill(amount)
  await press(page, 'Continuer')
}
/** Lets the service carry out what contains a text, and loses its answers. */
async function loseAnswers(page: Page, text: string): Promise<void> {
  await page.route('**/graphql', async (route) => {
    if (!route.request().postData()?.includes(text)) return route.continue()
    await route.fetch()
    return route.abort()
  })
}

describe.skipIf(cannotLook)('payouts', () => {
  beforeAll(async () => {
    ;({ service, browser } = await openDashboard(() => startTestApp()))
  })
  afterAll(async () => {
    await browser.close()
    await service.close()
  })

  test('a payout to a number is checked twice, sent once, and shown until it is paid', async () => {
    const { shop, owner } = await shopOf()
    const page = await openPage(owner, '/payouts')
    await says(page, 'Aucun versement encore.')
    await page.getByRole('link', { name: 'Nouveau versement' }).click()
    await press(page, 'Continuer')
    await says(page, 'Écrivez un numéro de huit chiffres')
    await page.getByLabel('Numéro de téléphone').fill('70 00 00')
    await press(page, 'Continuer')
    await says(page, 'Écrivez un numéro de huit chiffres')
    await typePayout(page, customer('00'), '999')
    await says(page, 'Écrivez un montant entier')
    await page.getByLabel('Montant').fill('12.500')
    await page.getByLabel('Référence').fill('Loyer novembre')
    await press(page, 'Continuer')
    await page.getByRole('heading', { name: 'Vérifiez avant d’envoyer', exact: true }).waitFor()
    await says(page, /487.500/)
    // Where the button that sends stands under the pointer, the second click of a double click meets it.
    await page.getByRole('button', { name: /Envoyer 12.500/ }).dispatchEvent('click', { detail: 2 })
    expect(await page.getByRole('button', { name: /Envoyer 12.500/ }).count()).toBe(1)
    expect(await payoutsOf(shop)).toEqual([])
    await page.getByRole('button', { name: /Envoyer 12.500/ }).click()
    await page.getByText('payé', { exact: true }).waitFor()
    await says(page, 'Loyer novembre')
    expect(await payoutsOf(shop)).toEqual(['12500 completed'])
    // The way back leads to no form that could send it again.
    await page.goBack()
    await page.getByRole('heading', { name: 'Versements', exact: true }).waitFor()
    await says(page, 'Loyer novembre')
    await page.close()
  })

  test('a saved person is paid on a day, and the page shows it live', async () => {
    const { shop, owner } = await shopOf()
    const page = await openPage(owner, '/payouts/people')
    await page.getByRole('link', { name: 'Ajouter une personne' }).click()
    await page.getByLabel('Nom').fill('Mariam Sangaré')
    await page.getByLabel('Numéro de téléphone').fill('123')
    await page.getByLabel('Opérateur du numéro').selectOption('OperatorA')
    await press(page, 'Enregistrer')
    await says(page, 'Écrivez un numéro de huit chiffres')
    await page.getByLabel('Numéro de téléphone').fill(customer('00').slice(4))
    await press(page, 'Enregistrer')
    await page.getByRole('heading', { name: 'Mariam Sangaré', exact: true }).waitFor()
    await page.getByRole('link', { name: 'Payer cette personne' }).click()
    await page.getByLabel('Montant').fill('25 000')
    await page.getByLabel('Un autre jour').check()
    await page.getByLabel('Jour', { exact: true }).fill('2020-01-01')
    await press(page, 'Continuer')
    await says(page, 'Choisissez un moment à venir')
    const leaves = new Date(Date.now() + 3 * hour)
    await page.getByLabel('Jour', { exact: true }).fill(dayOf(leaves))
    await page.getByLabel('Heure').fill(leaves.toISOString().slice(11, 16))
    await press(page, 'Continuer')
    await says(page, 'Vous pouvez annuler ce versement jusqu’à son départ.')
    await page.getByRole('button', { name: /Prévoir 25.000/ }).click()
    await page.getByText('prévu', { exact: true }).waitFor()
    expect(await payoutsOf(shop)).toEqual(['25000 pending'])
    await service.app.services.sandbox?.advanceClock(4 * hour)
    await page.getByText('payé', { exact: true }).waitFor()
    await page.getByRole('link', { name: 'Mariam Sangaré' }).click()
    await page.locator('.rows li').getByText('payé').waitFor()
    expect(await payoutsOf(shop)).toEqual(['25000 completed'])
    await page.close()
  })

  test('a payout of another day is cancelled before it leaves', async () => {
    const { shop, owner } = await shopOf()
    const body = { amount: 7_000, destination_phone: customer('00'), payment_method: 'OperatorA' }
    const scheduled = { ...body, scheduled_at: new Date(Date.now() + 48 * hour).toISOString() }
    await service.rest('POST', '/payouts', { token: shop.token, body: scheduled })
    const page = await openPage(owner, '/payouts?status=waiting')
    await page.locator('.rows a').click()
    await press(page, 'Annuler le versement')
    await page.getByRole('dialog').getByRole('button', { name: 'Fermer' }).click()
    expect(await payoutsOf(shop)).toEqual(['7000 pending'])
    await press(page, 'Annuler le versement')
    await page.getByRole('dialog').getByRole('button', { name: 'Annuler le versement' }).click()
    await page.getByText('annulé', { exact: true }).waitFor()
    expect(await payoutsOf(shop)).toEqual(['7000 cancelled'])
    expect(await page.getByRole('button', { name: 'Annuler le versement' }).count()).toBe(0)
    await page.close()
  })

  test('a payout whose answer was lost is made once, also where the page is loaded anew', async () => {
    const { shop, owner } = await shopOf()
    const page = await openPage(owner, '/payouts/new')
    await typePayout(page, customer('00'), '30000')
    await loseAnswers(page, 'createPayout')
    await page.getByRole('button', { name: /Envoyer 30.000/ }).click()
    await page.getByRole('heading', { name: 'Résultat inconnu', exact: true }).waitFor()
    await press(page, 'Réessayer')
    await says(page, 'Nous ne savons pas encore si le versement est parti.')
    await page.reload()
    await page.getByRole('heading', { name: 'Résultat inconnu', exact: true }).waitFor()
    await says(page, /30.000.F.CFA/)
    await page.unroute('**/graphql')
    await press(page, 'Réessayer')
    await page.getByText('payé', { exact: true }).waitFor()
    expect(await payoutsOf(shop)).toEqual(['30000 completed'])
    await page.goto(`${service.url}/app/payouts/new`)
    await page.getByLabel('Numéro de téléphone').waitFor()
    expect(await page.getByLabel('Montant').inputValue()).toBe('')
    await page.close()
  })

  test('a saved person whose account changed since the page showed it is not paid', async () => {
    const { shop, owner } = await shopOf()
    const id = await personOf(shop)
    const page = await openPage(owner, `/payouts/new?person=${id}`)
    await page.getByLabel('Montant').fill('40000')
    await press(page, 'Continuer')
    const account = customer('00')
    await service.rest('PUT', `/beneficiaries/${id}`, { token: shop.token, body: { account } })
    await page.getByRole('button', { name: /Envoyer 40.000/ }).click()
    await says(page, 'Cette personne a changé depuis que vous avez ouvert la page.')
    expect(await payoutsOf(shop)).toEqual([])
    expect((await page.locator('main').innerText()).replaceAll(/\D/g, '')).toContain(account.slice(4))
    await press(page, 'Continuer')
    await page.getByRole('button', { name: /Envoyer 40.000/ }).click()
    await page.getByText('payé', { exact: true }).waitFor()
    const { rows } = await service.database.owner.query(
      'SELECT destination_phone AS phone, beneficiary_id AS person FROM payout WHERE merchant_id = $1',
      [shop.merchantId],
    )
    expect(rows).toEqual([{ phone: account, person: id }])
    await page.close()
  })

  test('a payout above the balance, and a reference that was used, are refused at the form', async () => {
    const { shop, owner } = await shopOf()
    const page = await openPage(owner, '/payouts/new')
    await typePayout(page, customer('00'), '600000')
    await page.getByRole('button', { name: /Envoyer 600.000/ }).click()
    await says(page, 'Le solde disponible ne suffit pas.')
    await page.getByLabel('Montant').fill('6000')
    await page.getByLabel('Référence').fill('F-1')
    await press(page, 'Continuer')
    await page.getByRole('button', { name: /Envoyer 6.000/ }).click()
    await page.getByText('payé', { exact: true }).waitFor()
    await page.goto(`${service.url}/app/payouts/new`)
    await page.getByLabel('Référence').fill('F-1')
    await typePayout(page, customer('00'), '6000')
    await page.getByRole('button', { name: /Envoyer 6.000/ }).click()
    await says(page, 'Cette référence a déjà servi')
    expect(await payoutsOf(shop)).toEqual(['6000 completed'])
    await page.close()
  })

  test('a payout that failed says why, and is made again with the same payee and amount', async () => {
    const { shop, owner } = await shopOf()
    const phone = customer('03')
    const body = { amount: 8_000, destination_phone: phone, payment_method: 'OperatorA' }
    await service.rest('POST', '/payouts', { token: shop.token, body })
    await eventually(async () => expect(await payoutsOf(shop)).toEqual(['8000 failed']))
    const page = await openPage(owner, '/payouts?status=failed')
    await page.locator('.rows a').click()
    await page.getByRole('heading', { name: 'Pourquoi il a échoué' }).waitFor()
    await page.getByRole('link', { name: 'Refaire ce versement' }).click()
    await page.getByLabel('Montant').waitFor()
    expect(await page.getByLabel('Montant').inputValue()).toBe('8000')
    expect((await page.getByLabel('Numéro de téléphone').inputValue()).replaceAll(' ', '')).toBe(
      phone.slice(4),
    )
    expect(await page.getByLabel('Opérateur du numéro').inputValue()).toBe('OperatorA')
    await page.close()
  })

  test('a payout that needs an approval waits for it, and is paid while its maker looks on', async () => {
    const { shop, clerk, boss } = await team(service)
    const page = await openPage(clerk, '/payouts/new')
    await typePayout(page, customer('00'), '9000')
    await page.getByRole('button', { name: /Envoyer 9.000/ }).click()
    await page.getByText('à approuver', { exact: true }).waitFor()
    const id = Number(page.url().split('/').at(-1))
    await approvePayout(service, boss, id)
    await page.getByText('payé', { exact: true }).waitFor()
    await says(page, '1 sur 1 · ⁨Awa Traoré⁩')
    // A rejected payout names the person who rejected it, and the reason.
    const other = await payOut(service, clerk, 5_000)
    const rejection = `mutation { rejectPayout(id: "${other}", reason: "Facture en double") { __typename } }`
    await service.graphql(rejection, {}, boss.token)
    await page.goto(`${service.url}/app/payouts/${other}`)
    await says(page, /Refusé par.*Awa Traoré.*:.*Facture en double/)
    expect(await payoutsOf(shop)).toEqual(['9000 completed', '5000 cancelled'])
    await page.close()
  })

  test('the list is live, searched, and filtered', async () => {
    const { shop, owner } = await shopOf()
    const person = await personOf(shop)
    const post = (body: object) => service.rest('POST', '/payouts', { token: shop.token, body })
    await post({ amount: 1_500, beneficiary_id: person })
    const page = await openPage(owner, '/payouts')
    await page.locator('.rows li').getByText('payé').waitFor()
    await post({ amount: 2_500, destination_phone: customer('03'), payment_method: 'OperatorA' })
    await page.locator('.rows li').getByText('échoué').waitFor()
    expect(await page.locator('.rows li').count()).toBe(2)
    await page.getByRole('searchbox').fill('elise')
    await press(page, 'Chercher')
    await page.waitForURL('**/payouts?search=elise')
    await page.getByRole('link', { name: 'Élise Dembélé' }).waitFor()
    await page.getByRole('link', { name: 'Échoués ou annulés' }).click()
    await says(page, 'Aucun versement ne correspond.')
    expect(new URL(page.url()).search).toBe('?status=failed&search=elise')
    await page.close()
  })

  test('saved people are found without accents and capitals, changed, and deactivated', async () => {
    const { shop, owner } = await shopOf()
    const phone = customer('00')
    const id = await personOf(shop, { account: phone })
    for (let index = 0; index < 104; index += 1) await personOf(shop, { name: `Client ${index}` })
    const page = await openPage(owner, '/payouts/people')
    await page.getByRole('searchbox').fill('ELISE dem')
    await page.getByRole('link', { name: 'Élise Dembélé' }).waitFor()
    expect(await page.locator('.rows li').count()).toBe(1)
    await page.getByRole('searchbox').fill(phone.slice(4).replaceAll(/(..)/g, '$1 '))
    await page.getByRole('link', { name: 'Élise Dembélé' }).click()
    await page.getByText('Modifier').click()
    // Another window renames the person meanwhile: the form sends what was changed here, and nothing else.
    await service.rest('PUT', `/beneficiaries/${id}`, { token: shop.token, body: { name: 'Élise Traoré' } })
    await page.getByLabel('Lien avec vous').selectOption('EMPLOYEE')
    await press(page, 'Enregistrer')
    await says(page, 'Enregistré.')
    await page.getByRole('heading', { name: 'Élise Traoré', exact: true }).waitFor()
    await press(page, 'Désactiver')
    await page.getByRole('dialog').getByRole('button', { name: 'Désactiver' }).click()
    await says(page, 'désactivée')
    expect(await page.getByRole('link', { name: 'Payer cette personne' }).count()).toBe(0)
    await page.goto(`${service.url}/app/payouts/new?person=${id}`)
    await says(page, 'elle ne peut pas être payée')
    const { body } = await service.rest('GET', `/beneficiaries/${id}`, { token: shop.token })
    expect(body.data).toMatchObject({ name: 'Élise Traoré', category: 'employee', is_active: false })
    await page.close()
  })

  test('a viewer sees payouts and people, and changes nothing', async () => {
    const { shop } = await shopOf()
    const id = await personOf(shop)
    const viewer = await makePerson(service, shop.merchantId, { role: 'viewer' })
    const page = await openPage(viewer, '/payouts')
    await says(page, 'Aucun versement encore.')
    expect(await page.getByRole('link', { name: 'Nouveau versement' }).count()).toBe(0)
    await page.goto(`${service.url}/app/payouts/new?person=${id}`)
    await says(page, 'Votre rôle ne permet pas de faire un versement.')
    await page.goto(`${service.url}/app/payouts/people/${id}`)
    await page.getByRole('heading', { name: 'Élise Dembélé', exact: true }).waitFor()
    expect(await page.locator('main').getByRole('button').count()).toBe(0)
    expect(await page.getByRole('link', { name: 'Payer cette personne' }).count()).toBe(0)
    await page.close()
  })
})
