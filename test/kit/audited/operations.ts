import { nameHolder } from '../members.ts'
import { offerSandboxSignIn } from '../../../src/resources/team/sandbox-sign-in.ts'
import { totpCode } from '../../../src/identity/members/totp.ts'
import { eventually } from '../eventually.ts'
import type { AuditedRequest, Data, AuditedFixture, Person, AuditedShop } from './fixture.ts'

// Every mutation of the schema: each succeeds once and leaves its entry in the audit log, and is refused
// once. A mutation without a row here fails the test.

export interface Case {
  ask: AuditedRequest
  /** The actor, as entries name it. */
  actor: string
  /** The target; where the mutation makes it, read from the answer. */
  target: string | ((data: Data) => string)
  /** A request that must be refused; absent: the same request by a member who may only read. */
  refused?: AuditedRequest
  /** Its one-time code is used up, also by a refused request. */
  isGoodOnce?: true
}

export type Prepare = (fixture: AuditedFixture, shop: AuditedShop) => Promise<Case>

const wrong = 'ceci est tout à fait faux'
export const phone = '70000000'
const payment = { amount: 5_000, customerPhone: phone, paymentMethod: 'OperatorA' }
const somebody = { name: 'Awa', account: phone, paymentMethod: 'OperatorA' }
export const hook = { url: 'http://127.0.0.1:1/hook', events: ['PAYMENT_RECEIVED'] }

/** Names the target of an entry: from the answer, from the variables, or the shop itself. */
export type Named = (data: Data, given: Data, shop: AuditedShop) => string
type Given = Promise<Record<string, unknown>> | Record<string, unknown>

/** A mutation that the shop's API key calls. */
const byKey =
  (variables: (fixture: AuditedFixture, shop: AuditedShop) => Given, target: Named) =>
  (field: string): Prepare =>
  async (fixture, shop) => {
    const given = await variables(fixture, shop)
    const ask = { field, variables: given, token: shop.token }
    return { ask, actor: shop.key, target: (data) => target(data, given, shop) }
  }

/** A mutation by which a person changes the person's own account. */
const byPerson =
  (variables: (fixture: AuditedFixture, person: Person) => Given, wrongly: Record<string, unknown>) =>
  (field: string): Prepare =>
  async (fixture, shop) => {
    const person = await fixture.person(shop)
    const { token } = person
    const given = await variables(fixture, person)
    const who = `member:${person.memberId}`
    const refused = { field, variables: { ...given, ...wrongly }, token }
    const ask = { field, variables: given, token }
    return { ask, actor: who, target: who, refused, ...(field === 'disableTotp' && { isGoodOnce: true }) }
  }

