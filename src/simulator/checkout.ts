import { randomBytes } from 'node:crypto'
import { pool } from './book.ts'
import { sessionBody } from './checkout-shapes.ts'
import { CheckoutFault, checkoutFault, readAmount, readBody, readText } from './checkout-requests.ts'
import { holdsKey } from './credentials.ts'
import { isReversible } from './engine.ts'
import type { SimulatorCall, Handler, Reply, SimulatorRoute } from './http.ts'
import { json, param, routesOf } from './http.ts'
import type { SimulatedOperation } from './model.ts'
import type { OperatorProfile } from './operators.ts'
import { payoutRoutes } from './payouts.ts'
import { statementLines } from './statement-lines.ts'
import type { SimulatorContext } from './context.ts'

const pageSize = 100

/** Makes the operator of the hosted-checkout protocol: sessions, payouts, balance and daily transactions. */
export function checkoutHandler(profile: OperatorProfile, context: SimulatorContext): Handler {
  const rows = [
    ...sessionRoutes(profile, context),
    ...payoutRoutes(profile, context),
    ...walletRoutes(profile, context),
  ]
  const routes = rows.map((route) => ({ ...route, pattern: profile.basePath + route.pattern }))
  const route = routesOf(routes, () => checkoutFault(404, 'not-found', 'There is no such resource.'))
  return async (call) => {
    if (!holdsKey(profile, call))
      return checkoutFault(401, 'no-matching-api-key', 'The API key is not valid.')
    try {
      return await route(call)
    } catch (error) {
      if (error instanceof CheckoutFault) return error.reply
      throw error
    }
  }
}

function sessionRoutes(profile: OperatorProfile, context: SimulatorContext): SimulatorRoute[] {
  const show = (session: SimulatedOperation) => json(200, sessionBody(session, context.publicUrl))
  const find = (call: SimulatorCall) => sessionOr404(profile, context.store.operation(param(call, 'id')))
  return [
    {
      method: 'POST',
      pattern: '/checkout/sessions',
      handle: (call) => show(createSession(profile, context, call)),
    },
    {
      method: 'GET',
      pattern: '/checkout/sessions',
      handle: (call) =>
        show(sessionOr404(profile, context.store.named(profile.key, call.query.get('transaction_id') ?? ''))),
    },
    {
      method: 'GET',
      pattern: '/checkout/sessions/search',
      handle: (call) => {
        const reference = call.query.get('client_reference') ?? ''
        const sessions = context.store
          .withReference(profile.key, reference)
          .filter((row) => row.kind === 'collect')
        return json(200, {
          result: sessions.slice(-pageSize).map((row) => sessionBody(row, context.publicUrl)),
        })
      },
    },
    { method: 'GET', pattern: '/checkout/sessions/:id', handle: (call) => show(find(call)) },
    {
      method: 'POST',
      pattern: '/checkout/sessions/:id/expire',
      handle: (call) => expire(context, find(call)),
    },
    {
      method: 'POST',
      pattern: '/checkout/sessions/:id/refund',
      handle: (call) => refund(profile, context, find(call)),
    },
  ]
}

/** Creates a session for each request: an idempotency key is accepted and ignored. */
function createSession(
  profile: OperatorProfile,
  context: SimulatorContext,
  call: SimulatorCall,
): SimulatedOperation {
  const body = readBody(call)
  const onlyPayer = readText(body, 'restrict_payer_mobile', 20) || null
  if (onlyPayer !== null && !/^\+\d{9,15}$/.test(onlyPayer)) {
    throw new CheckoutFault(422, 'request-validation-error', 'restrict_payer_mobile: must be in E.164.')
  }
  const amount = readAmount(body, 'amount')
  const page = { successUrl: readUrl(body, 'success_url'), errorUrl: readUrl(body, 'error_url'), onlyPayer }
  return context.engine.open({
    id: `cos-${randomBytes(12).toString('hex')}`,
    operator: profile.key,
    kind: 'collect',
    mode: 'checkout',
    correlationId: '',
    clientReference: readText(body, 'client_reference', 255),
    msisdn: onlyPayer,
    amount,
    description: '',
    callbackUrl: null,
    page,
  })
}

