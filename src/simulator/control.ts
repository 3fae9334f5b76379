import type { Rule } from './effects.ts'
import { faultRoutes, operatorNamed } from './control-faults.ts'
import { invariants } from './invariants.ts'
import { same } from './credentials.ts'
import type { SimulatorCall, Handler, Reply, SimulatorRoute } from './http.ts'
import { header, json, param, routesOf, text } from './http.ts'
import type { SimulatedOperation, OperatorKey } from './model.ts'
import { operatorKeys } from './model.ts'
import { operators, sandboxWebhookSecret } from './operators.ts'
import { scenarios } from './scenarios.ts'
import type { SimulatorContext } from './context.ts'

/** Ten years; a longer step is a mistake in units. */
const advanceMaxMs = 10 * 366 * 24 * 3_600_000
const listMax = 200
/** The payer, if the control interface confirms a session that names no payer. */
const passerBy = '+22376000001'

/**
 * Makes the control interface, with which tests and the sandbox control the operators. Without a control
 * token it does not exist.
 */
export function controlHandler(context: SimulatorContext, token: string | null): Handler {
  const notFound = () => json(404, { message: 'There is no such path.' })
  const route = routesOf(controlRoutes(context), notFound)
  return (call) => {
    if (token === null) return notFound()
    if (!same(header(call, 'x-control-token'), token))
      return json(401, { message: 'The control token is not valid.' })
    return route(call)
  }
}

function controlRoutes(context: SimulatorContext): SimulatorRoute[] {
  const { store, engine, requests, calls } = context
  const decided = (
    call: SimulatorCall,
    decide: (operation: SimulatedOperation) => SimulatedOperation,
  ): Reply => {
    const operation = findByAnyName(context, param(call, 'reference'))
    if (!operation) return json(404, { message: 'There is no such transaction.' })
    if (operation.state !== 'pending')
      return json(409, { message: 'This transaction was already decided.', ...stateOf(operation) })
    return json(200, stateOf(decide(operation)))
  }
  return [
    { method: 'GET', pattern: '/_sim/clock', handle: () => json(200, clockState(context)) },
    { method: 'POST', pattern: '/_sim/clock', handle: (call) => advance(context, call) },
    { method: 'PUT', pattern: '/_sim/webhook', handle: (call) => setWebhook(context, call) },
    {
      method: 'POST',
      pattern: '/_sim/transactions/:reference/confirm',
      handle: (call) =>
        decided(call, (operation) => engine.confirm({ ...operation, msisdn: operation.msisdn ?? passerBy })),
    },
    {
      method: 'POST',
      pattern: '/_sim/transactions/:reference/decline',
      handle: (call) => decided(call, (operation) => engine.refuse(operation, 'declined')),
    },
    {
      method: 'GET',
      pattern: '/_sim/requests',
      handle: ({ query }) => {
        const wanted = { clientReference: query.get('clientRef'), correlationId: query.get('correlationId') }
        return json(200, requests.list(wanted).slice(-listMax))
      },
    },
    {
      method: 'GET',
      pattern: '/_sim/calls',
      handle: ({ query }) => json(200, calls.list(query.get('op'))),
    },
    {
      method: 'GET',
      pattern: '/_sim/operations',
      handle: (call) => json(200, findOperations(context, call)),
    },
    { method: 'GET', pattern: '/_sim/accounts', handle: (call) => json(200, accounts(context, call)) },
    { method: 'GET', pattern: '/_sim/invariants', handle: (call) => invariants(context, call) },
    { method: 'GET', pattern: '/_sim/scenarios', handle: () => json(200, scenarios) },
    {
      method: 'POST',
      pattern: '/_sim/reset',
      handle: (call) => {
        const seed = call.object()?.['seed']
        store.reset()
        requests.clear()
        calls.clear()
        context.rules.clear(typeof seed === 'number' ? String(seed) : undefined)
        engine.openBooks()
        return json(200, clockState(context))
      },
    },
    {
      method: 'POST',
      pattern: '/_sim/transactions/:reference/reverse',
      handle: (call) => reverse(context, call),
    },
    { method: 'POST', pattern: '/_sim/outage', handle: (call) => setOutage(context, call) },
    ...faultRoutes(context),
  ]
}

/**
 * Moves time forward, and answers after all timers that fall due have run. A repeated request with the same
 * `move` changes nothing.
 */
function advance(context: SimulatorContext, call: SimulatorCall): Reply {
  const body = call.object() ?? {}
  const ms = body['advance_ms']
  const move = text(body, 'move')
  if (typeof ms !== 'number' || !Number.isSafeInteger(ms) || ms < 0 || ms > advanceMaxMs) {
    return json(400, { message: 'advance_ms: whole milliseconds, 0 to ten years.' })
  }
  if (context.store.hasMoved(move)) return json(200, clockState(context))
  // The journal gets the move first: otherwise, after a crash, the changes of the timers would be dated in
  // the future.
  context.store.commit([{ clock: context.clock.offset + ms, ...(move && { move }) }])
  context.clock.advance(ms)
  return json(200, clockState(context))
}

