import { clientCheck } from './credentials.ts'
import type { Intent } from './engine.ts'
import { isReversible } from './engine.ts'
import { accountRoutes } from './gsma-accounts.ts'
import {
  amountField,
  callbackUrl,
  checkCancellation,
  checkOwnParty,
  descriptionMax,
  RequestFault,
  msisdnOf,
  party,
  readCreation,
  textField,
  textMax,
} from './gsma-requests.ts'
import { currency, faultBody, faultReply, isoTime, requestState, transactionBody } from './gsma-shapes.ts'
import type { SimulatorCall, Handler, Reply, SimulatorRoute } from './http.ts'
import { header, json, param, routesOf, text } from './http.ts'
import type { SimulatedOperation } from './model.ts'
import type { OperatorProfile } from './operators.ts'
import type { GsmaFault } from './reasons.ts'
import { gsmaFault } from './reasons.ts'
import type { SimulatorContext } from './context.ts'

/** Makes one operator of the GSMA Mobile Money API: our subset of versions 1.1 and 1.2. */
export function gsmaHandler(profile: OperatorProfile, context: SimulatorContext): Handler {
  const { clock } = context
  const notFound = () => faultReply(noSuch('resource'), clock.now())
  const own = transactionRoutes(profile, context)
  const withBase = [...own, ...accountRoutes(profile, context)].map((route) => ({
    ...route,
    pattern: profile.basePath + route.pattern,
  }))
  const route = routesOf(withBase, notFound)
  const isClient = clientCheck(profile)
  return async (call) => {
    if (!isClient(call)) {
      const denied: GsmaFault = {
        category: 'authorisation',
        code: 'clientAuthorisationError',
        description: 'The token or the API key is not valid.',
      }
      return faultReply(denied, clock.now())
    }
    try {
      return await route(call)
    } catch (error) {
      if (error instanceof RequestFault) return faultReply(error.fault, clock.now())
      throw error
    }
  }
}

function transactionRoutes(profile: OperatorProfile, context: SimulatorContext): SimulatorRoute[] {
  const { store } = context
  const find = (call: SimulatorCall) =>
    ofProtocol(profile, store.operation(param(call, 'reference')), 'transaction')
  const post =
    (kind: 'collect' | 'disburse'): Handler =>
    (call) =>
      create(profile, context, call, kind)
  return [
    { method: 'POST', pattern: '/transactions/type/merchantpay', handle: post('collect') },
    { method: 'POST', pattern: '/transactions/type/disbursement', handle: post('disburse') },
    {
      method: 'POST',
      pattern: '/transactions/:reference/reversals',
      handle: (call) => reverse(profile, context, call, find(call)),
    },
    {
      method: 'GET',
      pattern: '/transactions/:reference',
      handle: (call) => read(context, transactionBody(find(call))),
    },
    {
      method: 'PATCH',
      pattern: '/transactions/:reference',
      handle: (call) => cancel(profile, context, call, find(call)),
    },
    {
      method: 'GET',
      pattern: '/requeststates/:id',
      handle: (call) =>
        read(
          context,
          requestState(ofProtocol(profile, store.named(profile.key, param(call, 'id')), 'request')),
        ),
    },
    { method: 'GET', pattern: '/responses/:id', handle: (call) => findResponse(profile, context, call) },
    { method: 'GET', pattern: '/errors/:reference', handle: (call) => readError(context, find(call)) },
    { method: 'GET', pattern: '/heartbeat', handle: () => read(context, { serviceStatus: 'available' }) },
  ]
}

async function create(
  profile: OperatorProfile,
  context: SimulatorContext,
  call: SimulatorCall,
  kind: 'collect' | 'disburse',
): Promise<Reply> {
  const { correlationId, body } = readCreation(profile.key, context, call)
  const [customerField, ownField] =
    kind === 'collect' ? ['debitParty', 'creditParty'] : ['creditParty', 'debitParty']
  checkOwnParty(party(body, ownField, 'accountid'))
  if (text(body, 'currency') !== currency) {
    throw new RequestFault('validation', 'currencyNotSupported', `The currency must be ${currency}.`)
  }
  return perform(profile, context, {
    operator: profile.key,
    kind,
    mode: kind === 'collect' ? 'prompt' : profile.synchronous ? 'synchronous' : 'background',
    correlationId,
    clientReference: textField(body, 'requestingOrganisationTransactionReference', textMax),
    msisdn: msisdnOf(party(body, customerField, 'msisdn')),
    amount: amountField(body),
    description: textField(body, 'descriptionText', descriptionMax),
    callbackUrl: callbackUrl(call),
  })
}

