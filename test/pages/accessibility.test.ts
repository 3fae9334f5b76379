import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { inviteAsPlatform } from '../../src/resources/team/invite.ts'
import { eventually } from '../kit/eventually.ts'
import { startTestApp, type TestApp } from '../kit/app.ts'
import { expectGoodLook } from '../kit/look.ts'
import { cannotLook, openBrowser, type TestBrowser } from '../kit/browser.ts'

/** Every page that the public sees: it is light, axe-core finds nothing, nothing overflows. */
let service: TestApp
let browser: TestBrowser
let page: Page
let shopId: number
/** Addresses of links, by kind. */
let links: Record<'fixed' | 'typed' | 'closed' | 'long', string>

async function attempt(phone: string, operator = '', link = links.fixed, amount = '5000'): Promise<string> {
  const body = new URLSearchParams({ amount, phone, operator })
  const { headers } = await fetch(link, { method: 'POST', body, redirect: 'manual' })
  return new URL(headers.get('location') ?? '', link).href
}
async function hostedPage(): Promise<void> {
  await goTo(await attempt('70090002', 'OperatorB'))
  await page.getByRole('link', { name: 'Continuer' }).click()
}
async function mistakes(): Promise<void> {
  await page.goto(links.typed)
  await page.locator('#amount').fill('50')
  await page.locator('form button').click()
  await page.locator('#amount-problem').waitFor()
}
/** A payment that is paid and then taken back may first show the receipt, a page without live waiting. */
async function reversed(): Promise<void> {
  await goTo(await attempt('70400001'))
  const title = async () => {
    await page.reload()
    return page.getByRole('heading', { level: 1 }).innerText()
  }
  await eventually(async () => expect(await title()).toMatch(/remboursé/))
}
async function invitation(): Promise<void> {
  const person = { name: 'Ali', email: 'ali@shop.test', role: 'finance' } as const
  const { token } = await inviteAsPlatform(service.app.services, shopId, person)
  await goTo(`${service.url}/join#${token}`)
  await page.locator('#lead').waitFor()
}
const longTitle =
  'Participation aux frais de transport, de repas et de logement des élèves de la troisième année ' +
  "pour le voyage d'étude à Tombouctou du 12 au 19 décembre"
const longText =
  'Chaque famille paie sa part avant la fin du mois. '.repeat(6) +
  `https://ecole.example.ml/voyages/${'x'.repeat(60)}`
const goTo = (address: string) => page.goto(address)

const pages: readonly [name: string, title: RegExp, open: () => Promise<unknown>][] = [
  ['form', /Cours de couture/, () => goTo(links.fixed)],
  ['typed', /Don/, () => goTo(links.typed)],
  ['mistakes', /Don/, mistakes],
  ['waiting', /Confirmez/, async () => goTo(await attempt('70090001'))],
  ['hosted', /Terminez chez OperatorB/, async () => goTo(await attempt('70090001', 'OperatorB'))],
  ['failed', /n’a pas abouti/, async () => goTo(await attempt('70020001'))],
  ['receipt', /Paiement effectué/, async () => goTo(await attempt('70000001'))],
  ['form-en', /Cours de couture/, () => goTo(`${links.fixed}?lang=en`)],
  ['long', /Participation/, () => goTo(links.long)],
  ['long-receipt', /Paiement/, async () => goTo(await attempt('70000002', '', links.long, '1000000'))],
  ['reversed', /remboursé/, reversed],
  ['checkout', /payer/, hostedPage],
  ['closed', /n’accepte plus/, () => goTo(links.closed)],
  ['missing', /n’existe pas/, () => goTo(`${service.url}/l/nothing-here`)],
  ['home', /Paiements marchands/, () => goTo(service.url)],
  ['mail', /E-mails du bac/, () => goTo(`${service.url}/mail`)],
  ['join', /Rejoindre/, invitation],
  ['join-used', /Rejoindre/, () => goTo(`${service.url}/join#letter`)],
  ['password', /Nouveau mot de passe/, () => goTo(`${service.url}/reset-password#letter`)],
]

describe.skipIf(cannotLook)('every page', () => {
  beforeAll(async () => {
    ;[service, browser] = await Promise.all([startTestApp(), openBrowser({ width: 360, javaScript: true })])
    const [{ token, merchantId }, { token: other }] = await Promise.all([
      service.merchant('Atelier Sogoniko'),
      service.merchant('Coopérative des maraîchers et transformatrices de produits du cercle de Koulikoro'),
    ])
    shopId = merchantId
    const link = async (more: object, merchant = token) => {
      const body = {
        title: 'Cours de couture, novembre',
        description: 'Six séances, tissu compris.',
        ...more,
      }
      const { body: answer } = await service.rest('POST', '/payment-links', { token: merchant, body })
      return `${service.url}/l/${answer.data.url_slug}`
    }
    const past = new Date(service.app.services.clock.now().getTime() + 60_000)
    const [fixed, typed, closed, long] = await Promise.all([
      link({ amount: 5_000 }),
      link({ title: "Don pour l'école de Médine" }),
      link({ expires_at: past }),
      link({ title: longTitle, description: longText, amount: 1_000_000 }, other),
    ])
    links = { fixed, typed, closed, long }
    await service.app.services.sandbox?.advanceClock(2 * 60_000)
    page = await browser.context.newPage()
  })
  afterAll(async () => {
    await browser.close()
    await service.close()
  })

  test.each(pages)('%s', async (name, title, open) => {
    await page.emulateMedia({ colorScheme: 'light' })
    await open()
    await page.getByRole('heading', { level: 1, name: title }).waitFor()
    await page.waitForLoadState()
    const { bytes, inline } = await page.evaluate<{ bytes: number; inline: string[] }>(weight)
    expect(bytes).toBeGreaterThan(1_000)
    expect(bytes).toBeLessThan(30_000)
    expect(inline).toEqual([])
    await expectGoodLook(page, name)
  })
})

/** The page and all files that it loads, cached or not, uncompressed; and its inline scripts. */
const weight = `({
  bytes: performance.getEntries().reduce((sum, { decodedBodySize = 0 }) => sum + decodedBodySize, 0),
  inline: Array.from(document.querySelectorAll('script:not([src])'), ({ text }) => text),
})`
