import { createHash } from 'node:crypto'
import { sessionBody } from './checkout-shapes.ts'
import { faultBody, transactionBody } from './gsma-shapes.ts'
import type { Note, Operation } from './model.ts'
import { operators } from './operators.ts'
import { gsmaFault } from './reasons.ts'

/** An answer on its way leaves before the callback: most clients know the operation by then. */
const calledAfterMs = 50

/** Whom an operator tells of what has just become of an operation, and in what words; often nobody. */
export function notesOf(operation: Operation, at: number, publicUrl: string): Note[] {
  const profile = operators[operation.operator]
  if (profile.notification === 'callback') return callback(operation, at)
  return profile.notification === 'webhook' ? webhook(operation, at, publicUrl) : []
}

/** The standard: the transaction when it is done, the bare error when it is not. */
function callback(operation: Operation, at: number): Note[] {
  const { id, operator, callbackUrl, refusal, kind, correlationId } = operation
  if (callbackUrl === null) return []
  const body = refusal ? faultBody(gsmaFault(refusal, kind), at) : transactionBody(operation)
  const note: Note = {
    id: `callback:${id}`,
    operator,
    url: callbackUrl,
    correlationId,
    body: JSON.stringify(body),
    attempts: 0,
    dueAt: at + calledAfterMs,
  }
  return [note]
}

/** A checkout session tells of payments, made or failed; not of running out. */
function webhook(operation: Operation, at: number, publicUrl: string): Note[] {
  if (operation.kind !== 'collect' || operation.refusal === 'expired' || operation.refusal === 'cancelled')
    return []
  const type =
    operation.state === 'completed' ? 'checkout.session.completed' : 'checkout.session.payment_failed'
  const id = `EV_${createHash('sha256').update(`${operation.id}:${type}:${at}`).digest('hex').slice(0, 20)}`
  const body = JSON.stringify({ id, type, data: sessionBody(operation, publicUrl) })
  const { operator, correlationId } = operation
  return [{ id, operator, url: null, correlationId, body, attempts: 0, dueAt: at + calledAfterMs }]
}
