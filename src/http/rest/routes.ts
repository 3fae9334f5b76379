import { z } from 'zod'
import { createBeneficiaryInput } from '../../resources/beneficiaries/create.ts'
import { beneficiaryFilterInput } from '../../resources/beneficiaries/list.ts'
import { updateBeneficiaryInput } from '../../resources/beneficiaries/update.ts'
import { refusals } from '../../shared/errors.ts'
import { flatPayoutInput } from '../../resources/payouts/create.ts'
import { payoutFilterInput } from '../../resources/payouts/list.ts'
import { updateSettingsInput } from '../../resources/settings/update.ts'
import { collectInput } from '../../resources/transactions/collect.ts'
import { depositInput } from '../../resources/transactions/deposit.ts'
import { changeRoleInput } from '../../resources/team/change-role.ts'
import { inviteMemberInput } from '../../resources/team/invite.ts'
import { removeMemberInput } from '../../resources/team/remove.ts'
import { transactionFilterInput } from '../../resources/transactions/list.ts'
import { registerWebhookInput } from '../../resources/webhooks/register.ts'
import { updateWebhookInput } from '../../resources/webhooks/update.ts'
import { DomainError } from '../../shared/errors.ts'
import { pageInput, provider, readInput, reference, snakeCase, wholeNumber } from '../../shared/input.ts'
import { providers } from '../../shared/providers.ts'
import { bulkRoutes } from './bulk-routes.ts'
import { linkRoutes } from './link-routes.ts'
import {
  bareList,
  body,
  changeBody,
  idOf,
  inSchemaWords,
  orderedPageInput,
  pageOf,
  pageOptions,
  query,
  readObject,
  type RestRequest,
  type RestRoute,
  withoutNulls,
} from './route.ts'

