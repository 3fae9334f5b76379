import { normalizedExecutor } from '@graphql-tools/executor'
import { type ExecutionResult, parse } from 'graphql'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Compiled, prepare } from '../../src/graphql/compiled.ts'
import type { Context } from '../../src/context.ts'
import { asMerchant } from '../../src/database/merchant-pool.ts'
import { toGraphQLError } from '../../src/graphql/errors.ts'
import { restDocument } from '../../src/http/rest/documents.ts'
import { routes } from '../../src/http/rest/routes.ts'
import { fundMerchant } from '../../src/resources/merchants/fund.ts'
import { schema } from '../../src/resources/schema.ts'
import { startTestApp, type TestApp, type TestMerchant } from '../kit/app.ts'
import { eventually } from '../kit/eventually.ts'

const document = restDocument()

let app: TestApp
let shop: TestMerchant
let context: Context
beforeAll(async () => {
  app = await startTestApp()
  shop = await app.merchant()
  const { services } = app.app
  context = {
    ...services,
    actor: await services.access.tokens.verifyToken(shop.token),
    requestId: '0198c0de-0000-7000-8000-000000000000',
    clientAddress: '127.0.0.1',
    channel: 'graphql',
    idempotentOperation: null,
    language: 'en',
    responseHeaders: new Map(),
    asOfSequence: null,
    sessionCookie: null,
    lastEventId: null,
    loaders: new Map(),
  }
  const { token } = shop
  for (let n = 0; n < 3; n += 1) await app.rest('POST', '/pay', { token, body: payment(`kept-${n}`) })
  await fundMerchant(services, shop.merchantId, { amount: 1_000_000n })
  const person = { name: 'Awa', account: '70009901', payment_method: 'OperatorA' }
  await app.rest('POST', '/beneficiaries', { token, body: person })
  await app.rest('POST', '/payment-links', { token, body: { title: 'Café', url_slug: 'kept-link' } })
  const paid = { amount: 1_000, beneficiary_id: 1, reference: 'kept-1', scheduled_at: tomorrow }
  await app.rest('POST', '/payouts', { token, body: paid })
  for (let n = 1; n <= 3; n += 1) {
    await app.rest('POST', '/webhooks', { token, body: { url: webhookUrl, events: ['deposit_reversed'] } })
    await app.rest('POST', '/team/invite', { token, body: { name: 'Awa', email: `awa-${n}@example.com` } })
  }
})
afterAll(() => app.close())

const tomorrow = new Date(Date.now() + 86_400_000)
/** No receiver listens there. */
const webhookUrl = 'http://127.0.0.1:9/hook'
/** The ids to remove: each run takes the next one, because a removed one is gone. */
const removed = { webhook: 1, member: 1 }

/** A test number that answers no prompt. */
const silentCustomer = '+22370110000'

function payment(reference: string, more: object = {}): object {
  const customer = { customer_phone: silentCustomer, payment_method: 'OperatorA' }
  return { amount: 5_000, ...customer, reference, ...more }
}

/** A scheduled payout: no job moves it during the test. */
function freshPayout(more: object = {}): () => object {
  return () => {
    made += 1
    const destination = { destinationPhone: silentCustomer, paymentMethod: 'OperatorA' }
    const input = { amount: 1_000n, ...destination, reference: `made-${made}`, scheduledAt: tomorrow }
    return { input: { ...input, ...more } }
  }
}

const recipient = { name: 'Awa', account: silentCustomer, amount: 1_000n, paymentMethod: 'OperatorA' }

function freshBatch(more: object = {}): () => object {
  return () => ({ input: { title: `made-${(made += 1)}`, recipients: [recipient], ...more } })
}

let made = 0
/** Each run of a mutation takes its own reference; the runs differ in nothing else. */
function freshPayment(more: object = {}): () => object {
  return () => {
    made += 1
    const input = { amount: 5_000n, customerPhone: silentCustomer, paymentMethod: 'OPERATOR_A' }
    return { input: { ...input, paymentMethod: 'OperatorA', reference: `made-${made}`, ...more } }
  }
}

