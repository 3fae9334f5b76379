import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { passwordBounds } from '../../src/identity/members/passwords.ts'
import { fundMerchant } from '../../src/resources/merchants/fund.ts'
import { startTestApp, type TestApp, type TestMerchant } from '../kit/app.ts'
import { cannotLook, type TestBrowser } from '../kit/browser.ts'
import { openDashboard, typeCredentials, visit } from '../kit/dashboard.ts'
import { eventually } from '../kit/eventually.ts'
import { expectAccessible, expectGoodLook, photograph } from '../kit/look.ts'
import { makePerson, type PasswordMember } from '../kit/people.ts'
import { useBounds } from '../kit/use-bounds.ts'

// Every screen of the dashboard: axe-core finds nothing, nothing overflows, in both languages, light and
// dark.

// `passwords.test.ts` tests the cost of a password hash.
useBounds(passwordBounds, { memoryKib: 64, passes: 1 })

let service: TestApp
let browser: TestBrowser
let page: Page
let shop: TestMerchant
let person: PasswordMember

const goTo = (path: string) => page.goto(`${service.url}/app${path}`)
async function wrongPassword(): Promise<void> {
  await goTo('')
  await typeCredentials(page, { ...person, password: 'la lune de Kayes' })
  await page.locator('.problem').waitFor()
}
async function home(): Promise<void> {
  await service.database.owner.query('TRUNCATE sign_in_wait')
  await goTo('')
  await typeCredentials(page, person)
  await page.locator('canvas').waitFor()
}
async function menu(): Promise<void> {
  await goTo('')
  // A page that still loads has no heading.
  await page.locator('main h1').waitFor({ state: 'attached' })
  await page.locator('.menu > summary').click()
}
async function figures(): Promise<void> {
  await goTo('')
  await page.locator('figure summary').click()
}

async function filters(): Promise<void> {
  await goTo('/payments?status=over&link=77')
  await page.getByText('Filtres (2)').click()
  await page.getByRole('button', { name: 'Enregistrer ce filtre' }).click()
}
async function paymentOf(amount: string): Promise<void> {
  const { rows } = await service.database.owner.query<{ id: string }>(
    'SELECT id FROM transaction WHERE amount = $1',
    [amount],
  )
  await goTo(`/payments/${rows[0]?.id}`)
}
async function refund(): Promise<void> {
  await paymentOf('12500')
  await page.getByRole('button', { name: 'Rembourser' }).click()
}
async function refundCheck(): Promise<void> {
  await refund()
  await page.getByRole('button', { name: 'Continuer' }).click()
}

async function rejection(): Promise<void> {
  await goTo('/approvals')
  await page.getByRole('button', { name: 'Refuser' }).click()
}

async function wrongTable(): Promise<void> {
  await goTo('/payroll/new')
  await page.locator('input[type=file]').setInputFiles({
    name: 'salaires novembre.csv',
    mimeType: 'text/csv',
    buffer: Buffer.from('nom;numéro;montant\r\nAwa Traoré;7000;5,5\r\nMoussa Coulibaly;70000002;=1\r\n'),
  })
  await page.getByRole('button', { name: 'Vérifier le fichier' }).click()
}

async function payrollOf(title: string): Promise<void> {
  await goTo('/payroll')
  await page.getByRole('link', { name: title }).click()
}

/** The screens in the order of a visit, each with a text that shows that it is there. */
const screens: readonly [name: string, shows: string, open: () => Promise<unknown>][] = [
  ['sign-in', 'form button', () => goTo('')],
  [
    'sign-in-accounts',
    'details[open] input',
    async () => (await goTo(''), page.locator('form summary').click()),
  ],
  ['wrong-password', '.problem', wrongPassword],
  ['forgotten', 'form button', () => goTo('/forgotten')],
  ['home', '.rows', home],
  ['home-figures', 'table', figures],
  ['menu', 'nav', menu],
  ['payments', '.rows', () => goTo('/payments')],
  ['payments-filters', '.conditions', () => filters()],
  ['payment-failed', '.timeline', () => paymentOf('1000000')],
  ['payment', '.timeline', () => paymentOf('12500')],
  ['refund', 'dialog[open] form', () => refund()],
  ['refund-check', 'dialog[open] .sum', () => refundCheck()],
  ['payment-missing', 'main p', () => goTo('/payments/0')],
  ['approvals', '.facts', () => goTo('/approvals')],
  ['approval-reject', 'dialog[open] form', () => rejection()],
  ['payrolls', '.rows', () => goTo('/payroll')],
  ['payroll-new', 'input[type=file]', () => goTo('/payroll/new')],
  ['payroll-problems', '.alert .problem', () => wrongTable()],
  ['payroll-draft', '[aria-label="Avant de payer"] .facts', () => payrollOf('Salaires 12/2026')],
  ['payroll-ended', '.recipients .reason', () => payrollOf('Salaires 11/2026')],
  ['statement', '.lines', () => goTo('/statement')],
  ['statement-empty', '.sums', () => goTo('/statement?month=2024-02')],
  ['sessions', '.rows', () => goTo('/sessions')],
  ['missing', 'main h1', () => goTo('/nothing-here')],
]

