import { dayOf } from '../../src/dashboard/format.ts'
import { eventually } from '../kit/eventually.ts'
import { hour } from '../kit/fixture.ts'
import { lookAt, type Visit } from '../kit/screens.ts'

const person = 'Fatoumata Coulibaly-Diawara veuve Konate Sissoko'

/** Saves people, and pays out to one of them and to a number that does not exist; a third waits. */
async function make({ service, shop: { token, merchantId } }: Visit): Promise<void> {
  const post = async (path: string, body: object) =>
    (await service.rest('POST', path, { token, body })).body.data.id as number
  const operator = { payment_method: 'OperatorA' }
  const saved = { account: '70000011', ...operator }
  const id = await post('/beneficiaries', { name: person, ...saved })
  for (const name of ['محمد الأمين', 'Moussa Keita']) await post('/beneficiaries', { name, ...saved })
  await post('/payouts', { amount: 100_000_000, beneficiary_id: id, reference: 'F-2026-11' })
  await post('/payouts', { amount: 1_000, destination_phone: '70030011', ...operator })
  const { owner } = service.database
  await eventually(async () => {
    const { rows } = await owner.query(`SELECT FROM payout WHERE status IN ('completed', 'failed')`)
    return rows.length === 2
  })
  await owner.query('UPDATE merchant SET payouts_require_approval = true WHERE id = $1', [merchantId])
  await post('/payouts', { amount: 45_000, destination_phone: '70000012', ...operator })
}

async function payoutOf({ page, goTo }: Visit, state: string): Promise<void> {
  await goTo('/payouts')
  await page.locator('.rows li').filter({ hasText: state }).first().getByRole('link').click()
}
async function wrongPayout({ page, goTo }: Visit): Promise<void> {
  await goTo('/payouts/new')
  await page.getByRole('button', { name: 'Continuer' }).click()
}
async function personOf({ page, goTo }: Visit): Promise<void> {
  await goTo('/payouts/people')
  await page.getByRole('link', { name: person }).click()
}
async function personChanged(visit: Visit): Promise<void> {
  await personOf(visit)
  await visit.page.getByText('Modifier').click()
}
async function laterPayout(visit: Visit): Promise<void> {
  const { page } = visit
  await personOf(visit)
  await page.getByRole('link', { name: 'Payer cette personne' }).click()
  await page.getByLabel('Montant').fill('100000000')
  await page.getByLabel('Un autre jour').check()
  await page.getByLabel('Jour', { exact: true }).fill(dayOf(new Date(Date.now() + 48 * hour)))
  await page.getByLabel('Référence').fill('Loyer du magasin du marché de Médine, novembre et décembre')
}
async function checkedPayout(visit: Visit): Promise<void> {
  await laterPayout(visit)
  await visit.page.getByRole('button', { name: 'Continuer' }).click()
}

lookAt('payouts', {
  make,
  screens: [
    ['payouts', '.rows', ({ goTo }) => goTo('/payouts')],
    ['payout-new', 'select', ({ goTo }) => goTo('/payouts/new')],
    ['payout-wrong', '.problem', wrongPayout],
    ['payout-later', 'fieldset', laterPayout],
    ['payout-check', '.facts', checkedPayout],
    ['payout-failed', '.alert', (visit) => payoutOf(visit, 'échoué')],
    ['payout-paid', '.facts', (visit) => payoutOf(visit, 'payé')],
    ['payout-to-approve', '.facts', (visit) => payoutOf(visit, 'à approuver')],
    ['payout-missing', 'main .card', ({ goTo }) => goTo('/payouts/0')],
    ['people', '.rows', ({ goTo }) => goTo('/payouts/people')],
    ['person-new', 'select', ({ goTo }) => goTo('/payouts/people/new')],
    ['person', '.rows', personOf],
    ['person-change', 'select', personChanged],
  ],
  english: ['/payouts', '/payouts/new', '/payouts/people'],
})
