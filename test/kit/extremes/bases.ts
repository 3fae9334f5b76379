import { fundMerchant } from '../../../src/resources/merchants/fund.ts'
import { limits } from '../../../src/shared/limits.ts'
import type { TestMerchant } from '../app.ts'
import { eventually } from '../eventually.ts'
import type { Fixture } from '../fixture.ts'
import { makeMember, nameHolder, type TestMember } from '../members.ts'
import type { Arguments } from './writer.ts'

/** A merchant whose rows are written by one door, with a person who signs in. */
export interface Shop {
  merchant: TestMerchant
  person: TestMember
  /** A person who decides what the first one and the keys ask for. */
  approver: TestMember
}

/** Opens a merchant with much money. */
export async function openShop(fixture: Fixture): Promise<Shop> {
  const merchant = await fixture.merchant()
  const { access } = fixture.app.services
  for (let n = 0; n < 5; n += 1)
    await fundMerchant(fixture.app.services, merchant.merchantId, { amount: limits.fundAmountMaxXof })
  await nameHolder(fixture.database.owner, access, merchant.merchantId)
  const [person, approver] = await Promise.all([
    makeMember(access, merchant.merchantId, 'owner'),
    makeMember(access, merchant.merchantId, 'owner'),
  ])
  return { merchant, person, approver }
}

/** Makes every payment out of a shop wait for approval. */
export async function askApprovals({ database: { owner } }: Fixture, { merchant }: Shop): Promise<void> {
  await owner.query(
    `UPDATE merchant SET payouts_require_approval = true, approval_threshold = 1000,
       approvals_cover_deposits = true, approvals_required = 1 WHERE id = $1`,
    [merchant.merchantId],
  )
}

const global = (type: string, id: unknown) => Buffer.from(`${type}:${String(id)}`).toString('base64')
const phone = '+22370000000'
const account = { name: 'Awa', account: phone, paymentMethod: 'OperatorA' }
const recipient = { ...account, amount: 1_000 }
const proof = 'A'.repeat(43)
const password = 'le soleil de Bamako'

/** The calls that a person makes, and those that decide. */
export const ofPersons = /changePassword|Totp|^rejectSettings|^approveSettings/
export const ofApprovers = /^(approve|reject)/

/** Makes the rows that a call needs. */
function rowsOf(fixture: Fixture, { merchant: { token }, person }: Shop) {
  const post = async (path: string, body: object) => {
    const answer = await fixture.rest('POST', path, { token, body })
    return String(answer.body['data']?.id ?? answer.body['data']?.transaction_id)
  }
  const payment = { amount: 1_000, customer_phone: phone, payment_method: 'OperatorA' }
  const hook = { url: 'http://127.0.0.1:1/', events: ['api_key_created'] }
  const filled = () => {
    const recipients = [{ name: 'Awa', account: phone, amount: 1_000, payment_method: 'OperatorA' }]
    return post('/bulk/batches', { recipients })
  }
  const rows = {
    link: () => post('/payment-links', { title: 'Riz' }),
    beneficiary: () => post('/beneficiaries', { name: 'Awa', account: phone, payment_method: 'OperatorA' }),
    draft: () => post('/bulk/batches', { title: 'Mil' }),
    hook: async () => {
      const { body } = await fixture.rest('GET', '/webhooks', { token })
      for (const { id } of body['data']) await fixture.rest('DELETE', `/webhooks/${id}`, { token })
      return post('/webhooks', hook)
    },
    payout: () => post('/payouts', { amount: 1_000, destination_phone: phone, payment_method: 'OperatorA' }),
    deposit: () => post('/deposit', payment),
    filled,
    batch: async () => {
      const id = await filled()
      await fixture.rest('POST', `/bulk/batches/${id}/process`, { token, body: {} })
      return id
    },
    paid: async () => {
      const id = await post('/pay', { ...payment, amount: 1_000_000 })
      const read = () => fixture.rest('GET', `/transactions/${id}`, { token })
      await eventually(async () => (await read()).body['data'].status === 'success')
      return id
    },
    change: async () => {
      const loosen = 'mutation { updateSettings(input: { payoutsRequireApproval: false }) { __typename } }'
      await fixture.graphql(loosen, {}, person.token)
      const { body } = await fixture.graphql('{ settings { pendingChange { id } } }', {}, token)
      return body['data'].settings.pendingChange.id as string
    },
  }
  return rows
}

