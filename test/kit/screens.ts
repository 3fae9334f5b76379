import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { passwordBounds } from '../../src/identity/members/passwords.ts'
import { fundMerchant } from '../../src/resources/merchants/fund.ts'
import { startTestApp, type TestApp, type TestMerchant } from './app.ts'
import { cannotLook, type TestBrowser } from './browser.ts'
import { openDashboard, signedIn } from './dashboard.ts'
import { expectAccessible, expectGoodLook, photograph } from './look.ts'
import { makePerson } from './people.ts'
import { useBounds } from './use-bounds.ts'

/** The page of the owner of a merchant with money. */
export interface Visit {
  service: TestApp
  shop: TestMerchant
  page: Page
  goTo: (path: string) => Promise<unknown>
}

/** A screen, a text or element that shows that it is there, and the way to it. */
export type LookedAt = readonly [name: string, shows: string, open: (visit: Visit) => Promise<unknown>]

interface Screens {
  /** Makes what the screens show. */
  make: (visit: Visit) => Promise<void>
  /** The screens in the order of a visit. */
  screens: readonly LookedAt[]
  /** The paths of the screens that are looked at in English too. What `make` made has no French words. */
  english: readonly string[]
}

/**
 * Looks at every screen of a subject: axe-core finds nothing, nothing overflows, in both languages, light and
 * dark.
 */
export function lookAt(subject: string, { make, screens, english }: Screens): void {
  // `passwords.test.ts` tests the cost of a password hash.
  useBounds(passwordBounds, { memoryKib: 64, passes: 1 })

  describe.skipIf(cannotLook)(`every screen of ${subject}`, () => {
    let browser: TestBrowser
    let visit: Visit

    beforeAll(async () => {
      const { service, ...opened } = await openDashboard(() => startTestApp())
      browser = opened.browser
      const shop = await service.merchant(
        'Coopérative des maraîchers et transformatrices du cercle de Koulikoro',
      )
      await fundMerchant(service.app.services, shop.merchantId, { amount: 987_654_321 })
      const owner = await makePerson(service, shop.merchantId, { name: 'Fatoumata Diakite-Coulibaly' })
      const page = await signedIn(browser, service, owner)
      visit = { service, shop, page, goTo: (path) => page.goto(`${service.url}/app${path}`) }
      await make(visit)
    })
    afterAll(async () => {
      await browser.close()
      await visit.service.close()
    })

    test.each(screens)('%s', async (name, shows, open) => {
      const { page } = visit
      await page.emulateMedia({ colorScheme: 'light' })
      await open(visit)
      await page.locator(shows).first().waitFor()
      await expectGoodLook(page, `app/${name}`)
      // The screen was there all the while.
      expect(await page.locator(shows).first().isVisible()).toBe(true)
    })

    test.each(english)('the screen "%s" is in English from end to end', async (path) => {
      const { page, goTo } = visit
      await page.evaluate(`localStorage.setItem('language', 'en')`)
      await goTo(path)
      await page.locator('.rows, .facts, input').first().waitFor()
      await expectAccessible(page)
      expect(await page.locator('main').innerText()).not.toMatch(/[éèàç’]|\bles?\b|\bdes?\b|paiement/)
      await photograph(page, `app/en${path.replaceAll(/\W/g, '-')}`)
      await page.evaluate(`localStorage.clear()`)
    })
  })
}
