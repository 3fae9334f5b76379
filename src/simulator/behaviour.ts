import type { Due, SimulatedOperationKind, OperatorKey, Reason } from './model.ts'
import { operators } from './operators.ts'
import type { ScenarioPart } from './scenarios.ts'
import { partOf } from './scenarios.ts'

const second = 1_000
const minute = 60 * second
const day = 24 * 60 * minute

/** What will become of an operation, decided when it is received. Times in milliseconds from then. */
export interface Plan {
  readonly scenario: string
  /** Said in the first answer. */
  readonly refuseNow: Reason | null
  readonly due: (Omit<Due, 'at'> & { readonly afterMs: number }) | null
  /** When the prompt or session closes by itself; null: never. */
  readonly expiresAfterMs: number | null
}

/** What is asked of an operator, as far as its behaviour depends on it. */
export interface OperationInput {
  readonly operator: OperatorKey
  readonly kind: SimulatedOperationKind
  /** The customer; null for a checkout session that anyone may pay. */
  readonly msisdn: string | null
  /** There is a customer who has to answer, or somebody waits for the answer on the line. */
  readonly mode: 'prompt' | 'checkout' | 'synchronous' | 'background'
}

/** A reversal has nobody to ask: an asynchronous operator takes this long over it. */
const reversalMs = 1 * second

/** Decides what an operator and its customer do, by the customer's number (see `scenarios.ts`). */
export function planOperation(asked: OperationInput): Plan {
  if (asked.kind === 'reverse') return planReversal(asked.mode)
  if (asked.mode === 'checkout') return planSession(asked)
  const part = partOf(asked.msisdn ?? '')
  const { act } = part
  const refuseNow = act.does === 'refuseAtOnce' ? act.reason : null
  // Nobody waits three seconds for a synchronous operator unless the number says so.
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

/** A session is always made; what goes wrong happens to its payment. Without a payer it waits for one. */
function planSession({ operator, msisdn }: OperationInput): Plan {
  const { promptMs } = operators[operator]
  const expire: Plan['due'] = { act: 'expire', reason: 'expired', afterMs: promptMs }
  if (msisdn === null) return { scenario: 'ordinary', refuseNow: null, due: expire, expiresAfterMs: promptMs }
  const part = partOf(msisdn)
  const { act, afterMs, scenario } = part
  if (act.does === 'expire') {
    return { scenario, refuseNow: null, due: { ...expire, afterMs }, expiresAfterMs: afterMs }
  }
  // A month stands for never: a session always has an end.
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

/** Only a prompt that answers within its time, or is meant to run out, has an end. */
function promptLifetime(asked: OperationInput, { act, afterMs }: ScenarioPart): number | null {
  if (act.does === 'expire') return afterMs
  const { promptMs } = operators[asked.operator]
  const answered = act.does === 'confirm' || act.does === 'refuse'
  return asked.kind === 'collect' && answered && afterMs < promptMs ? promptMs : null
}
