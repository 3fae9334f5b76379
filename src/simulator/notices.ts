import { sessionBody } from './checkout-shapes.ts'
import { sha256 } from './credentials.ts'
import type { EffectName } from './effects.ts'
import { faultBody, transactionBody } from './gsma-shapes.ts'
import type { CallbackNotice, SimulatedOperation } from './model.ts'
import { operators } from './operators.ts'
import { gsmaFault } from './reasons.ts'
import type { Played } from './rules.ts'

/**
 * The pause before a callback: the answer to the request leaves first, so most clients know the operation by
 * then.
 */
const calledAfterMs = 50

/**
 * Returns the callbacks that an operator sends about the new state of an operation; often none.
 * @param played the faults that apply to the callbacks
 */
export function noticesOf(
  operation: SimulatedOperation,
  at: number,
  publicUrl: string,
  played: readonly Played[] = [],
): CallbackNotice[] {
  const { notification } = operators[operation.operator]
  const say = (about: SimulatedOperation): CallbackNotice[] => {
    if (notification === 'callback') return callback(about, at)
    return notification === 'webhook' ? webhook(about, at, publicUrl) : []
  }
  return played.reduce(
    (notes, { effect, params }) => distorted[effect]?.({ notes, params, operation, at, say }) ?? notes,
    say(operation),
  )
}

/** The intended callbacks, and the parameters of a fault that changes them. */
interface CallbackPlan {
  readonly notes: CallbackNotice[]
  readonly params: Played['params']
  readonly operation: SimulatedOperation
  readonly at: number
  readonly say: (about: SimulatedOperation) => CallbackNotice[]
}

const distorted: Partial<Record<EffectName, (plan: CallbackPlan) => CallbackNotice[]>> = {
  cb_drop: () => [],
  cb_duplicate: ({ notes, params }) =>
    Array.from({ length: params['copies'] ?? 2 }, (_, copy) =>
      notes.map((note) => (copy === 0 ? note : { ...note, id: `${note.id}#${copy}` })),
    ).flat(),
  cb_delay: ({ notes, params, at }) =>
    notes.map((note) => ({ ...note, dueAt: (note.dueAt ?? at) + (params['ms'] ?? 0) })),
  cb_reorder({ notes, params, operation, at, say }) {
    const dueAt = at + calledAfterMs + (params['ms'] ?? 0)
    return [...notes, ...say(undecided(operation)).map((note) => ({ ...note, dueAt }))]
  },
  cb_bad_signature: ({ notes }) => notes.map((note) => ({ ...note, forged: true })),
  cb_before_response: ({ notes, at }) => notes.map((note) => ({ ...note, dueAt: at })),
  cb_contradict: ({ operation, at, say }) => say(contrary(operation, at)),
}

function undecided(operation: SimulatedOperation): SimulatedOperation {
  return { ...operation, state: 'pending', refusal: null, settledAt: null }
}

function contrary(operation: SimulatedOperation, at: number): SimulatedOperation {
  return operation.state === 'failed'
    ? { ...operation, state: 'completed', refusal: null, settledAt: at }
    : { ...undecided(operation), state: 'failed', refusal: 'declined' }
}

/** Makes a callback of the standard: the transaction when it is done, the error object when it is refused. */
function callback(operation: SimulatedOperation, at: number): CallbackNotice[] {
  const { id, operator, callbackUrl, refusal, kind, correlationId, state } = operation
  if (callbackUrl === null) return []
  const body = refusal ? faultBody(gsmaFault(refusal, kind), at) : transactionBody(operation)
  const note: CallbackNotice = {
    id: `callback:${id}:${state}`,
    operator,
    url: callbackUrl,
    operationId: id,
    correlationId,
    body: JSON.stringify(body),
    attempts: 0,
    dueAt: at + calledAfterMs,
  }
  return [note]
}

/**
 * Makes a webhook of the checkout protocol: about payments that succeeded, failed or were given back, not
 * about sessions that expired or were withdrawn.
 */
function webhook(operation: SimulatedOperation, at: number, publicUrl: string): CallbackNotice[] {
  if (operation.kind !== 'collect' || operation.refusal === 'expired' || operation.refusal === 'cancelled')
    return []
  const { operator, correlationId, state } = operation
  const type = `checkout.session.${webhookTypes[state]}`
  const name = `${operation.id}:${type}:${state}:${at}`
  const id = `EV_${sha256(name).slice(0, 20)}`
  const body = JSON.stringify({ id, type, data: sessionBody(operation, publicUrl) })
  const dueAt = at + calledAfterMs
  return [{ id, operator, url: null, operationId: operation.id, correlationId, body, attempts: 0, dueAt }]
}

const webhookTypes = {
  completed: 'completed',
  reversed: 'refunded',
  pending: 'payment_failed',
  failed: 'payment_failed',
} as const