/** Makes a payroll that ended with failures, and a draft. */
async function makePayrolls({ token }: { token: string }): Promise<void> {
  const people = ['70000001', '70030001', '70040001', '70000002'].map((account, index) => ({
    name: `Fatoumata Diakité-Coulibaly épouse Konaté ${index + 1}`,
    account,
    amount: 1_250_000,
    payment_method: 'OperatorA',
  }))
  const { owner } = service.database
  const approvals = 'UPDATE merchant SET payouts_require_approval = $2 WHERE id = $1'
  await owner.query(approvals, [shop.merchantId, false])
  for (const title of ['Salaires 11/2026', 'Salaires 12/2026']) {
    const body = { title, recipients: people }
    const { id } = (await service.rest('POST', '/bulk/batches', { token, body })).body.data
    if (title.includes('11/')) await service.rest('POST', `/bulk/batches/${id}/process`, { token })
  }
  await eventually(async () => {
    const { rows } = await owner.query(`SELECT FROM batch WHERE status = 'partially_completed'`)
    return rows.length === 1
  })
  await owner.query(approvals, [shop.merchantId, true])
}

describe.skipIf(cannotLook)('every screen of the dashboard', () => {
  beforeAll(async () => {
    ;({ service, browser } = await openDashboard(() => startTestApp()))
    shop = await service.merchant('Coopérative des maraîchers et transformatrices du cercle de Koulikoro')
    person = await makePerson(service, shop.merchantId, { name: 'Fatoumata Diakité-Coulibaly' })
    const other = await service.merchant('Pharmacie du Fleuve')
    await makePerson(service, other.merchantId, { email: person.email })
    await fundMerchant(service.app.services, shop.merchantId, { amount: 987_654_321 })
    const { owner } = service.database
    await owner.query('UPDATE merchant SET payouts_require_approval = true WHERE id = $1', [shop.merchantId])
    const post = (path: string, body: object, { token } = shop as { token: string }) =>
      service.rest('POST', path, { token, body })
    const operator = { payment_method: 'OperatorA' }
    const clerk = await makePerson(service, shop.merchantId, { role: 'finance' })
    await post('/payouts', { amount: 1_000_000, destination_phone: '70000009', ...operator }, clerk)
    for (const [phone, amount] of [
      ['70000001', 12_500],
      ['70020001', 1_000_000],
      ['70110001', 9_900],
    ] as const) {
      await post('/pay', {
        amount,
        customer_phone: phone,
        reference: `facture-${'0'.repeat(60)}-${amount}`,
        ...operator,
      })
    }
    await makePayrolls(clerk)
    await eventually(async () => {
      const { rows } = await owner.query(`SELECT FROM transaction WHERE status IN ('success', 'failed')`)
      return rows.length === 2
    })
    page = await visit(browser, `${service.url}/app`)
  })
  afterAll(async () => {
    await browser.close()
    await service.close()
  })

  test.each(screens)('%s', async (name, shows, open) => {
    await page.emulateMedia({ colorScheme: 'light' })
    await open()
    await page.locator(shows).first().waitFor()
    await expectGoodLook(page, `app/${name}`)
    // The screen was there all the while.
    expect(await page.locator(shows).first().isVisible()).toBe(true)
  })

  test.each([
    '',
    '/payments',
    '/payments?status=failed',
    '/approvals',
    '/payroll',
    '/payroll/new',
    '/statement?month=2024-02',
    '/sessions',
  ])('the screen "%s" is in English from end to end', async (path) => {
    await page.evaluate(`localStorage.setItem('language', 'en')`)
    await goTo(path)
    await page.locator('.rows, .facts, .sums, input').first().waitFor()
    await expectAccessible(page)
    const shown = await page.locator('main').innerText()
    expect(shown).not.toMatch(/[éèàç’]|\bles?\b|\bdes?\b|paiement/)
    await photograph(page, `app/en${path.replaceAll(/\W/g, '-')}`)
    await page.evaluate(`localStorage.clear()`)
  })
})
