import { isClient } from './credentials.ts'
import type { Intent } from './engine.ts'
import { isReversible } from './engine.ts'
import { accountRoutes } from './gsma-accounts.ts'
import {
  amountField,
  callbackUrl,
  checkCancellation,
  checkOwnParty,
  descriptionMax,
  Fault,
  msisdnOf,
  party,
  readCreation,
  textField,
  textMax,
} from './gsma-requests.ts'
import { currency, faultBody, faultReply, isoTime, requestState, transactionBody } from './gsma-shapes.ts'
import type { Call, Handler, Reply, Route } from './http.ts'
import { header, json, param, routesOf, text } from './http.ts'
import type { Operation } from './model.ts'
import type { OperatorProfile } from './operators.ts'
import type { GsmaFault } from './reasons.ts'
import { gsmaFault } from './reasons.ts'
import type { World } from './world.ts'

/** One operator of the GSMA Mobile Money API: our subset of versions 1.1 and 1.2. */
export function gsmaHandler(profile: OperatorProfile, world: World): Handler {
  const { clock } = world
  const notFound = () => faultReply(noSuch('resource'), clock.now())
  const own = transactionRoutes(profile, world)
  const withBase = [...own, ...accountRoutes(profile, world)].map((route) => ({
    ...route,
    pattern: profile.basePath + route.pattern,
  }))
  const route = routesOf(withBase, notFound)
  return async (call) => {
    if (!isClient(profile, call)) {
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
      if (error instanceof Fault) return faultReply(error.fault, clock.now())
      throw error
    }
  }
}

function transactionRoutes(profile: OperatorProfile, world: World): Route[] {
  const { store } = world
  const find = (call: Call) => ofProtocol(profile, store.operation(param(call, 'reference')), 'transaction')
  const post =
    (kind: 'collect' | 'disburse'): Handler =>
    (call) =>
      create(profile, world, call, kind)
  return [
    { method: 'POST', pattern: '/transactions/type/merchantpay', handle: post('collect') },
    { method: 'POST', pattern: '/transactions/type/disbursement', handle: post('disburse') },
    {
      method: 'POST',
      pattern: '/transactions/:reference/reversals',
      handle: (call) => reverse(profile, world, call, find(call)),
    },
    {
      method: 'GET',
      pattern: '/transactions/:reference',
      handle: (call) => read(world, transactionBody(find(call))),
    },
    {
      method: 'PATCH',
      pattern: '/transactions/:reference',
      handle: (call) => cancel(profile, world, call, find(call)),
    },
    {
      method: 'GET',
      pattern: '/requeststates/:id',
      handle: (call) =>
        read(
          world,
          requestState(ofProtocol(profile, store.named(profile.key, param(call, 'id')), 'request')),
        ),
    },
    { method: 'GET', pattern: '/responses/:id', handle: (call) => findResponse(profile, world, call) },
    { method: 'GET', pattern: '/errors/:reference', handle: (call) => readError(world, find(call)) },
    { method: 'GET', pattern: '/heartbeat', handle: () => read(world, { serviceStatus: 'available' }) },
  ]
}

/** A collection or a disbursement. */
async function create(
  profile: OperatorProfile,
  world: World,
  call: Call,
  kind: 'collect' | 'disburse',
): Promise<Reply> {
  const { correlationId, body } = readCreation(profile.key, world, call)
  const [customerField, ownField] =
    kind === 'collect' ? ['debitParty', 'creditParty'] : ['creditParty', 'debitParty']
  checkOwnParty(party(body, ownField, 'accountid'))
  if (text(body, 'currency') !== currency) {
    throw new Fault('validation', 'currencyNotSupported', `The currency must be ${currency}.`)
  }
  return perform(profile, world, {
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

/** Gives a settled operation back, whole or in part. */
async function reverse(
  profile: OperatorProfile,
  world: World,
  call: Call,
  original: Operation,
): Promise<Reply> {
  const { correlationId, body } = readCreation(profile.key, world, call)
  if (text(body, 'type') !== 'reversal') {
    throw new Fault('validation', 'formatError', 'type: must be "reversal".')
  }
  const amount = body['amount'] === undefined ? BigInt(original.amount) : amountField(body)
  if (!isReversible(original, amount)) {
    throw new Fault(
      'businessRule',
      'incorrectState',
      'Not settled, already reversed, or less than this is left.',
    )
  }
  return perform(profile, world, {
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

/** Carries an intent out and answers: 201 when it is done, 202 while it is not, or why it is refused. */
async function perform(profile: OperatorProfile, world: World, intent: Intent): Promise<Reply> {
  const { engine, store, clock } = world
  let operation = engine.open(intent)
  if (operation.state === 'pending' && intent.mode === 'synchronous' && engine.holdsFor(operation)) {
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

/** Withdraws a prompt that nobody has answered (RFC 6902 `replace` of the status). */
function cancel(profile: OperatorProfile, world: World, call: Call, operation: Operation): Reply {
  if (!profile.canCancel) {
    throw new Fault('businessRule', 'transactionTypeError', 'This version cannot change a transaction.')
  }
  checkCancellation(call.body)
  if (operation.state !== 'pending')
    throw new Fault('businessRule', 'incorrectState', 'It is decided already.')
  world.engine.refuse(operation, 'cancelled')
  return { status: 204, headers: { 'x-date': isoTime(world.clock.now()) } }
}

/** Where the outcome of a request stands whose answer was missed. 404: nothing ever came under that id. */
function findResponse(profile: OperatorProfile, world: World, call: Call): Reply {
  const operation = ofProtocol(profile, world.store.correlated(profile.key, param(call, 'id')), 'request')
  const resource = operation.refusal ? 'errors' : 'transactions'
  const origin = `http://${header(call, 'host')}`
  return read(world, { link: `${origin}${profile.basePath}/${resource}/${operation.id}` })
}

function readError(world: World, operation: Operation): Reply {
  const { refusal, kind, changedAt } = operation
  if (!refusal) throw new Fault('identification', 'identifierError', 'There is no such error.')
  return read(world, faultBody(gsmaFault(refusal, kind), changedAt))
}

function read(world: World, body: unknown): Reply {
  return json(200, body, { 'x-date': isoTime(world.clock.now()) })
}

function ofProtocol(profile: OperatorProfile, operation: Operation | undefined, what: string): Operation {
  if (operation?.operator === profile.key) return operation
  throw new Fault('identification', 'identifierError', noSuch(what).description)
}

function noSuch(what: string): GsmaFault {
  return { category: 'identification', code: 'identifierError', description: `There is no such ${what}.` }
}
