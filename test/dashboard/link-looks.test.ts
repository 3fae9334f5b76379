import { expect } from 'vitest'
import { eventually } from '../kit/eventually.ts'
import { lookAt, type Visit } from '../kit/screens.ts'

const longTitle = `Collecte ${'extraordinaire '.repeat(13)}`.slice(0, 200).trim()
const arabicTitle = 'كيس أرز 25 كغ'
const longWord = 'x'.repeat(100)

/** Makes links that are open, closed, expired and used up, two of them with payments. */
async function make({ service, shop: { token } }: Visit): Promise<void> {
  const post = async (body: object) =>
    (await service.rest('POST', '/payment-links', { token, body })).body.data as { id: number; url: string }
  await post({ title: 'Tontine' })
  const closed = await post({ title: 'Riz, sac de 25 kg', amount: 500 })
  const description = `${longWord} ${'Livraison à Bamako sous trois jours. '.repeat(24)}`.slice(0, 1_000)
  const long = await post({ title: longTitle, amount: 1_000_000, description, usage_limit: 999_999_999 })
  const arabic = await post({ title: arabicTitle, amount: 15_000, usage_limit: 1 })
  const expired = await post({ title: 'Tombola', amount: 1_000 })
  for (const [{ url }, amount, phone] of [
    [long, '1000000', '70000001'],
    [long, '1000000', '70020001'],
    [arabic, '15000', '70000002'],
  ] as const) {
    const body = new URLSearchParams({ phone, operator: 'OperatorA', amount })
    expect((await fetch(url, { method: 'POST', body, redirect: 'manual' })).status).toBe(303)
  }
  const { owner } = service.database
  const end = `UPDATE payment_link SET expires_at = now() - interval '1 minute' WHERE id = $1`
  await owner.query(end, [expired.id])
  await owner.query('UPDATE payment_link SET is_active = false WHERE id = $1', [closed.id])
  await eventually(async () => {
    const { rows } = await owner.query(`SELECT FROM transaction WHERE status IN ('success', 'failed')`)
    return rows.length === 3
  })
}

async function linkOf({ service, page, goTo }: Visit, title: string): Promise<void> {
  const found = 'SELECT id FROM payment_link WHERE title = $1'
  const { rows } = await service.database.owner.query<{ id: number }>(found, [title])
  await goTo(`/links/${rows[0]?.id}`)
  await page.locator('.share').waitFor()
}
async function closedLinks({ page, goTo }: Visit): Promise<void> {
  await goTo('/links')
  await page.getByLabel('aussi').check()
  await page.getByText('fermé', { exact: true }).waitFor()
}
async function wrongLink({ page, goTo }: Visit): Promise<void> {
  await goTo('/links/new')
  await page.getByLabel('Titre').fill('Riz')
  await page.getByLabel('Montant').fill('15,5')
  await page.getByRole('button', { name: 'Créer le lien' }).click()
}
async function changedLink(visit: Visit): Promise<void> {
  await linkOf(visit, longTitle)
  await visit.page.getByText('Modifier', { exact: true }).click()
}

lookAt('payment links', {
  make,
  screens: [
    ['links', '.rows', ({ goTo }) => goTo('/links')],
    ['links-closed', '.rows', closedLinks],
    ['link-new', 'form', ({ goTo }) => goTo('/links/new')],
    ['link-problem', '.problem', wrongLink],
    ['link', '.rows', (visit) => linkOf(visit, longTitle)],
    ['link-change', 'form', changedLink],
    ['link-arabic', '.rows', (visit) => linkOf(visit, arabicTitle)],
    ['link-expired', '.share', (visit) => linkOf(visit, 'Tombola')],
    ['link-missing', 'main .card', ({ goTo }) => goTo('/links/0')],
  ],
  english: ['/links', '/links/new'],
})
