import { z } from 'zod'
import { createBeneficiaryInput } from '../../resources/beneficiaries/create.ts'
import { beneficiaryFilterInput } from '../../resources/beneficiaries/list.ts'
import { updateBeneficiaryInput } from '../../resources/beneficiaries/update.ts'
import { createPayoutInput } from '../../resources/payouts/create.ts'
import { payoutFilterInput } from '../../resources/payouts/list.ts'
import { updateSettingsInput } from '../../resources/settings/update.ts'
import { collectInput } from '../../resources/transactions/collect.ts'
import { depositInput } from '../../resources/transactions/deposit.ts'
import { changeRoleInput } from '../../resources/team/change-role.ts'
import { inviteMemberInput } from '../../resources/team/invite.ts'
import { transactionFilterInput } from '../../resources/transactions/list.ts'
import { registerWebhookInput } from '../../resources/webhooks/register.ts'
import { updateWebhookInput } from '../../resources/webhooks/update.ts'
import { DomainError } from '../../shared/errors.ts'
import { pageInput, provider, readInput, reference, wholeNumber } from '../../shared/input.ts'
import { providers } from '../../shared/providers.ts'
import type { ListPage } from './list-headers.ts'
import { body, inSchemaWords, query, readObject, type RestRequest } from './shape.ts'

/** A REST path, the operation of `documents.graphql` that it runs, and how the two fit together. */
export interface Route {
  method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** Below `/merchant/api`; a part in braces is a parameter. */
  path: string
  /** Status of a success. */
  status: 200 | 201 | 202
  operation: string
  /** The operation's variables. @throws DomainError INVALID_INPUT */
  variables: (request: RestRequest) => object
  /** The envelope's `data` of the operation's root field; left out, the field itself. */
  data?: (result: never, variables: never) => unknown
  /** The answer is `data` itself, without an envelope (specification: GET /payment/status/{reference}). */
  bare?: true
  /** A page of any origin may read the answer: it is public, and a payer's browser polls it. */
  anyOrigin?: true
  /** The operation counts its callers itself. */
  hasOwnLimit?: true
  /** The page of a list whose `data` is a bare array: headers tell of the rest. */
  list?: (result: never, variables: never) => ListPage
  /** Where the new thing is, below `/merchant/api`: the `Location` of the answer. */
  location?: (result: never) => string
  /** The status depends on the answer. */
  statusOf?: (result: never) => number
}

/** A list whose `data` is a bare array. */
const bareList = {
  data: (result: { nodes: readonly object[] }) => result.nodes,
  list: (result: { totalCount: number }, variables: Omit<ListPage, 'total'>) => ({
    ...variables,
    total: result.totalCount,
  }),
}

/** Every REST path of the service. The scope of each is that of its operation, as the schema says. */
export const routes: readonly Route[] = [
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
    variables: () => ({}),
    statusOf: (result: { status: string }) => (result.status === 'down' ? 503 : 200),
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
    statusOf: ({ status }: { status: string }) => (status === 'processing' ? 202 : 200),
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
    variables: (request) => ({
      ...query(request, pageInput),
      filter: query(request, transactionFilterInput),
    }),
    data: pageOf('transactions'),
  },
  {
    method: 'GET',
    path: '/transactions/{id}',
    status: 200,
    operation: 'Transaction',
    variables: idOf,
  },
  {
    method: 'POST',
    path: '/payouts',
    status: 201,
    operation: 'CreatePayout',
    variables: (request) => ({ input: body(request, createPayoutInput) }),
    data: payoutData,
  },
  {
    method: 'GET',
    path: '/payouts',
    status: 200,
    operation: 'Payouts',
    variables: (request) => ({
      ...query(request, pageInput),
      filter: query(request, payoutFilterInput),
    }),
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
    variables: (request) => ({
      ...query(request, pageInput),
      filter: query(request, beneficiaryFilterInput),
    }),
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
    variables: (request) => ({ ...idOf(request), input: body(request, updateBeneficiaryInput) }),
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
    variables: (request) => ({ ...idOf(request), input: body(request, updateWebhookInput) }),
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
    variables: idOf,
    data: () => undefined,
  },
  {
    method: 'GET',
    path: '/settings',
    status: 200,
    operation: 'Settings',
    variables: () => ({}),
  },
  {
    method: 'PUT',
    path: '/settings',
    status: 200,
    operation: 'UpdateSettings',
    variables: (request) => ({ input: body(request, updateSettingsInput) }),
  },
]

/**
 * Key and secret come as headers, the wishes as an optional body. A wish of a wrong type is passed on as one
 * that cannot be granted, and an unreadable body is kept for later: who asks is judged, and counted, before
 * what is asked.
 */
function credentials(request: RestRequest): object {
  const [wishes, unreadable] = readWishes(request)
  const { scopes, expiresInHours, limits } = wishes
  return {
    input: {
      apiKey: request.headers['x-api-key'],
      apiSecret: request.headers['x-api-secret'],
      scopes: wordsOf(scopes),
      // `1e999` is JSON too, and reads as Infinity.
      expiresInHours: Number.isFinite(expiresInHours) ? expiresInHours : expiresInHours == null ? null : 0,
      limits: limits == null ? null : limitsWish(limits),
    },
    unreadable,
  }
}

/** A list of words; of what is none, one that nobody knows. */
function wordsOf(list: unknown): string[] | null {
  if (list === undefined || list === null) return null
  if (!Array.isArray(list)) return [JSON.stringify(list)]
  return list.map((entry) => (typeof entry === 'string' ? entry : JSON.stringify(entry)))
}

function limitsWish(asked: unknown): object {
  const isObject = typeof asked === 'object' && !Array.isArray(asked)
  // No amount can be 0, and no list empty.
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

function readWishes(request: RestRequest): [ReturnType<typeof readObject>, DomainError | null] {
  try {
    return [readObject(request), null]
  } catch (error) {
    if (error instanceof DomainError) return [{}, error]
    throw error
  }
}

/** A token that was made for wishes nobody could read is never handed out. */
function tokenData(
  { limits, ...token }: { limits: object | null },
  { unreadable }: { unreadable: DomainError | null },
): object {
  if (unreadable) throw unreadable
  return limits ? { ...token, limits: withoutNulls(limits) } : token
}

/** A debt is shown where there is one. */
function balanceData({ receivable, ...balance }: { receivable?: number }): object {
  return withoutNulls({ ...balance, receivable: receivable || null })
}

/** The id in the path. @throws DomainError INVALID_INPUT */
function idOf(request: RestRequest): { id: number } {
  return readInput(z.object({ id: wholeNumber(1, Number.MAX_SAFE_INTEGER) }), request.params)
}

/** A payout as the specification has it: `approval` is a word, beside it the time that is left. */
function payoutData(payout: object): object {
  const { approval, ...rest } = payout as { approval: { status: string; expires_at: string | null } }
  return withoutNulls({ ...rest, approval: approval.status, approval_expires_at: approval.expires_at })
}

/** REST leaves out what GraphQL gives as null. */
export function withoutNulls(result: object): object {
  return Object.fromEntries(Object.entries(result).filter(([, value]) => value !== null))
}

/** A page under its own name, with its place in the list. */
function pageOf(name: string, nodeData: (node: object) => object = (node) => node) {
  return (
    { totalCount: total, nodes }: { totalCount: number; nodes: readonly object[] },
    { limit, offset }: { limit: number; offset: number },
  ): object => ({
    [name]: nodes.map(nodeData),
    pagination: { total, limit, offset, has_more: offset + nodes.length < total },
  })
}
