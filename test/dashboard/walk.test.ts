import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { formatPhone, formatXof } from '../../src/dashboard/format.ts'
import { en } from '../../src/dashboard/words/en.ts'
import { fr } from '../../src/dashboard/words/fr.ts'
import { passwordBounds } from '../../src/identity/members/passwords.ts'
import { inviteAsPlatform } from '../../src/resources/team/invite.ts'
import { startTestApp, type TestApp, type TestMerchant } from '../kit/app.ts'
import { cannotLook, type TestBrowser } from '../kit/browser.ts'
import { openDashboard, visit } from '../kit/dashboard.ts'
import { eventually } from '../kit/eventually.ts'
import { customer } from '../kit/fixture.ts'
import { proveLedger } from '../kit/ledger.ts'
import { expectAccessible, photograph } from '../kit/look.ts'
import { secondFactor } from '../kit/people.ts'
import { useBounds } from '../kit/use-bounds.ts'

// A person's first day with the dashboard, by the keyboard alone: joins, signs in with a second factor, sees
// a payment arrive, finds why another failed, and gives one back.

// `passwords.test.ts` tests the cost of a password hash.
useBounds(passwordBounds, { memoryKib: 64, passes: 1 })

let service: TestApp
let browser: TestBrowser

const password = 'le soleil de Bamako'
/** The most controls of a page. */
const controlsMax = 80
/** The name of the control that has the focus, as a screen reader says it. */
const focused = `(() => {
  const { activeElement: at } = document
  const name = at.getAttribute('aria-label') ?? (at.labels?.[0] ?? at).textContent
  return at === document.body ? '' : name.replace(/\\s+/g, ' ').trim()
})()`

/** Moves to a control by the Tab key. */
async function reach(page: Page, name: string): Promise<void> {
  const due = name.replaceAll(/\s+/g, ' ')
  const passed: string[] = []
  while (passed.length < controlsMax) {
    await page.keyboard.press('Tab')
    const reached = await page.evaluate<string>(focused)
    if (reached === due) return
    passed.push(reached)
  }
  throw new Error(`The Tab key does not reach "${due}", but: ${passed.join(' · ')}`)
}
async function press(page: Page, name: string): Promise<void> {
  await reach(page, name)
  await page.keyboard.press('Enter')
}

/** Makes a payment as a second client. @returns its id in REST, and the number of its customer */
async function pay(shop: TestMerchant, amount: number, scenario: string) {
  const phone = customer(scenario, '00')
  const reference = `facture <b>${amount}</b>`
  const body = { amount, customer_phone: phone, payment_method: 'OperatorA', reference }
  const answer = await service.rest('POST', '/pay', { token: shop.token, body })
  expect(answer.status).toBe(202)
  return { id: Number(answer.body.data.transaction_id), phone: formatPhone(phone) }
}

async function refundsOf(id: number): Promise<unknown[]> {
  const { rows } = await service.database.owner.query(
    'SELECT amount::int, status FROM transaction WHERE refund_of_id = $1',
    [id],
  )
  return rows
}

/** Signs in by an API, as a telephone would to read the code for its second factor. */
async function tokenOf(email: string): Promise<string> {
  const document = `mutation ($input: SignInInput!) { signIn(input: $input) { ... on SignedIn { token } } }`
  const { body } = await service.graphql(document, { input: { email, password } })
  return String(body['data'].signIn.token)
}