/** The input for each row's operation. An operation without an entry here fails. */
const inputs: Record<string, readonly (() => object)[]> = {
  Authenticate: [
    () => ({ input: { apiKey: shop.apiKey, apiSecret: shop.apiSecret, scopes: ['pay'], expiresInHours: 2 } }),
    () => ({ input: { apiKey: shop.apiKey, apiSecret: 'ms_wrong' } }),
    () => ({ input: { apiKey: shop.apiKey, apiSecret: shop.apiSecret, scopes: ['bogus'] } }),
  ],
  ServiceStatus: [() => ({})],
  PaymentStatus: [
    () => ({ reference: 'kept-1' }),
    () => ({ reference: 'kept-1', merchantId: shop.merchantId }),
    () => ({ reference: 'nobody-s', merchantId: undefined }),
    () => ({ reference: 'kept-1', merchantId: 'no number' }),
    () => ({}),
  ],
  CollectPayment: [
    freshPayment(),
    freshPayment({ description: 'Café', currency: 'XOF', paymentMethod: 'OperatorB' }),
    freshPayment({ amount: 1n, customerPhone: 'nobody' }),
    freshPayment({ reference: 'kept-1' }),
    freshPayment({ customerPhone: '+22370000001', paymentMethod: 'OperatorC' }),
    freshPayment({ unknown: 1 }),
    freshPayment({ amount: 'a lot' }),
  ],
  Deposit: [
    freshPayment({ customerPhone: '+22370000001', paymentMethod: 'OperatorD' }),
    freshPayment({ customerPhone: '+22370030001', paymentMethod: 'OperatorD' }),
    freshPayment({ amount: 999n }),
    freshPayment({ reference: 'kept-1' }),
    freshPayment({ amount: 'a lot' }),
  ],
  CreatePayout: [
    freshPayout(),
    freshPayout({ destinationPhone: null, paymentMethod: null, beneficiaryId: '1' }),
    freshPayout({ destinationPhone: null, paymentMethod: null, beneficiaryId: 'nobody-s' }),
    freshPayout({ reference: 'kept-1' }),
    freshPayout({ amount: 900_000_000n, scheduledAt: null }),
    freshPayout({ amount: 90_000_000n, scheduledAt: null }),
    freshPayout({ scheduledAt: 'one day' }),
  ],
  Payouts: [
    () => ({ limit: 2, offset: 0, filter: {} }),
    () => ({ limit: 100, offset: 0, filter: { reference: 'kept-1', status: 'PENDING' } }),
    () => ({ limit: 100, offset: 0, filter: { paymentMethod: 'BankTransfer', beneficiaryId: '1' } }),
    () => ({ limit: 100, offset: -1, filter: null }),
  ],
  Payout: [() => ({ id: 1 }), () => ({ id: 999_999 }), () => ({ id: null })],
  CreateBatch: [
    freshBatch(),
    freshBatch({ recipients: [] }),
    () => ({ ...freshBatch({ recipients: [recipient, recipient] })(), dryRun: true }),
    freshBatch({ recipients: [{ name: 'Awa', account: 'nobody', amount: 1n }] }),
    freshBatch({ recipients: [{ name: 'Awa' }] }),
  ],
  Batch: [() => ({ id: 1 }), () => ({ id: 999_999 }), () => ({ id: null })],
  AddRecipients: [
    () => ({ id: 1, recipients: [] }),
    () => ({ id: 999_999, recipients: [recipient] }),
    () => ({ id: 1 }),
  ],
  BatchRecipients: [
    () => ({ id: 1, limit: 2, offset: 1, filter: {} }),
    () => ({ id: 1, limit: 2, offset: 0, filter: { status: 'PENDING', name: 'awa' } }),
    () => ({ id: 1, limit: 101, offset: 0 }),
    () => ({ id: 999_999, limit: 2, offset: 0 }),
  ],
  ProcessBatch: [() => ({ id: 999_999 }), () => ({ id: 'nobody-s' }), () => ({})],
  CancelBatch: [() => ({ id: 999_999 }), () => ({ id: 'nobody-s' }), () => ({})],
  CreatePaymentLink: [
    () => ({ input: { title: 'Café', amount: 5_000n, usageLimit: 3, urlSlug: `made-${(made += 1)}` } }),
    () => ({ input: { title: 'Café', urlSlug: 'admin' } }),
    () => ({ input: { title: 'Café', urlSlug: 'kept-link' } }),
    () => ({ input: { amount: 5_000n } }),
  ],
  PaymentLinks: [
    () => ({ limit: 2, offset: 0, filter: {} }),
    () => ({ limit: 100, offset: 0, filter: { activeOnly: false } }),
    () => ({ limit: 100, offset: -1, filter: null }),
  ],
  PaymentLink: [() => ({ id: 1 }), () => ({ id: 999_999 }), () => ({ id: null })],
  UpdatePaymentLink: [
    () => ({ id: 1, input: { title: 'Thé', amount: null } }),
    () => ({ id: 1, input: { usageLimit: 0 } }),
    () => ({ id: 999_999, input: { title: 'Thé' } }),
  ],
  CreateBeneficiary: [
    () => ({ input: { name: `made-${(made += 1)}`, account: '70009902', paymentMethod: 'OperatorB' } }),
    () => ({ input: { name: 'Moussa', account: 'ML013', paymentMethod: 'OperatorB' } }),
    () => ({ input: { name: 'Moussa' } }),
  ],
  Beneficiaries: [
    () => ({ limit: 2, offset: 0, filter: { activeOnly: true } }),
    () => ({ limit: 100, offset: 0, filter: { category: 'PARTNER' } }),
    () => ({ limit: 0, offset: 0, filter: null }),
  ],
  Beneficiary: [() => ({ id: 1 }), () => ({ id: 999_999 }), () => ({})],
  UpdateBeneficiary: [
    () => ({ id: 1, input: { category: 'SUPPLIER' } }),
    () => ({ id: 1, input: { account: 'nobody' } }),
    () => ({ id: 999_999, input: {} }),
  ],
  RegisterWebhook: [
    () => ({ input: { url: `${webhookUrl}/made-${(made += 1)}`, events: ['deposit_reversed'] } }),
    () => ({ input: { url: 'ftp://nobody', events: ['payment_received'] } }),
    () => ({ input: { url: webhookUrl, events: [] } }),
    () => ({ input: { url: webhookUrl, events: ['nothing'] } }),
  ],
  Webhooks: [() => ({ limit: 2, offset: 1 }), () => ({ limit: 100, offset: -1 })],
  Webhook: [() => ({ id: 1 }), () => ({ id: 999_999 }), () => ({})],
  UpdateWebhook: [
    () => ({ id: 1, input: { events: ['payment_failed'], isActive: false } }),
    () => ({ id: 1, input: { url: 'ftp://nobody' } }),
    () => ({ id: 999_999, input: {} }),
  ],
  RemoveWebhook: [() => ({ id: (removed.webhook += 1) }), () => ({ id: 999_999 })],
  SendTestEvent: [() => ({ id: 1 }), () => ({ id: 999_999 })],
  InviteMember: [
    () => ({ input: { name: 'Awa', email: `made-${(made += 1)}@example.com` } }),
    () => ({ input: { name: 'Awa', email: 'awa-1@example.com' } }),
    () => ({ input: { name: '', email: 'nobody', role: 'VIEWER' } }),
    () => ({ input: { name: 'Awa', email: 'awa@example.com', role: 'KING' } }),
  ],
  Members: [() => ({ limit: 2, offset: 0 }), () => ({ limit: 0, offset: 0 })],
  Member: [() => ({ id: 1 }), () => ({ id: 999_999 }), () => ({})],
  ChangeMemberRole: [
    () => ({ id: 1, role: 'FINANCE' }),
    () => ({ id: 999_999, role: 'VIEWER' }),
    () => ({ id: 1, role: 'KING' }),
  ],
  RemoveMember: [() => ({ id: (removed.member += 1) }), () => ({ id: 999_999 })],
  Settings: [() => ({})],
  UpdateSettings: [
    () => ({ input: { locale: 'EN', businessName: null } }),
    () => ({ input: { locale: 'BM' } }),
    () => ({ input: { ipWhitelist: ['nobody'] } }),
  ],
  Balance: [() => ({}), () => ({ paymentMethod: undefined }), () => ({ paymentMethod: 'OperatorC' })],
  Transactions: [
    () => ({ limit: 2, offset: 0, filter: {} }),
    () => ({ limit: 100, offset: 1, filter: { reference: 'kept-1', createdTo: new Date() } }),
    () => ({ limit: 100, offset: 0, filter: { reference: 'nobody-s' } }),
    () => ({ limit: 100, offset: -1, filter: null }),
  ],
  Transaction: [() => ({ id: 1 }), () => ({ id: 999_999 }), () => ({ id: null })],
}

