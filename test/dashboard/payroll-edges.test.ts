import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { passwordBounds } from '../../src/identity/members/passwords.ts'
import { startTestApp, type TestApp } from '../kit/app.ts'
import { cannotLook, type TestBrowser } from '../kit/browser.ts'
import { openDashboard, signedIn } from '../kit/dashboard.ts'
import { eventually } from '../kit/eventually.ts'
import type { PasswordMember } from '../kit/people.ts'
import { team } from '../kit/approval-team.ts'
import { useBounds } from '../kit/use-bounds.ts'

// A payroll meets other windows, other files and lost answers.

// `passwords.test.ts` tests the cost of a password hash.
useBounds(passwordBounds, { memoryKib: 64, passes: 1 })

let service: TestApp
let browser: TestBrowser

const openPage = (person: PasswordMember, path: string) => signedIn(browser, service, person, path)
const press = (page: Page, name: string | RegExp) =>
  page.getByRole('button', { name, exact: true }).first().click()
const table = (...lines: string[]) => ['nom;numéro;montant;opérateur', ...lines].join('\r\n')
const choose = (page: Page, content: string, name = 'salaires.csv') =>
  page
    .getByLabel('Fichier Excel (XLSX) ou CSV')
    .setInputFiles({ name, mimeType: 'text/csv', buffer: Buffer.from(content) })
const recipient = (account: string, amount = 1_500, name = 'Awa') => ({
  name,
  account,
  amount,
  payment_method: 'OperatorA',
})
const paying = (page: Page) => page.getByRole('button', { name: /^(?:Payer|Demander)/ })
const forecastOf = async (page: Page) =>
  (await page.getByRole('region', { name: 'Avant de payer' }).innerText()).replaceAll(/\s+/g, ' ')

/** Makes a draft by REST. @returns its id */
async function draftOf({ token }: { token: string }, recipients: readonly object[]): Promise<number> {
  const answer = await service.rest('POST', '/bulk/batches', {
    token,
    body: { title: 'Salaires', recipients },
  })
  expect(answer.status).toBe(201)
  return answer.body.data.id
}
/** Adds a recipient by an API key. */
async function addTo(id: number, { token }: { token: string }): Promise<void> {
  const body = { recipients: [recipient('70000002', 400_000, 'Binta')] }
  const added = await service.rest('POST', `/bulk/batches/${id}/recipients`, { token, body })
  expect(added.status).toBe(200)
}