/** Reverses a settled operation, in whole or in part. */
async function reverse(
  profile: OperatorProfile,
  context: SimulatorContext,
  call: SimulatorCall,
  original: SimulatedOperation,
): Promise<Reply> {
  const { correlationId, body } = readCreation(profile.key, context, call)
  if (text(body, 'type') !== 'reversal') {
    throw new RequestFault('validation', 'formatError', 'type: must be "reversal".')
  }
  const amount = body['amount'] === undefined ? BigInt(original.amount) : amountField(body)
  if (!isReversible(original, amount)) {
    throw new RequestFault(
      'businessRule',
      'incorrectState',
      'The transaction is not settled, is reversed, or has less left to reverse.',
    )
  }
  return perform(profile, context, {
    operator: profile.key,
    kind: 'reverse',
    mode: profile.synchronous ? 'synchronous' : 'background',
    correlationId,
    clientReference: textField(body, 'requestingOrganisationTransactionReference', textMax),
    msisdn: original.msisdn,
    amount,
    description: textField(body, 'descriptionText', descriptionMax),
    callbackUrl: callbackUrl(call),
    originalId: original.id,
  })
}

/**
 * Executes an intent and answers: 201 when it is done, 202 while it is open, or the reason of its refusal.
 */
async function perform(profile: OperatorProfile, context: SimulatorContext, intent: Intent): Promise<Reply> {
  const { engine, store, clock } = context
  let operation = engine.open(intent)
  if (operation.state === 'pending' && intent.mode === 'synchronous' && engine.waitsFor(operation)) {
    await engine.whenDecided(operation.id)
    operation = store.operation(operation.id) ?? operation
  }
  if (operation.refusal) return faultReply(gsmaFault(operation.refusal, operation.kind), clock.now())
  const headers = { 'x-date': isoTime(clock.now()) }
  if (operation.state === 'pending') return json(202, requestState(operation), headers)
  return json(201, transactionBody(operation), {
    ...headers,
    location: `${profile.basePath}/transactions/${operation.id}`,
  })
}

/** Withdraws a prompt that the customer has not answered (RFC 6902 `replace` of the status). */
function cancel(
  profile: OperatorProfile,
  context: SimulatorContext,
  call: SimulatorCall,
  operation: SimulatedOperation,
): Reply {
  if (!profile.canCancel) {
    throw new RequestFault(
      'businessRule',
      'transactionTypeError',
      'This version cannot change a transaction.',
    )
  }
  checkCancellation(call.body)
  if (operation.state !== 'pending')
    throw new RequestFault('businessRule', 'incorrectState', 'This transaction was already decided.')
  context.engine.refuse(operation, 'cancelled')
  return { status: 204, headers: { 'x-date': isoTime(context.clock.now()) } }
}

/**
 * Answers with a link to the outcome of a request, by the client's correlation id; 404 if no such request is
 * known.
 */
function findResponse(profile: OperatorProfile, context: SimulatorContext, call: SimulatorCall): Reply {
  const operation = ofProtocol(profile, context.store.correlated(profile.key, param(call, 'id')), 'request')
  const resource = operation.refusal ? 'errors' : 'transactions'
  const origin = `http://${header(call, 'host')}`
  return read(context, { link: `${origin}${profile.basePath}/${resource}/${operation.id}` })
}

function readError(context: SimulatorContext, operation: SimulatedOperation): Reply {
  const { refusal, kind, changedAt } = operation
  if (!refusal) throw new RequestFault('identification', 'identifierError', 'There is no such error.')
  return read(context, faultBody(gsmaFault(refusal, kind), changedAt))
}

function read(context: SimulatorContext, body: unknown): Reply {
  return json(200, body, { 'x-date': isoTime(context.clock.now()) })
}

function ofProtocol(
  profile: OperatorProfile,
  operation: SimulatedOperation | undefined,
  what: string,
): SimulatedOperation {
  if (operation?.operator === profile.key) return operation
  throw new RequestFault('identification', 'identifierError', noSuch(what).description)
}

function noSuch(what: string): GsmaFault {
  return { category: 'identification', code: 'identifierError', description: `There is no such ${what}.` }
}