describe.skipIf(cannotLook)('the first day of a person', () => {
  beforeAll(async () => {
    ;({ service, browser } = await openDashboard(() => startTestApp()))
  })
  afterAll(async () => {
    const problems = await proveLedger(service.database.database.pool)
    await browser.close()
    await service.close()
    if (problems.length > 0) throw new Error(JSON.stringify(problems))
  })

  test.each([
    ['fr', 360, 'light'],
    ['en', 360, 'dark'],
    ['fr', 1280, 'dark'],
    ['en', 1280, 'light'],
  ] as const)('in %s, %i pixels wide, %s', async (language, width, colorScheme) => {
    const words = { fr, en }[language]
    const shop = await service.merchant('Boulangerie <i>Sahel</i>')
    const email = `awa-${language}-${width}@boulangerie.test`
    const person = { name: 'Awa Traoré', email, role: 'owner' } as const
    const { token } = await inviteAsPlatform(service.app.services, shop.merchantId, person)
    const page = await visit(browser, `${service.url}/join?lang=${language}#${token}`)
    const look = async (name: string) => {
      await expectAccessible(page)
      await photograph(page, `app/walk-${language}-${width}-${colorScheme}/${name}`)
    }
    await page.setViewportSize({ width, height: 640 })
    await page.emulateMedia({ colorScheme })

    await page.getByText(email).waitFor()
    await look('1-join')
    await page.keyboard.press('Tab')
    await page.keyboard.press('Tab')
    await page.keyboard.type(password)
    await page.keyboard.press('Tab')
    await page.keyboard.type(password)
    await page.keyboard.press('Enter')
    await page.waitForURL('**/app')
    await page.locator('.menu').waitFor()
    if (language === 'en') {
      await press(page, person.name)
      await press(page, fr.otherLanguage)
    }
    await page.getByRole('heading', { name: words.home.available }).waitFor()
    await page.getByText(words.home.empty).waitFor()
    await look('2-empty')

    const { code } = await secondFactor(service, { token: await tokenOf(email), password })
    await press(page, person.name)
    await press(page, words.signOut)
    await page.getByText(words.signIn.signedOut).waitFor()
    await page.keyboard.type(email)
    await page.keyboard.press('Tab')
    await page.keyboard.type(password)
    await page.keyboard.press('Enter')
    await page.getByLabel(words.signIn.code).waitFor()
    await look('3-code')
    await page.keyboard.type(code())
    await page.keyboard.press('Enter')
    await page.getByText(words.home.live).waitFor()

    const paid = await pay(shop, 12_500, '00')
    const refused = await pay(shop, 7_000, '02')
    const rows = page.locator('.rows > li')
    await rows
      .filter({ hasText: formatXof(12_500, language) })
      .getByText(words.statuses.SUCCESS)
      .waitFor()
    await rows
      .filter({ hasText: formatXof(7_000, language) })
      .getByText(words.statuses.FAILED)
      .waitFor()
    await page.locator('canvas').waitFor()
    await look('4-live')

    await press(page, words.payments.title)
    await page.getByText(words.payments.count(2, '2')).waitFor()
    await look('5-payments')
    await press(page, words.payments.statusGroups.failed)
    await page.getByText(words.payments.count(1, '1')).waitFor()
    await press(page, refused.phone)
    await page.getByRole('heading', { name: words.payment.why }).waitFor()
    expect(await page.locator('.alert').innerText()).toContain(words.payment.who.CUSTOMER)
    await look('6-failed')

    await press(page, `← ${words.payment.back}`)
    await page.getByText(words.payments.count(1, '1')).waitFor()
    await press(page, words.payments.all)
    await page.getByText(words.payments.count(2, '2')).waitFor()
    await press(page, paid.phone)
    await press(page, words.refund.open)
    await page.getByRole('heading', { name: words.refund.titles.typing }).waitFor()
    await page.keyboard.press('ControlOrMeta+A')
    await page.keyboard.type('4000')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: words.refund.titles.checking }).waitFor()
    // A second Enter sends nothing.
    await page.keyboard.press('Enter')
    await look('7-check')
    expect(await refundsOf(paid.id)).toEqual([])
    const amount = formatXof(4_000, language)
    await press(page, words.refund.send(amount))
    await page.getByText(words.refund.done(amount)).waitFor()
    await look('8-refunded')
    await press(page, words.refund.close)
    expect(await page.evaluate(focused)).toBe(words.refund.open)
    await page.getByRole('heading', { name: words.payment.refunds }).waitFor()
    await eventually(async () =>
      expect(await page.locator('main').innerText()).toContain(words.payment.kinds.REFUNDED),
    )
    await look('9-payment')
    expect(await refundsOf(paid.id)).toEqual([{ amount: 4_000, status: 'success' }])
    await page.close()
  })
})