function expire(context: SimulatorContext, session: SimulatedOperation): Reply {
  if (session.state === 'completed' || session.state === 'reversed') {
    throw new CheckoutFault(409, 'checkout-session-complete', 'A paid session cannot be expired.')
  }
  context.engine.refuse(session, 'cancelled')
  return { status: 200 }
}

/** Refunds a payment once; a repeated request changes nothing. */
function refund(profile: OperatorProfile, context: SimulatorContext, session: SimulatedOperation): Reply {
  if (session.state === 'reversed') return { status: 200 }
  if (!isReversible(session, BigInt(session.amount))) {
    throw new CheckoutFault(409, 'checkout-refund-failed', 'Only a paid session can be refunded.')
  }
  context.engine.open({
    operator: profile.key,
    kind: 'reverse',
    mode: 'synchronous',
    correlationId: '',
    clientReference: '',
    msisdn: session.msisdn,
    amount: BigInt(session.amount),
    description: '',
    callbackUrl: null,
    originalId: session.id,
  })
  if (context.store.operation(session.id)?.state === 'reversed') return { status: 200 }
  throw new CheckoutFault(400, 'insufficient-funds', 'The wallet does not hold enough to refund.')
}

function walletRoutes(profile: OperatorProfile, context: SimulatorContext): SimulatorRoute[] {
  const balance = () => String(context.store.book.balance(profile.key, pool) ?? 0n)
  return [
    { method: 'GET', pattern: '/balance', handle: () => json(200, { amount: balance(), currency: 'XOF' }) },
    { method: 'GET', pattern: '/transactions', handle: (call) => transactions(profile, context, call) },
  ]
}

/**
 * Answers with one day of our wallet, oldest first, in pages with a cursor. Outgoing amounts are negative.
 */
function transactions(profile: OperatorProfile, context: SimulatorContext, call: SimulatorCall): Reply {
  const today = new Date(context.clock.now()).toISOString().slice(0, 10)
  const date = call.query.get('date') ?? today
  const after = Number(call.query.get('after') ?? '0')
  if (!/^\d{4}-\d\d-\d\d$/.test(date) || !Number.isSafeInteger(after)) {
    throw new CheckoutFault(422, 'request-validation-error', 'date: YYYY-MM-DD; after: a cursor of ours.')
  }
  const statement = statementLines(context, profile.key)
  const lines = statement.lines.filter(
    (line) => line.seq > after && new Date(line.at).toISOString().startsWith(date),
  )
  const isCut = statement.promised > statement.lines.length && lines.length > 0
  const shown = lines.slice(0, pageSize)
  const items = shown.map((line) => {
    const operation = context.store.operationOf(line)
    const original = operation?.originalId ? context.store.operation(operation.originalId) : undefined
    const named = original ?? operation
    return {
      timestamp: new Date(line.at).toISOString(),
      transaction_id: operation?.reference ?? `T${line.seq}`,
      transaction_type: transactionTypes[line.type],
      amount: String(line.amount),
      fee: String(-line.fee),
      balance: String(line.balanceAfter),
      currency: 'XOF',
      counterparty_mobile: operation?.msisdn ?? null,
      client_reference: named?.clientReference || null,
      ...(named?.kind === 'collect' ? { checkout_api_session_id: named.id } : {}),
      ...(original ? { is_reversal: true, original_transaction_id: original.reference } : {}),
    }
  })
  const pageInfo = {
    start_cursor: String(shown[0]?.seq ?? ''),
    end_cursor: String(shown.at(-1)?.seq ?? ''),
    has_next_page: lines.length > shown.length || isCut,
  }
  return json(200, { page_info: pageInfo, date, items })
}

const transactionTypes = {
  opening: 'transfer',
  top_up: 'transfer',
  collect: 'merchant_payment',
  disburse: 'api_payout',
  reverse: 'reversal',
} as const

function sessionOr404(
  profile: OperatorProfile,
  operation: SimulatedOperation | undefined,
): SimulatedOperation {
  if (operation?.operator === profile.key && operation.kind === 'collect') return operation
  throw new CheckoutFault(404, 'checkout-session-not-found', 'There is no such session.')
}

function readUrl(body: Readonly<Record<string, unknown>>, field: string): string {
  const value = readText(body, field, 2_048)
  if (/^https?:\/\//.test(value) && URL.canParse(value)) return value
  throw new CheckoutFault(422, 'request-validation-error', `${field}: must be an http(s) address.`)
}