/** Returns the arguments with which each mutation is accepted, or comes as far as its proof. */
export function basesOf(fixture: Fixture, shop: Shop) {
  const rows = rowsOf(fixture, shop)
  let paid: Promise<string> | undefined
  const money = { amount: 1_000, customerPhone: phone, paymentMethod: 'OperatorA' }
  let people = 0
  const nextEmail = () => `x${(people += 1)}-${shop.merchant.merchantId}@shop.test`
  const onRow =
    (type: keyof ReturnType<typeof rowsOf>, name: string, more: object = {}) =>
    async () => ({
      id: global(name, await rows[type]()),
      ...more,
    })
  const input = (fields: object) => () => Promise.resolve({ input: fields })
  const plain = (fields: object) => () => Promise.resolve(fields)
  const decided = { reason: 'Inconnu' }
  const judged = { digest: 'a'.repeat(64) }
  const bases: Record<string, () => Promise<object>> = {
    acceptInvitation: input({ token: proof, password }),
    addRecipients: onRow('draft', 'Batch', { recipients: [recipient] }),
    approveBatch: onRow('batch', 'Batch', judged),
    approveDeposit: onRow('deposit', 'Transaction', judged),
    approvePayout: onRow('payout', 'Payout', judged),
    approveSettingsChange: async () => ({ id: await rows.change(), ...judged }),
    authenticate: async () => {
      // A key may try twenty times in a quarter of an hour.
      await fixture.database.owner.query('TRUNCATE rate_limit')
      return { input: { apiKey: shop.merchant.apiKey, apiSecret: shop.merchant.apiSecret } }
    },
    changeMemberRole: plain({ role: 'VIEWER' }),
    changePassword: plain({ current: password, password }),
    collectPayment: input(money),
    confirmTotp: plain({ code: '123456' }),
    createApiKey: input({ name: 'Till', scopes: ['PAY'] }),
    createBatch: input({ title: 'Mil', recipients: [recipient] }),
    createBeneficiary: input(account),
    createPaymentLink: input({ title: 'Riz' }),
    createPayout: input({ amount: 1_000, destinationPhone: phone, paymentMethod: 'OperatorA' }),
    deposit: input(money),
    disableTotp: plain({ code: '123456', password }),
    inviteMember: () => Promise.resolve({ input: { name: 'Awa', email: nextEmail() } }),
    processBatch: onRow('filled', 'Batch'),
    refundTransaction: async () => ({
      id: global('Transaction', await (paid ??= rows.paid())),
      amount: 1_000,
    }),
    registerWebhook: async () => {
      await rows.hook()
      return { input: { url: 'http://127.0.0.1:1/', events: ['API_KEY_CREATED'] } }
    },
    rejectBatch: onRow('batch', 'Batch', decided),
    rejectDeposit: onRow('deposit', 'Transaction', decided),
    rejectPayout: onRow('payout', 'Payout', decided),
    rejectSettingsChange: async () => ({ id: await rows.change(), ...decided }),
    removeMember: plain({ id: global('TeamMember', shop.approver.memberId) }),
    replayEvents: async () => ({ webhookId: global('Webhook', await rows.hook()), from: 1, to: 2 }),
    requestPasswordReset: input({ email: 'awa@shop.test' }),
    resetPassword: input({ token: proof, password }),
    sandboxFund: plain({ amount: 1_000 }),
    sandboxSignIn: input({ token: proof }),
    signIn: input({ email: 'awa@shop.test', password }),
    startTotp: plain({ password }),
    updateBeneficiary: onRow('beneficiary', 'Beneficiary', { input: {} }),
    updatePaymentLink: onRow('link', 'PaymentLink', { input: {} }),
    updateSettings: input({}),
    updateWebhook: onRow('hook', 'Webhook', { input: {} }),
  }
  return (mutation: string): Promise<Arguments> => (bases[mutation] ?? plain({}))() as Promise<Arguments>
}
