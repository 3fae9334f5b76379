import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { passwordBounds } from '../../src/identity/members/passwords.ts'
import { startTestApp, type TestApp } from '../kit/app.ts'
import { cannotLook, type TestBrowser } from '../kit/browser.ts'
import { openDashboard, signedIn } from '../kit/dashboard.ts'
import { eventually } from '../kit/eventually.ts'
import { proveLedger } from '../kit/ledger.ts'
import { makePerson, type PasswordMember } from '../kit/people.ts'
import { team } from '../kit/approval-team.ts'
import { useBounds } from '../kit/use-bounds.ts'

// A person pays many people from a file: the file is corrected, checked, approved, paid, and tried again.

// `passwords.test.ts` tests the cost of a password hash.
useBounds(passwordBounds, { memoryKib: 64, passes: 1 })

let service: TestApp
let browser: TestBrowser

const openPage = (person: PasswordMember, path: string) => signedIn(browser, service, person, path)
const press = (page: Page, name: string | RegExp) =>
  page.getByRole('button', { name, exact: true }).first().click()
/** Presses the button that opens a dialog, and the one in the dialog that confirms. */
async function pressTwice(page: Page, name: string): Promise<void> {
  await press(page, name)
  await page.getByRole('dialog').getByRole('button', { name }).click()
}

const table = (...lines: string[]) => ['nom;numéro;montant;opérateur', ...lines].join('\r\n')
const choose = (page: Page, content: string | Buffer, name = 'salaires août.csv') =>
  page
    .getByLabel('Fichier Excel (XLSX) ou CSV')
    .setInputFiles({ name, mimeType: 'text/csv', buffer: Buffer.from(content) })

async function countOf(what: 'batch' | 'batch_recipient', merchantId: number): Promise<number> {
  const { rows } = await service.database.owner.query<{ count: number }>(
    `SELECT count(*)::int FROM ${what} WHERE merchant_id = $1`,
    [merchantId],
  )
  return rows[0]?.count ?? -1
}
async function batchOf(merchantId: number): Promise<{ id: number; status: string }> {
  const { rows } = await service.database.owner.query<{ id: number; status: string }>(
    'SELECT id::int, status FROM batch WHERE merchant_id = $1 ORDER BY id DESC LIMIT 1',
    [merchantId],
  )
  return rows[0] ?? { id: 0, status: 'none' }
}
const becomes = (merchantId: number, status: string) =>
  eventually(async () => expect((await batchOf(merchantId)).status).toBe(status))

/** Makes a draft by REST. @returns its id */
async function draftOf(
  { token }: { token: string },
  recipients: readonly object[],
  title = 'Salaires',
): Promise<number> {
  const answer = await service.rest('POST', '/bulk/batches', { token, body: { title, recipients } })
  expect(answer.status).toBe(201)
  return answer.body.data.id
}
const recipient = (account: string, amount = 1_000, name = 'Awa Traoré') => ({
  name,
  account,
  amount,
  payment_method: 'OperatorA',
})

