import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { eventually } from '../kit/eventually.ts'
import { inviteAsPlatform } from '../../src/resources/team/invite.ts'
import { startTestApp, type TestApp, type TestMerchant } from '../kit/app.ts'
import { cannotLook, type TestBrowser } from '../kit/browser.ts'
import { openDashboard } from '../kit/dashboard.ts'
import { makePerson } from '../kit/people.ts'

/** A person with an email, on the smallest phone or with a keyboard alone, in real Chromium. */
let service: TestApp
let shop: TestMerchant
let browser: TestBrowser
let people = 0
const merchantName = "L'épicerie de la grande rue du marché de Médine"

/** An invited person: the address, and the token of the invitation. */
async function invited() {
  people += 1
  const email = `awa${people}.a-very-long-name-in-front-of-the-at-sign@a-shop-with-a-long-name.test`
  const person = { name: `Awa ${people}`, email, role: 'viewer' } as const
  return { email, ...(await inviteAsPlatform(service.app.services, shop.merchantId, person)) }
}
async function open(path: string): Promise<Page> {
  const page = await browser.context.newPage()
  await page.goto(`${service.url}${path}`)
  return page
}
const widthOf = (page: Page) => page.evaluate('document.documentElement.scrollWidth')
const focused = (page: Page) => page.evaluate('document.activeElement.id || document.activeElement.role')
/** Types both fields and submits them, without a mouse, from the current focus. */
async function fill(page: Page, first: string, second: string) {
  await page.locator('#password').focus()
  await page.keyboard.press('ControlOrMeta+A')
  await page.keyboard.type(first)
  await page.keyboard.press('Tab')
  await page.keyboard.press('ControlOrMeta+A')
  await page.keyboard.type(second)
  await page.keyboard.press('Enter')
}
async function expectProblem(page: Page, field: string, words: string) {
  const problem = page.locator(`#${field}-problem`)
  await eventually(async () => expect(await problem.textContent()).toBe(words))
  expect(await focused(page)).toBe(field)
  const [input, place] = await Promise.all([page.locator(`#${field}`).boundingBox(), problem.boundingBox()])
  const below = (place?.y ?? 0) - ((input?.y ?? 0) + (input?.height ?? 0))
  expect(below).toBeGreaterThanOrEqual(0)
  expect(below).toBeLessThan(20)
  expect(await widthOf(page)).toBeLessThanOrEqual(320)
}
const statusOf = (page: Page) => page.locator('[role=status]').textContent()

describe.skipIf(cannotLook)('at 320 pixels', () => {
  beforeAll(async () => {
    ;({ service, browser } = await openDashboard(() => startTestApp(), 320))
    shop = await service.merchant(merchantName)
  })
  afterAll(async () => {
    await browser.close()
    await service.close()
  })

  test('a person joins by the keyboard alone, after mistakes that are shown beside the fields', async () => {
    const { token, email } = await invited()
    const page = await open(`/join#${token}`)
    await eventually(async () =>
      expect(await page.locator('#lead').textContent()).toBe(
        `Vous êtes invité dans l’équipe de ${merchantName} (marchand ${shop.merchantId}), comme lecteur, ` +
          `sans droit de payer. Vous vous connecterez avec ${email}.`,
      ),
    )
    expect(await page.locator('html').getAttribute('lang')).toBe('fr')
    await page.keyboard.press('Tab')
    expect(await focused(page)).toBe('other')
    await page.keyboard.press('Tab')
    expect(await focused(page)).toBe('password')
    await fill(page, 'court', 'court')
    await expectProblem(page, 'password', 'Il faut au moins 12 caractères.')
    await fill(page, 'le soleil de Bamako', 'le soleil de Kayes')
    await expectProblem(page, 'again', 'Les deux mots de passe sont différents.')
    await fill(page, 'motdepasse2024', 'motdepasse2024')
    await expectProblem(
      page,
      'password',
      'Trop facile à deviner : choisissez plusieurs mots sans lien entre eux.',
    )
    await fill(page, 'le soleil de Bamako', 'le soleil de Bamako')
    await page.waitForURL('**/app')
    await page.getByRole('heading', { name: 'Disponible' }).waitFor()
    expect(await page.evaluate('document.cookie')).toBe('')
    await page.close()
  })

  test('a used link is explained in words; the other language keeps the token of the email', async () => {
    const page = await open('/reset-password#used')
    await page.locator('#other').press('Enter')
    await page.waitForURL('**/reset-password?lang=en#used')
    await fill(page, 'le soleil de Bamako', 'le soleil de Bamako')
    await eventually(async () =>
      expect(await statusOf(page)).toBe('This link was used already, or is too old: ask for another one.'),
    )
    expect(await widthOf(page)).toBeLessThanOrEqual(320)
    await page.close()
  })

  test('an invitation says who invites; one that was used says so at once', async () => {
    const inviter = await makePerson(service, shop.merchantId, { name: 'Mariam <b>Koné</b>' })
    const invite = `mutation ($email: String!) {
      inviteMember(input: { name: "Ali", email: $email, role: FINANCE }) { __typename } }`
    await service.graphql(invite, { email: 'ali@shop.test' }, inviter.token)
    const link = await eventually(async () => {
      const letters = await (await fetch(`${service.url}/mail`)).text()
      const [, found] = /ali@shop\.test[^]*?(\/join\?lang=fr#[\w-]+)/.exec(letters) ?? []
      return found ?? false
    })
    const page = await open(String(link))
    await eventually(async () =>
      expect(await page.locator('#lead').textContent()).toMatch(
        /^Mariam <b>Koné<\/b> vous invite dans .*finances/,
      ),
    )
    await fill(page, 'le soleil de Bamako', 'le soleil de Bamako')
    await page.waitForURL('**/app')
    const used = await open(String(link))
    await eventually(async () =>
      expect(await statusOf(used)).toBe(
        'Ce lien a déjà servi, ou il est trop ancien : demandez-en un autre.',
      ),
    )
    expect(await used.locator('form').isVisible()).toBe(false)
    await page.close()
    await used.close()
  })

  test('the mail page of the sandbox leads to the page where a person joins', async () => {
    const { email, token } = await invited()
    const shown = async () => (await fetch(`${service.url}/mail`)).text()
    await eventually(async () => expect(await shown()).toContain(email))
    const page = await open('/mail')
    expect(await widthOf(page)).toBeLessThanOrEqual(320)
    await page.locator(`a[href$="#${token}"]`).press('Enter')
    await page.waitForURL(`**/join?lang=fr#${token}`)
    expect(await page.locator('h1').textContent()).toBe("Rejoindre l'équipe")
    await page.close()
  })
})