/** Waits for the payments of other operations: a settlement between two runs would change the balance. */
async function untilSettled(): Promise<void> {
  await eventually(async () => {
    const { rows } = await app.database.owner.query(
      `SELECT reference, status FROM transaction
       WHERE status IN ('pending', 'processing') AND customer_phone <> '${silentCustomer}'`,
    )
    expect(rows).toEqual([])
  })
}

describe.each(routes.map(({ operation }) => operation))('%s', (operation) => {
  const { run: compiled } = prepare(schema, document, operation)

  test('the compiled operation gives the result of general execution, refusals included', async () => {
    const cases = inputs[operation] ?? []
    expect(cases).not.toEqual([])
    await untilSettled()
    for (const variables of cases) {
      const executed = await execute(operation, variables())
      const own = await runCompiled(compiled, variables())
      expect(comparable(own)).toEqual(comparable(executed))
    }
  })
})

test('a document that cannot be compiled stops the start', () => {
  const strange = parse('query Two { serviceStatus { status } balance { currency } }')
  expect(() => prepare(schema, strange, 'Two')).toThrow('one root field')
  const skipping = parse('query Skip($no: Boolean!) { serviceStatus { status @skip(if: $no) } }')
  expect(() => prepare(schema, skipping, 'Skip')).toThrow('can be compiled')
})