describe.skipIf(cannotLook)('payrolls', () => {
  beforeAll(async () => {
    ;({ service, browser } = await openDashboard(() => startTestApp()))
  })
  afterAll(async () => {
    const problems = await proveLedger(service.database.database.pool)
    await browser.close()
    await service.close()
    if (problems.length > 0) throw new Error(JSON.stringify(problems))
  })

  test('from a file with bad lines to the last payment, with an approval and another try', async () => {
    const { shop, clerk, boss } = await team(service)
    const page = await openPage(clerk, '/payroll')
    await page.getByRole('link', { name: 'Nouvelle paie' }).click()
    await choose(
      page,
      table('Awa;70000001;5 000;OperatorA', 'Binta;7000;5,5;OperatorA', 'Oumar;70000003;999;'),
    )
    await press(page, 'Vérifier le fichier')
    const problems = page.locator('.alert')
    await problems.waitFor()
    expect((await problems.innerText()).replaceAll(/[\u2068\u2069]/g, '').replaceAll(/\s+/g, ' ')).toBe(
      '3 points à corriger Rien n’est enregistré. Corrigez le fichier, puis choisissez-le de nouveau. ' +
        'Ligne 3 Binta · 7000 · 5,5 · OperatorA ' +
        'numéro : ce n’est pas un numéro de téléphone du Mali (huit chiffres). ' +
        'montant : écrivez des francs entiers, comme 5000 ou 5 000, sans virgule ni point. ' +
        'Ligne 4 Oumar · 70000003 · 999 montant : moins de 1 000 F CFA ne peut pas être versé.',
    )
    expect(await countOf('batch', shop.merchantId)).toBe(0)
    await choose(
      page,
      table('Awa;70000001;5 000;OperatorA', 'Binta;70030001;6000;OperatorA', 'Oumar;70000003;7000;OperatorB'),
    )
    await press(page, 'Vérifier le fichier')
    await page.getByRole('heading', { name: 'salaires août', exact: true }).waitFor()
    const forecast = page.getByRole('region', { name: 'Avant de payer' })
    await forecast.getByText('Une autre personne doit approuver').waitFor()
    expect((await forecast.innerText()).replaceAll(/\s+/g, ' ')).toContain(
      'Total à verser 18 000 F CFA Frais aucun ' +
        'Disponible maintenant 1 000 000 F CFA Disponible ensuite 982 000 F CFA ' +
        'OperatorA 2 personnes · 11 000 F CFA OperatorB 1 personne · 7 000 F CFA',
    )
    await press(page, /Demander l’approbation de 18.000/)
    await page.getByText('Cette paie attend une approbation.').waitFor()

    const other = await openPage(boss, '/approvals')
    await press(other, /Approuver 18.000/)
    await other.getByText(' : approuvé.').waitFor()
    await other.close()

    await becomes(shop.merchantId, 'partially_completed')
    await page.getByText('payée en partie').waitFor()
    const rows = page.locator('.recipients > li')
    const failed = [expect.stringMatching(/^Binta/)]
    await eventually(async () => expect(await rows.allInnerTexts()).toEqual(failed))
    expect(await rows.first().innerText()).toMatch(
      /Binta\s+70 03 00 01 · OperatorA\s+6.000.F.CFA\s+échoué\s+Le bénéficiaire n’a pas de compte/,
    )
    await press(page, 'payées 2')
    const paid = [expect.stringMatching(/^Awa/), expect.stringMatching(/^Oumar/)]
    await eventually(async () => expect(await rows.allInnerTexts()).toEqual(paid))

    await press(page, 'Préparer un nouvel essai pour la personne en échec')
    await page.getByRole('region', { name: 'Avant de payer' }).waitFor()
    expect((await batchOf(shop.merchantId)).status).toBe('draft')
    await pressTwice(page, 'Abandonner le brouillon')
    await page.getByText('annulée', { exact: true }).waitFor()
    await becomes(shop.merchantId, 'cancelled')
    await page.close()
  })

  test('an answer that was lost makes no second draft', async () => {
    const { shop, boss } = await team(service)
    const page = await openPage(boss, '/payroll/new')
    await choose(page, table('Awa;70000001;1500;OperatorA'))
    await page.route('**/import', async (route) => {
      await route.fetch()
      return route.abort()
    })
    await press(page, 'Vérifier le fichier')
    await page.getByText('La réponse du service n’est pas arrivée.').waitFor()
    expect(await countOf('batch', shop.merchantId)).toBe(1)
    await page.unroute('**/import')
    await press(page, 'Vérifier le fichier')
    await page.getByRole('region', { name: 'Avant de payer' }).waitFor()
    expect(await countOf('batch', shop.merchantId)).toBe(1)
    await press(page, /Payer 1.500 F CFA à 1 personne/)
    await becomes(shop.merchantId, 'completed')
    await page.getByText('payée', { exact: true }).waitFor()
    await page.close()
  })

  test('a draft that changed since it was shown is not paid', async () => {
    const { shop, boss } = await team(service)
    const id = await draftOf(shop, [recipient('70000001', 1_500)])
    const page = await openPage(boss, `/payroll/${id}`)
    await page.getByRole('button', { name: /Payer 1.500/ }).waitFor()
    const added = { recipients: [recipient('70000002', 400_000)] }
    await service.rest('POST', `/bulk/batches/${id}/recipients`, { token: shop.token, body: added })
    await press(page, /Payer 1.500/)
    await page.getByText('La paie a changé depuis que cette page l’a montrée').waitFor()
    expect((await batchOf(shop.merchantId)).status).toBe('draft')
    await page.getByRole('button', { name: /Demander l’approbation de 401.500/ }).waitFor()
    await page.close()
  })

  test('a payroll that the balance does not cover says how much is missing', async () => {
    const { shop, boss } = await team(service)
    const id = await draftOf(shop, [recipient('70000001', 1_200_000)])
    const page = await openPage(boss, `/payroll/${id}`)
    await page.getByText('Le solde disponible ne suffit pas.').waitFor()
    expect(await page.getByText(/Il manque 200.000/).isVisible()).toBe(true)
    expect(await page.getByRole('button', { name: /Payer|Demander/ }).count()).toBe(0)
    await page.close()
  })

  test('numbers that occur twice, and unknown ones, are named before the payment', async () => {
    const { shop, boss } = await team(service)
    const id = await draftOf(shop, [recipient('70000001'), recipient('70000001'), recipient('70030001')])
    const page = await openPage(boss, `/payroll/${id}`)
    await page.getByText('chaque ligne est payée : 70 00 00 01').waitFor()
    expect(await page.getByText('L’opérateur ne connaît pas ces numéros : 70 03 00 01').count()).toBe(1)
    await page.close()
  })

  test('ten thousand people: those who are seen are read and drawn, in the order of the file', async () => {
    const { shop, boss } = await team(service)
    const lines = Array.from(
      { length: 10_000 },
      (_, index) => `Personne ${index + 1};70000001;1000;OperatorA`,
    )
    const page = await openPage(boss, '/payroll/new')
    let reads = 0
    page.on('request', (request) => {
      if (request.postData()?.includes('RecipientsQuery')) reads += 1
    })
    await choose(page, table(...lines))
    await press(page, 'Vérifier le fichier')
    await page.getByText('Personne 1', { exact: true }).waitFor()
    const rows = page.locator('.recipients > li')
    expect(await rows.count()).toBeLessThan(60)
    await page.evaluate('scrollTo(0, document.documentElement.scrollHeight)')
    await page.getByText('Personne 10000', { exact: true }).waitFor()
    expect(await rows.count()).toBeLessThan(60)
    expect((await rows.last().innerText()).startsWith('Personne 10000')).toBe(true)
    expect(reads).toBeLessThan(8)
    expect(await countOf('batch_recipient', shop.merchantId)).toBe(10_000)
    await page.close()
  })

  test('a payroll under way shows its progress, and can be stopped', async () => {
    const { shop, boss } = await team(service)
    await service.database.owner.query('UPDATE merchant SET payouts_require_approval = false WHERE id = $1', [
      shop.merchantId,
    ])
    const slow = Array.from({ length: 30 }, (_, index) => recipient(`7021200${index % 10}`))
    const id = await draftOf(shop, slow)
    const page = await openPage(boss, `/payroll/${id}`)
    await press(page, /Payer 30.000 F CFA à 30 personnes/)
    await page.getByRole('progressbar').waitFor()
    await pressTwice(page, 'Arrêter la paie')
    await page.getByText('annulée', { exact: true }).waitFor()
    const { rows } = await service.database.owner.query<{ status: string }>(
      `SELECT DISTINCT status FROM batch_recipient WHERE batch_id = $1 ORDER BY status`,
      [id],
    )
    expect(rows.map(({ status }) => status)).toContain('cancelled')
    await page.close()
  })

  test('a viewer sees payrolls, and can neither prepare nor pay one', async () => {
    const { shop } = await team(service)
    const id = await draftOf(shop, [recipient('70000001')])
    const viewer = await makePerson(service, shop.merchantId, { role: 'viewer' })
    const page = await openPage(viewer, '/payroll')
    await page.getByRole('link', { name: 'Salaires' }).click()
    await page.getByText('Awa Traoré').waitFor()
    expect(await page.getByRole('button', { name: /Payer|Demander|Abandonner/ }).count()).toBe(0)
    await page.goto(`${service.url}/app/payroll/new`)
    await page.getByText('Votre rôle ne permet pas de préparer une paie.').waitFor()
    const refused = await service.graphql(
      `mutation { processBatch(id: "${id}") { __typename } }`,
      {},
      viewer.token,
    )
    expect(refused.body['errors'][0].extensions.code).toBe('FORBIDDEN')
    await page.close()
  })
})