/** Every REST path of the service. A path has the scope of its operation in the schema. */
export const routes: readonly RestRoute[] = [
  {
    method: 'POST',
    path: '/auth',
    status: 200,
    operation: 'Authenticate',
    hasOwnLimit: true,
    variables: credentials,
    data: tokenData,
  },
  {
    method: 'GET',
    path: '/status',
    status: 200,
    operation: 'ServiceStatus',
    // Requests at the same time share one question to the database.
    isUncounted: true,
    variables: () => ({}),
    statusOf: ({ status }: { status: string }) => (status === 'down' ? refusals.SERVICE_DOWN.status : 200),
    message: ({ status }: { status: string }) => (status === 'down' ? refusals.SERVICE_DOWN.message : null),
  },
  {
    method: 'GET',
    path: '/payment/status/{reference}',
    status: 200,
    operation: 'PaymentStatus',
    variables: (request) => ({
      reference: readInput(z.object({ reference }), request.params).reference,
      merchantId: query(request, z.object({ merchantId: wholeNumber(1, 2_147_483_647).optional() }))
        .merchantId,
    }),
    bare: true,
    anyOrigin: true,
  },
  {
    method: 'POST',
    path: '/pay',
    status: 202,
    operation: 'CollectPayment',
    variables: (request) => ({ input: body(request, collectInput) }),
    data: withoutNulls,
  },
  {
    method: 'POST',
    path: '/deposit',
    status: 200,
    operation: 'Deposit',
    variables: (request) => ({ input: body(request, depositInput) }),
    data: withoutNulls,
    statusOf: ({ status }: { status: string }) =>
      ['processing', 'pending_approval'].includes(status) ? 202 : 200,
  },
  {
    method: 'GET',
    path: '/balance',
    status: 200,
    operation: 'Balance',
    variables: (request) => query(request, z.object({ paymentMethod: provider.optional() })),
    data: balanceData,
  },
  {
    method: 'GET',
    path: '/transactions',
    status: 200,
    operation: 'Transactions',
    variables: (request) => pageOptions(request, transactionFilterInput, orderedPageInput),
    data: pageOf('transactions'),
  },
  {
    method: 'GET',
    path: '/transactions/{id}',
    status: 200,
    operation: 'Transaction',
    variables: idOf,
    data: transactionData,
  },
  {
    method: 'POST',
    path: '/payouts',
    status: 201,
    operation: 'CreatePayout',
    variables: (request) => ({ input: body(request, flatPayoutInput) }),
    data: payoutData,
  },
  {
    method: 'GET',
    path: '/payouts',
    status: 200,
    operation: 'Payouts',
    variables: (request) => pageOptions(request, payoutFilterInput, orderedPageInput),
    data: pageOf('payouts', payoutData),
  },
  {
    method: 'GET',
    path: '/payouts/{id}',
    status: 200,
    operation: 'Payout',
    variables: idOf,
    data: payoutData,
  },
  ...bulkRoutes,
  ...linkRoutes,
  {
    method: 'POST',
    path: '/beneficiaries',
    status: 201,
    operation: 'CreateBeneficiary',
    variables: (request) => ({ input: body(request, createBeneficiaryInput) }),
  },
  {
    method: 'GET',
    path: '/beneficiaries',
    status: 200,
    operation: 'Beneficiaries',
    variables: (request) => pageOptions(request, beneficiaryFilterInput),
    ...bareList,
  },
  {
    method: 'GET',
    path: '/beneficiaries/{id}',
    status: 200,
    operation: 'Beneficiary',
    variables: idOf,
  },
  {
    method: 'PUT',
    path: '/beneficiaries/{id}',
    status: 200,
    operation: 'UpdateBeneficiary',
    variables: (request) => ({ ...idOf(request), input: changeBody(request, updateBeneficiaryInput) }),
    data: () => undefined,
  },
  {
    method: 'POST',
    path: '/webhooks',
    status: 201,
    operation: 'RegisterWebhook',
    variables: (request) => ({ input: body(request, registerWebhookInput) }),
    data: ({ secret, webhook }: { secret: string; webhook: Record<string, unknown> }) => {
      const { id, url, events, is_active, created_at } = webhook
      return { id, url, events, secret, is_active, created_at }
    },
  },
  {
    method: 'GET',
    path: '/webhooks',
    status: 200,
    operation: 'Webhooks',
    variables: (request) => query(request, pageInput),
    ...bareList,
  },
  { method: 'GET', path: '/webhooks/{id}', status: 200, operation: 'Webhook', variables: idOf },
  {
    method: 'PUT',
    path: '/webhooks/{id}',
    status: 200,
    operation: 'UpdateWebhook',
    variables: (request) => ({ ...idOf(request), input: changeBody(request, updateWebhookInput) }),
  },
  {
    method: 'DELETE',
    path: '/webhooks/{id}',
    status: 200,
    operation: 'RemoveWebhook',
    variables: idOf,
    data: () => undefined,
  },
  {
    method: 'POST',
    path: '/webhooks/{id}/test',
    status: 200,
    operation: 'SendTestEvent',
    variables: idOf,
  },
  {
    method: 'POST',
    path: '/team/invite',
    status: 201,
    operation: 'InviteMember',
    variables: (request) => ({ input: body(request, inviteMemberInput) }),
    location: ({ id }: { id: number }) => `/team/${id}`,
    data: () => undefined,
  },
  {
    method: 'GET',
    path: '/team',
    status: 200,
    operation: 'Members',
    variables: (request) => query(request, pageInput),
    ...bareList,
  },
  {
    method: 'GET',
    path: '/team/{id}',
    status: 200,
    operation: 'Member',
    variables: idOf,
  },
  {
    method: 'PUT',
    path: '/team/{id}/role',
    status: 200,
    operation: 'ChangeMemberRole',
    variables: (request) => ({ ...idOf(request), ...body(request, changeRoleInput) }),
    data: () => undefined,
  },
  {
    method: 'DELETE',
    path: '/team/{id}',
    status: 200,
    operation: 'RemoveMember',
    variables: (request) => ({ ...idOf(request), ...body(request, removeMemberInput) }),
    data: () => undefined,
  },
  {
    method: 'GET',
    path: '/settings',
    status: 200,
    operation: 'Settings',
    variables: () => ({}),
    data: settingsData,
  },
  {
    method: 'PUT',
    path: '/settings',
    status: 200,
    operation: 'UpdateSettings',
    variables: (request) => ({ input: changeBody(request, updateSettingsInput) }),
    statusOf: (settings: SettingsAnswer, { input }: { input: object }) =>
      leftWaiting(settings, input) ? 202 : 200,
    message: settingsMessage,
    data: settingsData,
  },
]

interface SettingsAnswer {
  payouts_require_approval: boolean
  approval_gaps: readonly string[]
  pending_change: ({ approval: { required: number; expires_at: string } } & Record<string, unknown>) | null
}

/** Writes the settings. It leaves out approval gaps and a pending change where there are none. */
function settingsData({ pending_change: pending, approval_gaps: gaps, ...settings }: SettingsAnswer): object {
  return {
    ...settings,
    ...(gaps.length > 0 && { approval_gaps: gaps }),
    ...(pending && { pending_change: withoutNulls(pending) }),
  }
}

