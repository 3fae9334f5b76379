import type { Due, SimulatedOperationKind, OperatorKey, Reason } from './model.ts'
import { operators } from './operators.ts'
import type { ScenarioPart } from './scenarios.ts'
import { partOf } from './scenarios.ts'

const second = 1_000
const minute = 60 * second
const day = 24 * 60 * minute

/** The planned course of an operation, decided when it is received. Times in milliseconds from then. */
export interface Plan {
  readonly scenario: string
  /** The reason in the first answer, if the operation is refused at once. */
  readonly refuseNow: Reason | null
  readonly due: (Omit<Due, 'at'> & { readonly afterMs: number }) | null
  /** When the prompt or session closes by itself; null: never. */
  readonly expiresAfterMs: number | null
}

/** The properties of a request on which the operator's behaviour depends. */
export interface OperationInput {
  readonly operator: OperatorKey
  readonly kind: SimulatedOperationKind
  /** The customer's number; null for a checkout session that anyone may pay. */
  readonly msisdn: string | null
  /**
   * `prompt`, `checkout`: a customer answers a prompt or a page. `synchronous`: the caller waits for the
   * outcome. `background`: neither.
   */
  readonly mode: 'prompt' | 'checkout' | 'synchronous' | 'background'
}

/** The duration of a reversal at an asynchronous operator; no customer is asked. */
const reversalMs = 1 * second

/** Decides the acts of an operator and its customer, by the customer's number (see `scenarios.ts`). */
export function planOperation(asked: OperationInput): Plan {
  if (asked.kind === 'reverse') return planReversal(asked.mode)
  if (asked.mode === 'checkout') return planSession(asked)
  const part = partOf(asked.msisdn ?? '')
  const { act } = part
  const refuseNow = act.does === 'refuseAtOnce' ? act.reason : null
  // A synchronous operator answers at once unless the number says otherwise.
  const afterMs = part.ordinary && asked.mode === 'synchronous' ? 0 : part.afterMs
  const expiresAfterMs = promptLifetime(asked, part)
  return { scenario: part.scenario, refuseNow, due: refuseNow ? null : dueOf(part, afterMs), expiresAfterMs }
}

function planReversal(mode: OperationInput['mode']): Plan {
  const afterMs = mode === 'synchronous' ? 0 : reversalMs
  return {
    scenario: 'ordinary',
    refuseNow: null,
    due: { act: 'confirm', reason: null, afterMs },
    expiresAfterMs: null,
  }
}

/**
 * Plans a checkout session. The session is always created; a failure happens to its payment. A session
 * without a payer's number waits for a payer until it expires.
 */
function planSession({ operator, msisdn }: OperationInput): Plan {
  const { promptMs } = operators[operator]
  const expire: Plan['due'] = { act: 'expire', reason: 'expired', afterMs: promptMs }
  if (msisdn === null) return { scenario: 'ordinary', refuseNow: null, due: expire, expiresAfterMs: promptMs }
  const part = partOf(msisdn)
  const { act, afterMs, scenario } = part
  if (act.does === 'expire') {
    return { scenario, refuseNow: null, due: { ...expire, afterMs }, expiresAfterMs: afterMs }
  }
  // A month stands for never, because a session always has an end.
  const lifetime = act.does === 'nothing' ? 30 * day : Math.max(promptMs, afterMs + promptMs)
  const due =
    act.does === 'wait' || act.does === 'nothing' ? { ...expire, afterMs: lifetime } : dueOf(part, afterMs)
  return { scenario, refuseNow: null, due, expiresAfterMs: lifetime }
}

function dueOf({ act }: ScenarioPart, afterMs: number): Plan['due'] {
  if (act.does === 'confirm') return { act: 'confirm', reason: null, afterMs }
  if (act.does === 'expire') return { act: 'expire', reason: 'expired', afterMs }
  if (act.does === 'wait' || act.does === 'nothing') return null
  return { act: 'refuse', reason: act.reason, afterMs }
}

/**
 * Returns the lifetime of a prompt; null if the operator never closes the prompt. Only a prompt that is
 * answered within its time, or that must expire, has a lifetime.
 */
function promptLifetime(asked: OperationInput, { act, afterMs }: ScenarioPart): number | null {
  if (act.does === 'expire') return afterMs
  const { promptMs } = operators[asked.operator]
  const answered = act.does === 'confirm' || act.does === 'refuse'
  return asked.kind === 'collect' && answered && afterMs < promptMs ? promptMs : null
}
