import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { passwordBounds } from '../../src/identity/members/passwords.ts'
import { batch, becomes, payOut, team } from '../kit/approval-team.ts'
import { startTestApp, type TestApp } from '../kit/app.ts'
import { cannotLook, type TestBrowser } from '../kit/browser.ts'
import { openDashboard, signedIn } from '../kit/dashboard.ts'
import { eventually } from '../kit/eventually.ts'
import { proveLedger } from '../kit/ledger.ts'
import { makePerson, type PasswordMember } from '../kit/people.ts'
import { useBounds } from '../kit/use-bounds.ts'

// The words of the cards of requests that wait for an approval.

// `passwords.test.ts` tests the cost of a password hash.
useBounds(passwordBounds, { memoryKib: 64, passes: 1 })

let service: TestApp
let browser: TestBrowser

const openApprovals = (person: PasswordMember) => signedIn(browser, service, person, '/approvals')
/** Reads a card, without the marks that keep the direction of names. */
const cardOf = async (page: Page) =>
  (await page.locator('section.card').innerText()).replaceAll(/[\u2068\u2069]/g, '').replaceAll(/\s+/g, ' ')
const press = (page: Page, name: string | RegExp) =>
  page.getByRole('button', { name, exact: true }).first().click()

describe.skipIf(cannotLook)('the cards of approvals', () => {
  beforeAll(async () => {
    ;({ service, browser } = await openDashboard(() => startTestApp()))
  })
  afterAll(async () => {
    const problems = await proveLedger(service.database.database.pool)
    await browser.close()
    await service.close()
    if (problems.length > 0) throw new Error(JSON.stringify(problems))
  })

  test('the words about a decision go when the next one begins: it may fail', async () => {
    const { clerk, boss } = await team(service)
    await payOut(service, clerk, 25_000)
    const second = await payOut(service, clerk, 26_000)
    const page = await openApprovals(boss)
    await press(page, /Approuver 25.000/)
    await page.getByText(' : approuvé.').waitFor()
    await page.route('**/graphql', (route) =>
      route.request().postData()?.includes('approvePayout') ? route.abort() : route.continue(),
    )
    await press(page, /Approuver 26.000/)
    await page.getByText('Le service ne répond pas.').waitFor()
    expect(await page.getByText(' : approuvé.').count()).toBe(0)
    await becomes(service, 'payout', second, 'pending')
    await page.close()
  })

  test('a lost answer is no problem any more once the page shows that the approval counts', async () => {
    const { clerk, boss } = await team(service, 2)
    await payOut(service, clerk, 25_000)
    const page = await openApprovals(boss)
    await page.route('**/graphql', async (route) => {
      if (!route.request().postData()?.includes('approvePayout')) return route.continue()
      await route.fetch()
      return route.abort()
    })
    await press(page, /Approuver 25.000/)
    await page.getByText('Vous avez approuvé. Une autre personne doit approuver aussi.').waitFor()
    await page.getByText('Le service ne répond pas.').waitFor({ state: 'detached' })
    expect(await cardOf(page)).toContain('Approbations 1 sur 2 · Awa Traoré')
    await page.close()
  })

  test('a title in Arabic leaves the number of people where it is', async () => {
    const { clerk, boss } = await team(service)
    await batch(service, clerk, 'مرتبات 12 345', [
      { name: 'محمد', account: '70000101', payment_method: 'OperatorA', amount: 900_000 },
      { name: 'A'.repeat(100), account: '70000102', payment_method: 'OperatorA', amount: 1_000 },
    ])
    const page = await openApprovals(boss)
    await page.getByText('Voir les 2 personnes').click()
    const places = await page.evaluate<number[]>(`(() => {
      const text = document.querySelector('section.card h2').firstChild
      return [/ · (?=2)/, /2(?= personnes)/, /personnes/].map((part) => {
        const range = document.createRange()
        range.setStart(text, text.data.search(part))
        range.setEnd(text, text.data.search(part) + 2)
        return range.getBoundingClientRect().left
      })
    })()`)
    expect(places).toEqual(places.toSorted((one, other) => one - other))
    // The operator is a part of what the approval covers: a small screen shows it whole.
    const lines = page.locator('.rows p')
    await eventually(async () => expect(await lines.count()).toBe(2))
    const isCut = `[...document.querySelectorAll('.rows p')].map((one) => one.scrollWidth > one.clientWidth)`
    expect(await page.evaluate(isCut)).toEqual([false, false])
    await page.close()
  })

  test('a card names the hour of the last day, and no day of sending that is over', async () => {
    const { clerk, boss } = await team(service)
    const tomorrow = new Date(Date.now() + 24 * 3_600_000).toISOString()
    const id = await payOut(service, clerk, 25_000, { scheduled_at: tomorrow })
    const page = await openApprovals(boss)
    await page.getByText('À décider').waitFor()
    expect(await cardOf(page)).not.toContain('Départ dès l’approbation')
    const { rows } = await service.database.owner.query(
      'SELECT approval_expires_at AS at FROM payout WHERE id = $1',
      [id],
    )
    await page.clock.setFixedTime(rows[0].at)
    await page.reload()
    await page.getByText('À décider').waitFor()
    expect(await cardOf(page)).toMatch(/Départ dès l’approbation.*À décider avant \d\d:\d\d/)
    await page.close()
  })

  test('a change of rules that changed since says that it must be asked for anew', async () => {
    const { shop, boss } = await team(service)
    const owner = await makePerson(service, shop.merchantId)
    await service.rest('PUT', '/settings', { token: owner.token, body: { approval_threshold: 50_000 } })
    await service.rest('PUT', '/settings', { token: owner.token, body: { approval_threshold: 1_500 } })
    const page = await openApprovals(boss)
    await press(page, 'Approuver le changement')
    await page.getByText('Si elle attend encore, refusez-la : il faut la refaire.').waitFor()
    const { rows } = await service.database.owner.query(
      'SELECT approval_threshold::int FROM merchant WHERE id = $1',
      [shop.merchantId],
    )
    expect(rows).toEqual([{ approval_threshold: 1_500 }])
    await page.close()
  })
})
