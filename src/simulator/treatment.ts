import { randomUUID } from 'node:crypto'
import { checkoutFault } from './checkout-requests.ts'
import type { EffectName } from './effects.ts'
import { faultReply } from './gsma-shapes.ts'
import type { SimulatorCall, Delivery, Reply } from './http.ts'
import { header } from './http.ts'
import type { OperatorProfile } from './operators.ts'
import { type GsmaCategory, reasons } from './reasons.ts'
import type { Facts, Played } from './rules.ts'
import type { SimulatorContext } from './context.ts'

/** The operator's own handler of a request. `treat` adds the faults before and after it. */
export type Execute = (call: SimulatorCall) => Delivery | Promise<Delivery>

/** The longest time for which an answer waits for its callback, by the machine's clock. */
const callbackWaitMs = 10_000
const strangeState = 'held_for_review'
const otherCustomer = '+22370000099'
const referenceFields = new Set(['requestingOrganisationTransactionReference', 'client_reference'])
const stateFields = new Set(['transactionStatus', 'status', 'payment_status', 'checkout_status'])

/** Passes a request to an operator, with the faults of the rules in force. */
export async function treat(treated: Treated, execute: Execute): Promise<Delivery> {
  const { context, call, facts } = treated
  const carryOut = () => {
    const repeats = context.rules.play('execute', facts).length > 0
    return execute(repeats ? { ...call, repeats } : call)
  }
  for (const { effect, params } of context.rules.play('in', facts)) {
    const delivery = replacements[effect]?.(treated, params, carryOut)
    if (delivery) return delivery
  }
  let delivery = await carryOut()
  for (const { effect, params } of context.rules.play('out', facts)) {
    if (typeof delivery === 'object')
      delivery = (await spoiled[effect]?.(treated, params, delivery)) ?? delivery
  }
  return delivery
}

/** A request with everything that its treatment depends on. */
export interface Treated {
  readonly profile: OperatorProfile
  readonly context: SimulatorContext
  readonly call: SimulatorCall
  readonly facts: Facts
}

type Params = Played['params']

/** The answers of faults that replace the execution. */
const replacements: Partial<
  Record<EffectName, (treated: Treated, params: Params, execute: () => unknown) => Delivery>
> = {
  close_before: () => 'close',
  hang: () => 'hang',
  status: (treated, params) => words(treated, params['status'] ?? 503),
  html: (_treated, params) => page(params['status'] ?? 502),
  rate_limit: tooMany,
  poll_limit: tooMany,
  no_float({ profile, context: { clock } }) {
    const { gsma, payout, message } = reasons.insufficientFunds
    return profile.protocol === 'gsma' ? faultReply(gsma, clock.now()) : checkoutFault(400, payout, message)
  },
  token_expired: (treated) => words(treated, 401),
  late_execution({ context: { clock, nextNumber, onError } }, params, execute) {
    clock.set(`late:${nextNumber()}`, clock.now() + (params['ms'] ?? 0), () => {
      // The caller has gone, so the result is dropped.
      Promise.resolve(execute()).catch(onError)
    })
    return 'close'
  },
}

/** The faults of an answer after the execution. */
const spoiled: Partial<
  Record<EffectName, (treated: Treated, params: Params, reply: Reply) => Delivery | Promise<Delivery>>
> = {
  close_after: () => 'close',
  status: (treated, params) => words(treated, params['status'] ?? 500),
  html: (_treated, params) => page(params['status'] ?? 502),
  async delay({ context: { clock, nextNumber } }, params, reply) {
    const at = clock.now() + (params['ms'] ?? 0)
    await new Promise<void>((resolve) => clock.set(`delay:${nextNumber()}`, at, resolve))
    return reply
  },
  garbage: (_treated, _params, reply) => ({ ...reply, body: `${(reply.body ?? '').slice(0, 20)}<<` }),
  truncate: (_treated, _params, reply) => ({ ...reply, cut: true }),
  unmapped_status: (_treated, _params, reply) =>
    rewritten(reply, (field, value) => (stateFields.has(field) ? strangeState : value)),
  other_reference: (_treated, _params, reply) =>
    rewritten(reply, (field, value) => (referenceFields.has(field) ? randomUUID() : value)),
  other_payee: (_treated, _params, reply) =>
    rewritten(reply, (field, value) =>
      (field === 'mobile' || field === 'value') && value.startsWith('+') ? otherCustomer : value,
    ),
  link_foreign_origin: (_treated, _params, reply) =>
    rewritten(reply, (field, value) =>
      field === 'link' ? value.replace(/^https?:\/\/[^/]+/, 'http://elsewhere.invalid') : value,
    ),
  async cb_before_response(treated, _params, reply) {
    await callbackOf(treated)
    return reply
  },
}

/**
 * Waits for the first attempt to deliver the callback of a new operation, at most `callbackWaitMs`. Does not
 * wait if no callback can follow.
 */
async function callbackOf({ profile, context, call, facts }: Treated): Promise<void> {
  const { store, notifier } = context
  const name = header(call, 'x-correlationid') || header(call, 'idempotency-key')
  const operation =
    store.correlated(profile.key, name) ?? store.newestWithReference(profile.key, facts.clientReference)
  const hasReceiver = profile.protocol === 'gsma' ? operation?.callbackUrl != null : store.webhook !== null
  if (operation?.state === 'pending' && hasReceiver) await notifier.whenNotified(operation.id, callbackWaitMs)
}

const categories = new Map<number, GsmaCategory>([
  [401, 'authorisation'],
  [404, 'identification'],
  [429, 'businessRule'],
  [500, 'internal'],
])

/** Makes an error in the operator's own format. */
function words({ profile: { protocol }, context: { clock } }: Treated, status: number): Reply {
  const description = status === 401 ? 'The token is not valid.' : 'This error is a simulated fault.'
  if (protocol === 'checkout') {
    const code = status === 429 ? 'too-many-requests' : status === 503 ? 'service-unavailable' : 'fault'
    return checkoutFault(status, code, description)
  }
  const category = categories.get(status) ?? (status < 500 ? 'businessRule' : 'serviceUnavailable')
  const code =
    status === 401 ? 'clientAuthorisationError' : status === 429 ? 'rateLimitError' : 'genericError'
  return { ...faultReply({ category, code, description }, clock.now()), status }
}

function tooMany(treated: Treated, params: Params): Reply {
  const reply = words(treated, 429)
  return { ...reply, headers: { ...reply.headers, 'retry-after': String(params['retry_after_s'] ?? 1) } }
}

function page(status: number): Reply {
  const body = `<!doctype html><title>${status}</title><h1>${status}</h1>`
  return { status, headers: { 'content-type': 'text/html' }, body }
}

/** Returns the same answer with some of its texts replaced, at any depth. */
function rewritten(reply: Reply, replace: (field: string, value: string) => string): Reply {
  if (reply.status >= 300 || !reply.body) return reply
  const body = JSON.stringify(JSON.parse(reply.body), (field, value: unknown) =>
    typeof value === 'string' ? replace(field, value) : value,
  )
  return { ...reply, body }
}
