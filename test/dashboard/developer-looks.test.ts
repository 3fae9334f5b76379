import { expect } from 'vitest'
import { eventually } from '../kit/eventually.ts'
import { lookAt, type Visit } from '../kit/screens.ts'

const longAddress = `http://127.0.0.1:1/${'chemin-sans-fin/'.repeat(12)}`

/** Makes keys with and without limits, addresses that fail, and events. */
async function make({ service, shop: { token } }: Visit): Promise<void> {
  const run = (document: string, variables: object = {}) => service.graphql(document, variables, token)
  const key = 'mutation ($input: CreateApiKeyInput!) { createApiKey(input: $input) { __typename } }'
  const limits = { maxPerPayment: 50_000, maxPerDay: 900_000_000, addresses: ['41.73.96.0/24'] }
  await run(key, { input: { name: 'Caisse', scopes: ['PAY', 'BALANCE'], limits } })
  await run(key, { input: { name: `Compta ${'x'.repeat(80)}`, scopes: ['BALANCE'] } })
  const post = (path: string, body: object) => service.rest('POST', path, { token, body })
  const types = ['payment_received', 'payment_pending', 'payment_failed', 'bulk_pay_done']
  await post('/webhooks', { url: longAddress, events: types })
  for (const phone of ['70000000', '70010001'])
    await post('/pay', { amount: 12_500, customer_phone: phone, payment_method: 'OperatorA' })
  await eventually(async () => {
    const { rows } = await service.database.owner.query('SELECT FROM webhook_attempt')
    expect(rows.length).toBeGreaterThan(0)
  })
}

async function keyOfTill({ page, goTo }: Visit): Promise<void> {
  await goTo('/developers')
  await page.getByRole('link', { name: 'Caisse' }).click()
}
async function wrongKey({ page, goTo }: Visit): Promise<void> {
  await goTo('/developers/keys/new')
  await page.getByLabel('Nom').fill('Caisse')
  await page.getByLabel('Encaisser').check()
  await page.getByText(/^Limites/).click()
  await page.getByLabel('Montant le plus haut').fill('mille')
  await page.getByRole('button', { name: 'Créer la clé' }).click()
}
async function keySecret({ page, goTo }: Visit): Promise<void> {
  await goTo('/developers/keys/new')
  await page.getByLabel('Nom').fill('Site')
  await page.getByLabel('Encaisser').check()
  await page.getByRole('button', { name: 'Créer la clé' }).click()
}
async function endpoint({ page, goTo }: Visit): Promise<void> {
  await goTo('/developers')
  await page.getByRole('link', { name: longAddress }).click()
  await page.locator('summary', { hasText: 'essai' }).first().click()
}
async function newEndpoint({ page, goTo }: Visit): Promise<void> {
  await goTo('/developers')
  await page.getByText('Ajouter une adresse').click()
}
async function eventLog({ page, goTo }: Visit): Promise<void> {
  await goTo('/developers/events')
  await page.getByText('Voir les données').first().click()
}
async function approvals({ page, goTo }: Visit): Promise<void> {
  await goTo('/settings')
  await page.getByLabel('Les versements et les paies demandent').check()
}

lookAt('the developers and of the settings', {
  make,
  screens: [
    ['developers', '.rows', ({ goTo }) => goTo('/developers')],
    ['key', '.facts', keyOfTill],
    ['key-problem', '.problem', wrongKey],
    ['key-secret', '.secret', keySecret],
    ['endpoint', 'pre, .rows', endpoint],
    ['endpoint-new', 'fieldset', newEndpoint],
    ['events', 'pre', eventLog],
    ['sandbox', '.facts', ({ goTo }) => goTo('/developers/sandbox')],
    ['settings', 'form', ({ goTo }) => goTo('/settings')],
    ['settings-approvals', '.alert', approvals],
  ],
  english: ['/developers', '/developers/keys/new', '/developers/events', '/developers/sandbox', '/settings'],
})