function clockState({ clock }: SimulatorContext): object {
  return { now: new Date(clock.now()).toISOString(), offset_ms: clock.offset }
}

function setWebhook(context: SimulatorContext, call: SimulatorCall): Reply {
  const body = call.object() ?? {}
  const url = text(body, 'url')
  if (!/^https?:\/\//.test(url) || !URL.canParse(url))
    return json(400, { message: 'url: an http(s) address.' })
  context.store.commit([{ webhook: { url, secret: text(body, 'secret') || sandboxWebhookSecret } }])
  return json(200, { url })
}

/** Reverses a payment, as an operator's back office does. */
function reverse(context: SimulatorContext, call: SimulatorCall): Reply {
  const operation = findByAnyName(context, param(call, 'reference'))
  if (!operation) return json(404, { message: 'There is no such transaction.' })
  const after = operation.state === 'completed' ? context.engine.takeBack(operation) : operation
  if (after.state === 'reversed' && after !== operation) return json(200, stateOf(after))
  return json(409, {
    message: 'The transaction cannot be reversed: not completed, reversed already, or the money is spent.',
    ...stateOf(after),
  })
}

/** The rules of outages: each applies to every request to one operator. */
const outageRules = {
  refuse: { effect: 'close_before', params: {} },
  hang: { effect: 'hang', params: {} },
  '5xx': { effect: 'status', params: { status: 503 } },
} as const satisfies Record<string, Pick<Rule, 'effect' | 'params'>>
type OutageMode = keyof typeof outageRules | 'none'
const outageModes = [...Object.keys(outageRules), 'none'] as readonly OutageMode[]

function setOutage(context: SimulatorContext, call: SimulatorCall): Reply {
  const body = call.object() ?? {}
  const operator = operatorNamed(body['operator'])
  const mode = outageModes.find((known) => known === text(body, 'mode'))
  if (!operator || !mode) {
    return json(400, { message: `operator: OperatorA to OperatorD; mode: ${outageModes.join(', ')}.` })
  }
  const everything = { when: 'before', times: null, probability: 1, draw: 'reference' } as const
  if (mode === 'none') context.rules.remove(`outage-${operator}`)
  else context.rules.set(`outage-${operator}`, { match: { operator }, ...everything, ...outageRules[mode] })
  return json(200, outages(context))
}

function outages({ rules }: SimulatorContext): Record<string, OutageMode> {
  const modeOf = (operator: OperatorKey) => {
    const effect = rules.get(`outage-${operator}`)?.effect
    return outageModes.find((mode) => mode !== 'none' && outageRules[mode].effect === effect) ?? 'none'
  }
  return Object.fromEntries(operatorKeys.map((key) => [operators[key].name, modeOf(key)]))
}

/**
 * Finds operations by correlation id, client reference or any id that the operator gave. Without such a
 * name in the query, returns the newest operations.
 */
function findOperations(context: SimulatorContext, { query }: SimulatorCall): object[] {
  const { store } = context
  const correlationId = query.get('correlationId')
  const clientReference = query.get('clientRef')
  const reference = query.get('reference')
  const each = <Found>(find: (key: OperatorKey) => Found) => operatorKeys.map(find)
  const rows =
    correlationId !== null
      ? each((key) => store.correlated(key, correlationId) ?? [])
      : clientReference !== null
        ? each((key) => store.withReference(key, clientReference))
        : reference !== null
          ? [findByAnyName(context, reference) ?? []]
          : [store.recent()]
  return rows.flat().slice(-listMax).map(stateOf)
}

function findByAnyName({ store }: SimulatorContext, name: string): SimulatedOperation | undefined {
  const names = operatorKeys.map((key) => store.named(key, name) ?? store.correlated(key, name))
  return store.operation(name) ?? names.find((operation) => operation !== undefined)
}

function stateOf(operation: SimulatedOperation): object {
  const time = (at: number | null) => (at === null ? null : new Date(at).toISOString())
  return {
    ...operation,
    operator: operators[operation.operator].name,
    createdAt: time(operation.createdAt),
    changedAt: time(operation.changedAt),
    settledAt: time(operation.settledAt),
    expiresAt: time(operation.expiresAt),
    due: operation.due && { ...operation.due, at: time(operation.due.at) },
  }
}

function accounts(context: SimulatorContext, { query }: SimulatorCall): object {
  const msisdn = query.get('msisdn')
  const shown = operatorKeys.map((key) => {
    const all = [...context.store.book.accounts(key)]
    const rows = all.filter(([account]) => !account.startsWith('wallet:') || account === `wallet:${msisdn}`)
    const wallets = all.filter(([account]) => account.startsWith('wallet:'))
    const sum = wallets.reduce((total, [, balance]) => total + balance, 0n)
    const own = Object.fromEntries(rows.map(([account, balance]) => [account, String(balance)]))
    return [operators[key].name, { ...own, wallets: { count: wallets.length, sum: String(sum) } }]
  })
  return Object.fromEntries(shown)
}
