import type { Page, Route } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { passwordBounds } from '../../src/identity/members/passwords.ts'
import { startTestApp, type TestApp, type TestMerchant } from '../kit/app.ts'
import { cannotLook, type TestBrowser } from '../kit/browser.ts'
import { openDashboard, signedIn } from '../kit/dashboard.ts'
import { customer } from '../kit/fixture.ts'
import { expectGoodLook } from '../kit/look.ts'
import { makePerson } from '../kit/people.ts'
import { useBounds } from '../kit/use-bounds.ts'

// The screens of a bad day: a slow network, a fault of the service, a right that was taken away.

// `passwords.test.ts` tests the cost of a password hash.
useBounds(passwordBounds, { memoryKib: 64, passes: 1 })

let service: TestApp
let browser: TestBrowser
let shop: TestMerchant

/** Opens the dashboard as a person, and then the list of payments, whose questions go through `meet`. */
async function openPayments(meet: (route: Route) => Promise<void>): Promise<Page> {
  const page = await signedIn(browser, service, await makePerson(service, shop.merchantId))
  await page.route('**/graphql', (route) =>
    route.request().postData()?.includes('PaymentsQuery') ? meet(route) : route.continue(),
  )
  await page.goto(`${service.url}/app/payments`)
  return page
}

describe.skipIf(cannotLook)('a screen', () => {
  beforeAll(async () => {
    ;({ service, browser } = await openDashboard(() => startTestApp()))
    shop = await service.merchant('Épicerie')
  })
  afterAll(async () => {
    await browser.close()
    await service.close()
  })

  test('of a slow network says so, and is there when the answer comes', async () => {
    let go = () => {}
    const held = new Promise<void>((resolve) => (go = resolve))
    const page = await openPayments(async (route) => {
      await held
      await route.continue()
    })
    await page.getByText('Chargement…').waitFor()
    await page.getByText('Le réseau est lent. Encore un instant…').waitFor()
    await expectGoodLook(page, 'app/state-slow')
    go()
    await page.getByText('Rien encore : le premier paiement apparaîtra ici tout seul.').waitFor()
    expect(await page.getByText('Le réseau est lent').count()).toBe(0)
    await page.close()
  })

  test('of a fault shows the number that the answer of the service has, and goes on by itself', async () => {
    const { merchantPool } = service.app.services.database
    const query = merchantPool.query.bind(merchantPool) as (...given: unknown[]) => void
    const broken = vi.spyOn(merchantPool, 'query').mockImplementation((...given: unknown[]) => {
      const { name } = given[0] as { name?: string }
      if (name === 'transaction_total') throw new Error('hunter2')
      return query(...given)
    })
    let requestId: string | undefined
    const page = await openPayments(async (route) => {
      const response = await route.fetch()
      requestId ??= response.headers()['x-request-id']
      await route.fulfill({ response })
    })
    const number = page.getByText('Si elle revient, donnez ce numéro à l’assistance :').locator('code')
    expect([await number.innerText(), await number.innerText()]).toEqual([requestId, requestId])
    await expectGoodLook(page, 'app/state-fault')
    expect(await page.locator('body').innerText()).not.toContain('hunter2')
    broken.mockRestore()
    await page.getByText('Rien encore : le premier paiement apparaîtra ici tout seul.').waitFor()
    await page.close()
  })

  test('whose script does not come says so, and comes with the next try', async () => {
    const page = await signedIn(browser, service, await makePerson(service, shop.merchantId))
    await page.route('**/person-*.js', (route) => route.abort())
    await page.reload()
    await page.getByText('Le service ne répond pas. Vérifiez votre connexion, puis réessayez.').waitFor()
    await page.unroute('**/person-*.js')
    await page.getByRole('button', { name: 'Réessayer' }).click()
    await page.getByRole('heading', { name: 'Disponible' }).waitFor()
    expect(await page.getByText('Le service ne répond pas').count()).toBe(0)
    await page.close()
  })

  test('of a person whose role was changed asks to sign in again, and nothing is refunded', async () => {
    const other = await service.merchant('Autre')
    const person = await makePerson(service, other.merchantId, { role: 'finance' })
    const body = { amount: 9_000, customer_phone: customer('00'), payment_method: 'OperatorA' }
    const { body: paid } = await service.rest('POST', '/pay', { token: other.token, body })
    const page = await signedIn(browser, service, person)
    await page.goto(`${service.url}/app/payments/${paid.data.transaction_id}`)
    await page.getByRole('button', { name: 'Rembourser' }).click()
    await page.getByRole('button', { name: 'Continuer' }).click()
    const send = page.getByRole('button', { name: /^Rendre/ })
    await send.waitFor()
    await service.database.owner.query(`UPDATE team_member SET role = 'viewer' WHERE id = $1`, [
      person.memberId,
    ])
    // The page may find out by itself, before the button is pressed.
    const ended = page.getByText('Votre session est terminée. Connectez-vous de nouveau.')
    await Promise.any([send.click(), ended.waitFor()])
    await ended.waitFor()
    const { rows } = await service.database.owner.query(
      'SELECT FROM transaction WHERE refund_of_id IS NOT NULL',
    )
    expect(rows).toEqual([])
    await page.close()
  })
})
