import { formHeaders, formOf } from '../form.ts'
import type { AuditedFixture, AuditedShop } from './fixture.ts'
import {
  beneficiary,
  draft,
  funded,
  hook,
  idOf,
  made,
  type Named,
  paymentLink,
  phone,
  type Prepare,
  theShop,
  webhook,
} from './operations.ts'

// Every writing route of REST, as `mutations` has those of GraphQL. A route without a row here fails the
// test.

/** A route that the shop's API key calls; `makeId` makes the thing that its path names. */
const route =
  (
    body: object | string | undefined,
    target: Named,
    makeId?: (fixture: AuditedFixture, shop: AuditedShop) => Promise<unknown>,
  ) =>
  (method: string, path: string): Prepare =>
  async (fixture, shop) => {
    const id = await makeId?.(fixture, shop)
    const headers = typeof body === 'string' ? formHeaders : {}
    const at = path.replace('{id}', String(id))
    const ask = { method, path: at, token: shop.token, headers, ...(body && { body }) }
    return { ask, actor: shop.key, target: (data) => target(data, { id }, shop) }
  }

const answered = (kind: string, name = 'id') => made(kind, (data) => data[name])

const paid = { amount: 5_000, customer_phone: phone, payment_method: 'OperatorA' }
const rowed = { name: 'Awa', account: phone, amount: 1_000, payment_method: 'OperatorA' }

/** The cases by method and path. */
export const restWrites: Readonly<Record<string, (method: string, path: string) => Prepare>> = {
  'POST /auth':
    (method, path) =>
    async (_fixture, { apiKey, apiSecret, key }) => {
      const headers = { 'X-API-Key': apiKey, 'X-API-Secret': apiSecret }
      const badly = { ...headers, 'X-API-Secret': `${apiSecret.slice(0, -6)}aaaaaa` }
      const refused = { method, path, headers: badly }
      return { ask: { method, path, headers }, actor: key, target: key, refused }
    },
  'POST /pay': route(paid, answered('transaction', 'transaction_id')),
  'POST /deposit': route(paid, () => 'transaction', funded),
  'POST /payouts': route(
    { amount: 1_000, destination_phone: phone, payment_method: 'OperatorA' },
    () => 'payout',
    funded,
  ),
  'POST /bulk/batches': route({ recipients: [rowed] }, answered('batch')),
  'POST /bulk/batches/import': route(formOf('name,account,amount\nAwa,70000001,1000'), answered('batch')),
  'POST /bulk/batches/{id}/recipients': route({ recipients: [rowed] }, idOf('batch'), draft),
  'POST /bulk/batches/{id}/process': route(undefined, idOf('batch'), draft),
  'POST /bulk/batches/{id}/cancel': route(undefined, idOf('batch'), draft),
  'POST /beneficiaries': route(
    { name: 'Awa', account: phone, payment_method: 'OperatorA' },
    () => 'beneficiary',
  ),
  'PUT /beneficiaries/{id}': route({ name: 'Fanta' }, idOf('beneficiary'), beneficiary),
  'POST /payment-links': route({ title: 'Café' }, answered('payment_link')),
  'PUT /payment-links/{id}': route({ title: 'Thé' }, idOf('payment_link'), paymentLink),
  'POST /webhooks': route({ ...hook, events: ['payment_received'] }, answered('webhook')),
  'PUT /webhooks/{id}': route({ is_active: false }, idOf('webhook'), webhook),
  'DELETE /webhooks/{id}': route(undefined, idOf('webhook'), webhook),
  'POST /webhooks/{id}/test': route(undefined, idOf('webhook'), webhook),
  'POST /team/invite': route({ name: 'Awa', email: 'awa@rest.test' }, () => 'member'),
  'PUT /team/{id}/role': route(
    { role: 'finance' },
    idOf('member'),
    async (fixture, shop) => (await fixture.member(shop, 'viewer')).memberId,
  ),
  'DELETE /team/{id}': route(
    undefined,
    idOf('member'),
    async (fixture, shop) => (await fixture.member(shop, 'viewer')).memberId,
  ),
  'PUT /settings': route({ business_name: 'Chez Fanta' }, theShop),
  // The route reads, but its question to the operator is recorded.
  'GET /balance?payment_method=OperatorA': route(undefined, () => 'operator:OperatorA'),
}