async function execute(operationName: string, variableValues: object): Promise<unknown> {
  const given = {
    schema,
    document,
    operationName,
    variableValues: { ...variableValues },
    contextValue: context,
  }
  return rootOf((await asMerchant(shop.merchantId, () => normalizedExecutor(given))) as ExecutionResult)
}

async function runCompiled(compiled: Compiled, variables: object): Promise<unknown> {
  return rootOf(await asMerchant(shop.merchantId, () => compiled(variables, context)))
}

function rootOf({ data, errors = [] }: ExecutionResult): unknown {
  const [error] = errors
  return error ? { refused: toGraphQLError(error, 'r', context.log).toJSON() } : Object.values(data ?? {})[0]
}

/** Without the values that must differ from run to run, and without texts that no client sees. */
function comparable(answer: unknown): unknown {
  if (isRefusedVariable(answer)) return { ...answer.refused, message: '' }
  const text = JSON.stringify(answer)
  // Rows that each run creates have their own ids.
  const own = /"made-|\/made-|"TeamMember","id"/.test(text) ? ['id'] : []
  return JSON.parse(text, (name, value: unknown) =>
    (/^(token|secret|transaction_id|.*_at|.*_ms|as_of|time|age_seconds|payment_url)$/.test(name) ||
      own.includes(name)) &&
    value !== null
      ? typeof value
      : typeof value === 'string'
        ? value.replace(/made-\d+/, 'made')
        : value,
  )
}

/** Our own routes check their input first: a variable that does not fit is a bug of ours. */
function isRefusedVariable(answer: unknown): answer is { refused: object } {
  return JSON.stringify(answer).includes('GRAPHQL_VALIDATION_FAILED')
}