const codeNow = (secret: string) => {
  const bits = Array.from(secret, (mail) => 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'.indexOf(mail))
  const text = bits.map((five) => five.toString(2).padStart(5, '0')).join('')
  const bytes = (text.match(/.{8}/g) ?? []).map((byte) => Number.parseInt(byte, 2))
  return totpCode(Buffer.from(bytes), BigInt(Math.floor(Date.now() / 30_000)))
}

async function startTotp(fixture: AuditedFixture, { token, password }: Person): Promise<{ code: string }> {
  const { secret } = await fixture.done({ field: 'startTotp', variables: { password }, token })
  return { code: codeNow(secret) }
}

async function recoveryCodes(fixture: AuditedFixture, person: Person): Promise<string[]> {
  const variables = await startTotp(fixture, person)
  const { codes } = await fixture.done({ field: 'confirmTotp', variables, token: person.token })
  return codes
}

async function otherKey(fixture: AuditedFixture, { token }: AuditedShop): Promise<number> {
  const variables = { input: { name: 'Till', scopes: ['PAY'] } }
  const { apiKey } = await fixture.done({ field: 'createApiKey', variables, token })
  return apiKey.databaseId
}

export async function webhook(fixture: AuditedFixture, { token }: AuditedShop): Promise<number> {
  const made = await fixture.done({ field: 'registerWebhook', variables: { input: hook }, token })
  return made['webhook'].databaseId
}

export async function beneficiary(fixture: AuditedFixture, { token }: AuditedShop): Promise<number> {
  const made = await fixture.done({ field: 'createBeneficiary', variables: { input: somebody }, token })
  return made['databaseId']
}

export async function paymentLink(fixture: AuditedFixture, { token }: AuditedShop): Promise<number> {
  const variables = { input: { title: 'Café' } }
  return (await fixture.done({ field: 'createPaymentLink', variables, token }))['databaseId']
}

export async function funded(fixture: AuditedFixture, { token }: AuditedShop): Promise<void> {
  await fixture.done({ field: 'sandboxFund', variables: { amount: 100_000 }, token })
}

async function collected(fixture: AuditedFixture, shop: AuditedShop): Promise<number> {
  const { databaseId: id } = await fixture.done({
    field: 'collectPayment',
    variables: { input: payment },
    token: shop.token,
  })
  await eventually(async () => {
    const { status } = await fixture.done({ path: `/transactions/${id}`, token: shop.token })
    if (status !== 'success') throw new Error(status)
  })
  return id
}

const recipient = { name: 'Awa', account: phone, amount: 1_000, paymentMethod: 'OperatorA' }

/** Makes a draft for one recipient, of a shop that can pay it. */
export async function draft(fixture: AuditedFixture, shop: AuditedShop, account = phone): Promise<number> {
  await funded(fixture, shop)
  const variables = { input: { recipients: [{ ...recipient, account }] } }
  const made = await fixture.done({ field: 'createBatch', variables, token: shop.token })
  return made['batch'].databaseId
}

/** Makes a batch with one recipient, which the operator refuses. */
async function failedBatch(fixture: AuditedFixture, shop: AuditedShop): Promise<number> {
  const { token } = shop
  const id = await draft(fixture, shop, '70020000')
  await fixture.done({ field: 'processBatch', variables: { id }, token })
  await eventually(async () => {
    const { status } = await fixture.done({ path: `/bulk/batches/${id}`, token })
    if (status !== 'failed') throw new Error(status)
  })
  return id
}

const tomorrow = () => new Date(Date.now() + 86_400_000).toISOString()
const payout = { amount: 1_000, destinationPhone: phone, paymentMethod: 'OperatorA' }
export const idOf =
  (kind: string): Named =>
  (_data, { id }) =>
    `${kind}:${id}`
export const made =
  (kind: string, at: (data: Data) => unknown): Named =>
  (data) =>
    `${kind}:${String(at(data))}`
/** A mutation of a signed-in member about a waiting payout or batch; an API key is refused. */
const byApprover =
  (
    kind: string,
    wait: (fixture: AuditedFixture, shop: AuditedShop) => Promise<Data>,
    more: (approval: Data) => Record<string, unknown>,
  ) =>
  (field: string): Prepare =>
  async (fixture, shop) => {
    const asking = { input: { payoutsRequireApproval: true } }
    await fixture.done({ field: 'updateSettings', variables: asking, token: shop.token })
    await nameHolder(fixture.service.database.owner, fixture.service.app.services.access, shop.merchantId)
    const { databaseId: id, approval } = await wait(fixture, shop)
    const { token, memberId } = await fixture.member(shop, 'owner')
    const ask = { field, variables: { id, ...more(approval) }, token }
    const refused = { ...ask, token: shop.token }
    return { ask, actor: `member:${memberId}`, target: `${kind}:${id}`, refused }
  }
const payoutThatWaits = (fixture: AuditedFixture, { token }: AuditedShop) =>
  fixture.done({ field: 'createPayout', variables: { input: { ...payout, scheduledAt: tomorrow() } }, token })
const batchThatWaits = async (fixture: AuditedFixture, shop: AuditedShop) => {
  const variables = { id: await draft(fixture, shop) }
  await fixture.done({ field: 'processBatch', variables, token: shop.token })
  return fixture.done({ field: 'batch', variables, token: shop.token })
}
const depositThatWaits = async (fixture: AuditedFixture, shop: AuditedShop) => {
  const { token } = shop
  await funded(fixture, shop)
  await fixture.done({
    field: 'updateSettings',
    variables: { input: { approvalsCoverDeposits: true } },
    token,
  })
  const { databaseId } = await fixture.done({ field: 'deposit', variables: { input: payment }, token })
  const record = await fixture.done({ field: 'transaction', variables: { databaseId }, token })
  return { databaseId, approval: record.approval }
}
const changeThatWaits = async (fixture: AuditedFixture, shop: AuditedShop) => {
  const { token } = await fixture.member(shop, 'owner')
  const body = { payouts_require_approval: false }
  const { pending_change: pending } = await fixture.done({ method: 'PUT', path: '/settings', body, token })
  return { databaseId: pending.id, approval: pending.approval }
}
export const theShop: Named = (_data, _given, { merchantId }) => `merchant:${merchantId}`

/** The cases by the names of the mutations. */
export const mutations: Readonly<Record<string, ((field: string) => Prepare) | { exempt: string }>> = {
  requestPasswordReset: { exempt: 'anybody may ask, and nothing changes before the letter is used' },

  acceptInvitation: (field) => async (fixture, shop) => {
    const { memberToken, memberId } = await fixture.invite(shop)
    const input = { token: memberToken, password: 'un mot de passe choisi' }
    const who = `member:${memberId}`
    const refused = { field, variables: { input: { ...input, token: `${memberToken}x` } } }
    return { ask: { field, variables: { input } }, actor: who, target: who, refused }
  },
  authenticate:
    (field) =>
    async (_fixture, { apiKey, apiSecret, key }) => {
      const input = { apiKey, apiSecret }
      const refused = {
        field,
        variables: { input: { apiKey, apiSecret: `${apiSecret.slice(0, -6)}aaaaaa` } },
      }
      return { ask: { field, variables: { input } }, actor: key, target: key, refused }
    },
  signIn: (field) => async (fixture, shop) => {
    const { email, password, memberId } = await fixture.person(shop)
    const refused = { field, variables: { input: { email, password: wrong } } }
    const ask = { field, variables: { input: { email, password } } }
    return { ask, actor: `member:${memberId}`, target: 'session', refused }
  },
  signOut: (field) => async (fixture, shop) => {
    const { token, memberId } = await fixture.person(shop)
    const refused = { field, token: shop.token }
    return { ask: { field, token }, actor: `member:${memberId}`, target: 'session', refused }
  },
  signOutEverywhere: (field) => async (fixture, shop) => {
    const { token, memberId } = await fixture.person(shop)
    const refused = { field, token: shop.token }
    return { ask: { field, token }, actor: `member:${memberId}`, target: `member:${memberId}`, refused }
  },
  revokeSession: (field) => async (fixture, shop) => {
    const owner = await fixture.member(shop, 'owner')
    const { sessionId } = await fixture.member(shop, 'viewer')
    const { token } = owner
    const ask = { field, variables: { id: sessionId }, token }
    const refused = { field, variables: { id: 2_000_000_000 }, token }
    return { ask, actor: `member:${owner.memberId}`, target: `session:${sessionId}`, refused }
  },
  resetPassword: (field) => async (fixture, shop) => {
    const person = await fixture.person(shop)
    const token = await fixture.requestReset(person)
    const input = { token, password: 'encore un autre mot' }
    const who = `member:${person.memberId}`
    const refused = { field, variables: { input: { ...input, token: `${token}x` } } }
    return { ask: { field, variables: { input } }, actor: who, target: who, refused }
  },
  changePassword: byPerson(
    (_fixture, { password }) => ({ current: password, password: 'le prochain mot de passe' }),
    { current: wrong },
  ),
  startTotp: byPerson((_fixture, { password }) => ({ password }), { password: wrong }),
  confirmTotp: byPerson(startTotp, { code: 'abcdef' }),
  disableTotp: byPerson(
    async (fixture, person) => ({
      password: person.password,
      code: (await recoveryCodes(fixture, person))[0],
    }),
    { password: wrong },
  ),

  inviteMember: byKey(
    () => ({ input: { name: 'Awa', email: 'awa@elsewhere.test', role: 'ADMIN' } }),
    made('member', ({ databaseId }) => databaseId),
  ),
  resendInvitation: byKey(
    async (fixture, shop) => ({ id: (await fixture.invite(shop)).memberId }),
    idOf('member'),
  ),
  changeMemberRole: byKey(
    async (fixture, shop) => ({ id: (await fixture.member(shop, 'viewer')).memberId, role: 'FINANCE' }),
    idOf('member'),
  ),
  removeMember: byKey(
    async (fixture, shop) => ({ id: (await fixture.member(shop, 'viewer')).memberId }),
    idOf('member'),
  ),
  createApiKey: byKey(
    () => ({ input: { name: 'Till', scopes: ['PAY'] } }),
    made('api_key', ({ apiKey }) => apiKey.databaseId),
  ),
  regenerateApiKey: byKey(async (fixture, shop) => ({ id: await otherKey(fixture, shop) }), idOf('api_key')),
  revokeApiKey: byKey(async (fixture, shop) => ({ id: await otherKey(fixture, shop) }), idOf('api_key')),
  updateSettings: byKey(() => ({ input: { businessName: 'Chez Awa', approvalThreshold: 7 } }), theShop),
  createBeneficiary: byKey(
    () => ({ input: somebody }),
    made('beneficiary', ({ databaseId }) => databaseId),
  ),
  updateBeneficiary: byKey(
    async (fixture, shop) => ({ id: await beneficiary(fixture, shop), input: { name: 'Fanta' } }),
    idOf('beneficiary'),
  ),

  createPaymentLink: byKey(
    () => ({ input: { title: 'Café', amount: 5_000 } }),
    made('payment_link', ({ databaseId }) => databaseId),
  ),
  updatePaymentLink: byKey(
    async (fixture, shop) => ({ id: await paymentLink(fixture, shop), input: { title: 'Thé' } }),
    idOf('payment_link'),
  ),

  registerWebhook: byKey(
    () => ({ input: hook }),
    made('webhook', (data) => data['webhook'].databaseId),
  ),
  updateWebhook: byKey(
    async (fixture, shop) => ({ id: await webhook(fixture, shop), input: { isActive: false } }),
    idOf('webhook'),
  ),
  removeWebhook: byKey(async (fixture, shop) => ({ id: await webhook(fixture, shop) }), idOf('webhook')),
  rotateWebhookSecret: byKey(
    async (fixture, shop) => ({ id: await webhook(fixture, shop) }),
    idOf('webhook'),
  ),
  sendTestEvent: byKey(async (fixture, shop) => ({ id: await webhook(fixture, shop) }), idOf('webhook')),
  replayEvents: byKey(
    async (fixture, shop) => ({ webhookId: await webhook(fixture, shop), from: 1, to: 1_200 }),
    (_data, { webhookId }) => `webhook:${webhookId}`,
  ),

  collectPayment: byKey(
    () => ({ input: payment }),
    made('transaction', ({ databaseId }) => databaseId),
  ),
  deposit: byKey(
    async (fixture, shop) => {
      await funded(fixture, shop)
      return { input: payment }
    },
    made('transaction', ({ databaseId }) => databaseId),
  ),
  refundTransaction: byKey(
    async (fixture, shop) => ({ id: await collected(fixture, shop), reason: 'returned' }),
    made('transaction', ({ databaseId }) => databaseId),
  ),
  createPayout: byKey(
    async (fixture, shop) => {
      await funded(fixture, shop)
      return { input: payout }
    },
    made('payout', ({ databaseId }) => databaseId),
  ),
  cancelPayout: byKey(async (fixture, { token }) => {
    const input = { ...payout, scheduledAt: tomorrow() }
    const { databaseId } = await fixture.done({ field: 'createPayout', variables: { input }, token })
    return { id: databaseId }
  }, idOf('payout')),

  createBatch: byKey(
    () => ({ input: { title: 'Salaries', recipients: [recipient] } }),
    made('batch', ({ batch }) => batch.databaseId),
  ),
  addRecipients: byKey(
    async (fixture, shop) => ({ id: await draft(fixture, shop), recipients: [recipient] }),
    idOf('batch'),
  ),
  processBatch: byKey(async (fixture, shop) => ({ id: await draft(fixture, shop) }), idOf('batch')),
  cancelBatch: byKey(async (fixture, shop) => ({ id: await draft(fixture, shop) }), idOf('batch')),
  retryFailed: byKey(
    async (fixture, shop) => ({ batchId: await failedBatch(fixture, shop) }),
    made('batch', ({ batch }) => batch.databaseId),
  ),

  approveDeposit: byApprover('transaction', depositThatWaits, ({ digest }) => ({ digest })),
  rejectDeposit: byApprover('transaction', depositThatWaits, () => ({ reason: 'not ours' })),
  approveSettingsChange: byApprover('settings_change', changeThatWaits, ({ digest }) => ({ digest })),
  rejectSettingsChange: byApprover('settings_change', changeThatWaits, () => ({ reason: 'not ours' })),
  approvePayout: byApprover('payout', payoutThatWaits, ({ digest }) => ({ digest })),
  approveBatch: byApprover('batch', batchThatWaits, ({ digest }) => ({ digest })),
  rejectBatch: byApprover('batch', batchThatWaits, () => ({ reason: 'not ours' })),
  rejectPayout: byApprover('payout', payoutThatWaits, () => ({ reason: 'not ours' })),

  sandboxFund: byKey(() => ({ amount: 5 }), theShop),
  sandboxSignIn: (field) => async (fixture, shop) => {
    const token = (await offerSandboxSignIn(fixture.service.app.services, shop.merchantId)) ?? ''
    fixture.secrets.add(token)
    const { rows } = await fixture.service.database.owner.query<{ id: number }>(
      'SELECT member_id AS id FROM member_secret WHERE merchant_id = $1 AND sign_in_hash IS NOT NULL',
      [shop.merchantId],
    )
    const refused = { field, variables: { input: { token: `${token}x` } } }
    const ask = { field, variables: { input: { token } } }
    return { ask, actor: `member:${rows[0]?.id}`, target: 'session', refused }
  },
  sandboxAdvanceClock: byKey(
    () => ({ by: 'PT1S' }),
    () => 'sandbox:clock',
  ),
}