describe.skipIf(cannotLook)('edges of payrolls', () => {
  beforeAll(async () => {
    ;({ service, browser } = await openDashboard(() => startTestApp()))
  })
  afterAll(async () => {
    await browser.close()
    await service.close()
  })

  test('a draft that changes under the eyes of a reader shows its new total, list and button', async () => {
    const { shop, boss } = await team(service)
    const id = await draftOf(shop, [recipient('70000001')])
    const page = await openPage(boss, `/payroll/${id}`)
    await page.getByRole('button', { name: /Payer 1.500/ }).waitFor()
    await addTo(id, shop)
    await page.getByText('La paie a changé depuis que cette page l’a montrée').waitFor()
    // For a moment there is no button under the finger.
    expect(await paying(page).count()).toBe(0)
    await page.getByRole('button', { name: /Demander l’approbation de 401.500/ }).waitFor()
    await page.getByText('Binta').waitFor()
    const rows = page.locator('.recipients > li')
    const all = [expect.stringMatching(/^Awa/), expect.stringMatching(/^Binta/)]
    await eventually(async () => expect(await rows.allInnerTexts()).toEqual(all))
    await page.close()
  })

  test('people that a program adds at the moment of the payment are not paid unseen', async () => {
    const { shop, boss } = await team(service)
    const id = await draftOf(shop, [recipient('70000001')])
    const page = await openPage(boss, `/payroll/${id}`)
    await page.route('**/graphql', async (route) => {
      if (route.request().postData()?.includes('ProcessBatchMutation')) await addTo(id, shop)
      return route.continue()
    })
    await press(page, /Payer 1.500/)
    await page.getByText('La paie a changé depuis que cette page l’a montrée').waitFor()
    await page.getByRole('button', { name: /Demander l’approbation de 401.500/ }).waitFor()
    const { body } = await service.rest('GET', `/bulk/batches/${id}`, { token: shop.token })
    expect(body.data.status).toBe('draft')
    await page.close()
  })

  test('a draft without people says so, in words', async () => {
    const { shop, boss } = await team(service)
    const id = await draftOf(shop, [])
    const page = await openPage(boss, `/payroll/${id}`)
    await page.getByText('Le brouillon n’a personne.').waitFor()
    expect(await paying(page).count()).toBe(0)
    expect(await forecastOf(page)).not.toContain('must not be empty')
    await page.close()
  })

  test('a file that is chosen while another one is checked stays chosen', async () => {
    const { boss } = await team(service)
    const page = await openPage(boss, '/payroll/new')
    let answer = () => {}
    const isChosen = new Promise<void>((resolve) => (answer = resolve))
    await page.route('**/import', async (route) => {
      await isChosen
      return route.continue()
    })
    await choose(page, table('Awa;70000001;15;OperatorA'), 'paie.csv')
    await press(page, 'Vérifier le fichier')
    const answered = page.waitForResponse('**/import')
    await choose(page, table('Awa;70000001;1700;OperatorA'), 'paie corrigée.csv')
    await page.getByText('paie corrigée.csv').waitFor()
    answer()
    await answered
    await page.unroute('**/import')
    await page.getByText('Personne n’est payé à cette étape.').waitFor()
    expect(await page.locator('.alert').count()).toBe(0)
    await press(page, 'Vérifier le fichier')
    await page.getByRole('button', { name: /Payer 1.700/ }).waitFor()
    await page.close()
  })

  test('a file that was sent under another name is not sent twice, and the page says so', async () => {
    const { shop, boss } = await team(service)
    const page = await openPage(boss, '/payroll/new')
    await choose(page, table('Awa;70000001;1500;OperatorA'))
    await page.route('**/import', async (route) => {
      await route.fetch()
      return route.abort()
    })
    await press(page, 'Vérifier le fichier')
    await page.getByText('La réponse du service n’est pas arrivée.').waitFor()
    await page.unroute('**/import')
    await page.getByLabel('Nom de la paie').fill('Autre nom')
    await press(page, 'Vérifier le fichier')
    await page.getByText('Ce fichier est déjà envoyé sous un autre nom').waitFor()
    const { rows } = await service.database.owner.query<{ title: string }>(
      'SELECT title FROM batch WHERE merchant_id = $1',
      [shop.merchantId],
    )
    expect(rows).toEqual([{ title: 'salaires' }])
    await page.getByLabel('Nom de la paie').fill('salaires')
    await press(page, 'Vérifier le fichier')
    await page.getByRole('button', { name: /Payer 1.500/ }).waitFor()
    await page.close()
  })

  test('a file with a longer name than a payroll can have gives it the start of its name', async () => {
    const { boss } = await team(service)
    const page = await openPage(boss, '/payroll/new')
    await choose(page, table('Awa;70000001;1500;OperatorA'), `${'é'.repeat(230)}.csv`)
    await page.getByText('Choisir un autre fichier').waitFor()
    expect(await page.getByLabel('Nom de la paie').inputValue()).toBe('é'.repeat(200))
    await press(page, 'Vérifier le fichier')
    await page.getByRole('button', { name: /Payer 1.500/ }).waitFor()
    await page.close()
  })

  test('a payroll that is being stopped says so to another window', async () => {
    const { shop, boss } = await team(service)
    await service.database.owner.query('UPDATE merchant SET payouts_require_approval = false WHERE id = $1', [
      shop.merchantId,
    ])
    const id = await draftOf(
      shop,
      Array.from({ length: 30 }, (_, index) => recipient(`7021200${index % 10}`)),
    )
    const page = await openPage(boss, `/payroll/${id}`)
    await press(page, /Payer 45.000/)
    await page.route('**/graphql', async (route) => {
      if (route.request().postData()?.includes('cancelBatch'))
        await service.rest('POST', `/bulk/batches/${id}/cancel`, { token: shop.token })
      return route.continue()
    })
    await press(page, 'Arrêter la paie')
    await page.getByRole('dialog').getByRole('button', { name: 'Arrêter la paie' }).click()
    await page.getByText('La paie est terminée, ou son arrêt est déjà demandé.').waitFor()
    expect(await page.getByText('There is nothing to cancel').count()).toBe(0)
    await page.close()
  })

  test('the list of those who were paid is read calmly while they are paid, and ends in order', async () => {
    const { shop, boss } = await team(service)
    await service.database.owner.query('UPDATE merchant SET payouts_require_approval = false WHERE id = $1', [
      shop.merchantId,
    ])
    const people = Array.from({ length: 900 }, (_, index) =>
      recipient(`70000${String(index % 100).padStart(3, '0')}`, 1_000, `Personne ${index + 1}`),
    )
    const page = await openPage(boss, `/payroll/${await draftOf(shop, people)}`)
    let reads = 0
    page.on('request', (request) => {
      if (request.postData()?.includes('RecipientsQuery')) reads += 1
    })
    const began = performance.now()
    await press(page, /Payer 900.000/)
    await press(page, /^payées/)
    await page.getByText('payée', { exact: true }).waitFor()
    const [first] = await page.locator('.recipients > li').all()
    await eventually(async () => expect(await first?.innerText()).toMatch(/^Personne 1\s/))
    // Each state of a list and each number of it lets it read once in two seconds.
    expect(reads).toBeLessThan(6 + (1.2 * (performance.now() - began)) / 1_000)
    await page.close()
  })

  test('an answer that a later one overtook does not replace it', async () => {
    const { shop, boss } = await team(service)
    await service.database.owner.query('UPDATE merchant SET payouts_require_approval = false WHERE id = $1', [
      shop.merchantId,
    ])
    const people = Array.from({ length: 120 }, (_, index) =>
      recipient(
        `7000${index < 60 ? '00' : '05'}${String(index % 100).padStart(2, '0')}`,
        1_000,
        `Personne ${index + 1}`,
      ),
    )
    const page = await openPage(boss, `/payroll/${await draftOf(shop, people)}`)
    let release = () => {}
    const isOver = new Promise<void>((resolve) => (release = resolve))
    // The first read of those who were paid is answered last: it began while half of them were.
    let isHeld = false
    await page.route('**/graphql', async (route) => {
      const body = route.request().postData() ?? ''
      if (isHeld || !body.includes('query RecipientsQuery') || !body.includes('SUCCESS'))
        return route.continue()
      isHeld = true
      await isOver
      return route.continue()
    })
    await press(page, /Payer 120.000/)
    await press(page, /^payées/)
    await page.getByText('payée', { exact: true }).waitFor()
    const first = page.locator('.recipients > li').first()
    await eventually(async () => expect(await first.innerText()).toMatch(/^Personne 1\s/))
    const answered = page.waitForResponse((response) => response.url().endsWith('/graphql'))
    release()
    await answered
    await page.waitForTimeout(500)
    expect(await first.innerText()).toMatch(/^Personne 1\s/)
    await page.close()
  })

  test('the button names the total of the forecast above it, also where no change arrives', async () => {
    const { shop, boss } = await team(service)
    const id = await draftOf(shop, [recipient('70000001')])
    // The context keeps this route: the test stands last.
    await browser.context.routeWebSocket('**', () => {})
    const page = await openPage(boss, `/payroll/${id}`)
    await page.getByRole('button', { name: /Payer 1.500/ }).waitFor()
    await addTo(id, shop)
    await press(page, 'Vérifier de nouveau')
    await page.getByText('2 personnes · 401').waitFor()
    const forecast = await forecastOf(page)
    expect(forecast).toContain('Total à verser 401 500 F CFA')
    expect(forecast).not.toMatch(/(?:Payer|de) 1 500/)
    await page.getByRole('button', { name: /Demander l’approbation de 401.500/ }).waitFor()
    await page.close()
  })
})