/** Whether a setting that this request changes is in the change that waits for approval. */
function leftWaiting({ pending_change: pending }: SettingsAnswer, input: object): boolean {
  return Object.entries(inSnakeCase(input)).some(
    ([name, value]) => value !== null && pending?.[name] === comparable(value),
  )
}

const comparable = (value: unknown) => (typeof value === 'bigint' ? Number(value) : value)
const inSnakeCase = (input: object) =>
  Object.fromEntries(Object.entries(input).map(([name, value]) => [snakeCase(name), value as unknown]))

/**
 * Returns the message about a change that waits for approval; also, if the request turns approvals on, about
 * the gaps that they leave (`approval_gaps`). Returns null if there is nothing to say.
 */
function settingsMessage(settings: SettingsAnswer, { input }: { input: object }): string | null {
  const { pending_change: pending, approval_gaps: gaps } = settings
  const { payouts_require_approval: isOn } = inSnakeCase(input)
  const sentences = isOn === true ? [...gaps] : []
  if (pending && leftWaiting(settings, input)) {
    const { required, expires_at: until } = pending.approval
    sentences.unshift(`The change waits for the approval of ${required} other member(s), until ${until}.`)
  }
  return sentences.length > 0 ? sentences.join(' ') : null
}

/**
 * Reads the key and the secret from the headers, and the options of the token from an optional body. The
 * credentials are checked, and the attempt is counted, before the options are checked. So a wrong type is
 * replaced here by a value that is refused later, and the error of an unreadable body is kept for later.
 */
function credentials(request: RestRequest): object {
  const [options, unreadable] = readOptions(request)
  const { scopes, expiresInHours, limits } = options
  return {
    input: {
      apiKey: request.headers['x-api-key'],
      apiSecret: request.headers['x-api-secret'],
      scopes: wordsOf(scopes),
      // `1e999` is valid JSON and becomes Infinity.
      expiresInHours: Number.isFinite(expiresInHours) ? expiresInHours : expiresInHours == null ? null : 0,
      limits: limits == null ? null : limitsOptions(limits),
    },
    unreadable,
  }
}

/** Reads a list of words. A value of a wrong type becomes a word that does not exist. */
function wordsOf(list: unknown): string[] | null {
  if (list === undefined || list === null) return null
  if (!Array.isArray(list)) return [JSON.stringify(list)]
  return list.map((entry) => (typeof entry === 'string' ? entry : JSON.stringify(entry)))
}

function limitsOptions(asked: unknown): object {
  const isObject = typeof asked === 'object' && !Array.isArray(asked)
  // Limits that are no object become invalid ones: an amount may not be 0, and a list may not be empty.
  const { maxPerPayment, maxPerDay, paymentMethods, addresses } = isObject
    ? inSchemaWords(Object.entries(asked as object))
    : { maxPerPayment: 0, maxPerDay: 0, paymentMethods: [], addresses: [] }
  const amount = (value: unknown) => (value == null || Number.isSafeInteger(value) ? value : 0)
  const methods = wordsOf(paymentMethods)
  return {
    maxPerPayment: amount(maxPerPayment),
    maxPerDay: amount(maxPerDay),
    paymentMethods: methods?.every((name) => (providers as readonly string[]).includes(name))
      ? methods
      : methods && [],
    addresses: wordsOf(addresses),
  }
}

function readOptions(request: RestRequest): [ReturnType<typeof readObject>, DomainError | null] {
  try {
    return [readObject(request), null]
  } catch (error) {
    if (error instanceof DomainError) return [{}, error]
    throw error
  }
}

/** Writes a token. A token whose options could not be read is never given out. */
function tokenData(
  { limits, ...token }: { limits: object | null },
  { unreadable }: { unreadable: DomainError | null },
): object {
  if (unreadable) throw unreadable
  return limits ? { ...token, limits: withoutNulls(limits) } : token
}

/** Writes a balance, with the debt only where there is one. */
function balanceData({ receivable, ...balance }: { receivable?: number }): object {
  return withoutNulls({ ...balance, receivable: receivable || null })
}

/**
 * Writes a transaction in the form of REST, with the approval of a deposit that needs or needed an approval.
 */
function transactionData({ approval, ...transaction }: { approval: object | null }): object {
  if (!approval) return transaction
  const { status, expires_at: expiresAt } = approval as { status: string; expires_at: string }
  return { ...transaction, approval: status, approval_expires_at: expiresAt }
}

/** Writes a payout in the form of REST: `approval` is a word, with the time of its expiry beside it. */
function payoutData(payout: object): object {
  const { approval, ...rest } = payout as { approval: { status: string; expires_at: string | null } }
  return withoutNulls({ ...rest, approval: approval.status, approval_expires_at: approval.expires_at })
}
