import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { passwordBounds } from '../../src/identity/members/passwords.ts'
import { payOut, team } from '../kit/approval-team.ts'
import { startTestApp, type TestApp } from '../kit/app.ts'
import { cannotLook, type TestBrowser } from '../kit/browser.ts'
import { customer } from '../kit/fixture.ts'
import { openDashboard, signedIn } from '../kit/dashboard.ts'
import { expectGoodLook } from '../kit/look.ts'
import type { PasswordMember } from '../kit/people.ts'
import { useBounds } from '../kit/use-bounds.ts'

// Where operators have names, the dashboard shows them instead of the names that programs use.

// `passwords.test.ts` tests the cost of a password hash.
useBounds(passwordBounds, { memoryKib: 64, passes: 1 })

/** The longest name that a setting may have, in one word: no space lets a line break. */
const longest = 'SaraliMoneyInternationalDuCercleDeKayesX'

let service: TestApp
let browser: TestBrowser
let boss: PasswordMember
/** The screens with one object of each kind, whose operator is named. */
const screens: string[] = []

/** Makes one object of each kind at one operator. */
async function madeAll(): Promise<void> {
  const made = await team(service)
  const { shop } = made
  boss = made.boss
  const idOf = async (path: string, token: string, body: object): Promise<number> => {
    const { body: answer } = await service.rest('POST', path, { token, body })
    return answer.data.transaction_id ?? answer.data.id
  }
  const method = { payment_method: 'OperatorA' }
  const payment = await idOf('/pay', shop.token, { ...method, amount: 5_000, customer_phone: customer('00') })
  const person = { ...method, name: 'Binta', account: '70000001', category: 'employee' }
  const payee = await idOf('/beneficiaries', boss.token, person)
  const payout = await payOut(service, made.clerk, 3_000)
  const recipients = [{ ...method, name: 'Awa', account: '70000001', amount: 1_500 }]
  const batch = await idOf('/bulk/batches', boss.token, { title: 'Salaires', recipients })
  const input = 'input: { name: "Caisse", scopes: [PAY], limits: { paymentMethods: [OperatorA] } }'
  await service.graphql(`mutation { createApiKey(${input}) { __typename } }`, {}, boss.token)
  screens.push(`/payments/${payment}`, `/payouts/people/${payee}`, `/payouts/${payout}`, `/payroll/${batch}`)
  screens.push('/payments', '/payouts', '/payouts/people', '/approvals')
}

const openPage = (path: string) => signedIn(browser, service, boss, path)
const mainOf = async (page: Page) => (await page.locator('main').innerText()).replaceAll(/\s+/g, ' ')

describe.skipIf(cannotLook)('an operator with a name', () => {
  beforeAll(async () => {
    ;({ service, browser } = await openDashboard(() => startTestApp({ OPERATOR_A_LABEL: longest })))
    await madeAll()
  })
  afterAll(async () => {
    await browser.close()
    await service.close()
  })

  test('an operator has its name on each screen, in full on the smallest telephone', async () => {
    const page = await openPage('')
    await page.setViewportSize({ width: 320, height: 640 })
    for (const path of screens) {
      await page.goto(`${service.url}/app${path}`)
      await page.getByText(longest).filter({ visible: true }).first().waitFor()
      expect([path, (await mainOf(page)).match(/OperatorA/)]).toEqual([path, null])
      const width = await page.evaluate('document.documentElement.scrollWidth')
      expect([path, width]).toEqual([path, 320])
    }
    await page.close()
  })

  test('a long name beside a number looks good', async () => {
    const page = await openPage(screens[0] ?? '')
    await page.getByText(longest).waitFor()
    await expectGoodLook(page, 'app/operator-label-payment')
    expect(await mainOf(page)).toContain(`· ${longest}`)
    await page.close()
  })

  test('the log of the team names the operators of a person and of a key', async () => {
    const page = await openPage('/team/log')
    await page.getByText('Clé de programme créée').waitFor()
    for (const summary of await page.getByText('Voir ce qui a changé').all()) await summary.click()
    const text = await mainOf(page)
    expect(text).toContain(`Opérateurs ${longest}`)
    expect(text).toContain(`Opérateur ${longest}`)
    expect(text).not.toContain('OperatorA')
    await page.close()
  })

  test('the file of a payroll names operators otherwise: its page says how', async () => {
    const page = await openPage('/payroll/new')
    await page.getByText('Choisir un fichier').waitFor()
    expect(await mainOf(page)).toContain(`Pour l’opérateur, écrivez : OperatorA pour ${longest}.`)
    const table = `nom;numéro;montant;opérateur\r\nAwa;70000001;1500;${longest}`
    const file = { name: 'paie.csv', mimeType: 'text/csv', buffer: Buffer.from(table) }
    await page.getByLabel('Fichier Excel (XLSX) ou CSV').setInputFiles(file)
    await page.getByRole('button', { name: 'Vérifier le fichier' }).click()
    await page.getByText('ce n’est pas un opérateur de ce service').waitFor()
    await expectGoodLook(page, 'app/operator-label-payroll')
    await page.close()
  })
})
