import type { OperatorKey } from './model.ts'
import { operators } from './operators.ts'

/** What a request asks of an operator, as far as faults tell requests apart. */
export const ops = [
  'collect',
  'disburse',
  'reverse',
  'cancel',
  'query',
  'token',
  'balance',
  'health',
  'lookup',
  'statement',
] as const
export type Op = (typeof ops)[number]

/**
 * When an effect plays its part: on the way into the operator, in the place of the execution, on the answer's
 * way out, when money moves, when the operator tells of it, or in each line of a statement.
 */
export type FaultStage = 'in' | 'execute' | 'out' | 'settle' | 'tell' | 'line'

/** A number that an effect takes, with its bounds. */
interface Parameter {
  readonly default: number
  readonly min: number
  readonly max: number
}

interface Effect {
  readonly stages: readonly FaultStage[]
  /** What it can happen to. */
  readonly ops: readonly Op[]
  readonly parameters?: Readonly<Record<string, Parameter>>
  /** Whether it comes before the execution or after it may be chosen (`params.when`). */
  readonly when?: 'before' | 'after'
  /** Why an operator cannot show it. */
  readonly impossible?: (operator: OperatorKey) => string | null
}

const hour = 3_600_000
const money = ['collect', 'disburse', 'reverse'] as const
const payments = ['collect', 'disburse'] as const
const milliseconds = (usual: number): Parameter => ({ default: usual, min: 0, max: 100 * 24 * hour })
const francs: Parameter = { default: 100, min: 1, max: 1_000_000 }

/** An operator that calls nobody back cannot do it wrongly. */
const callbackStage = {
  stages: ['tell'],
  ops: payments,
  impossible: (operator: OperatorKey) =>
    operators[operator].notification === 'polling' ? 'it is polled and calls nobody back' : null,
} as const
const gsmaOnly = (why: string) => (operator: OperatorKey) =>
  operators[operator].protocol === 'gsma' ? null : why
const line = { stages: ['line'], ops: ['statement'] } as const

/** Everything that can go wrong at an operator. Times are milliseconds of the simulator's clock. */
export const effects = {
  /** The connection breaks, and nothing was done. */
  close_before: { stages: ['in'], ops },
  /** Nothing is ever answered, and nothing was done. */
  hang: { stages: ['in'], ops },
  /** An error of the operator's own writing. */
  status: {
    stages: ['in', 'out'],
    ops,
    when: 'before',
    parameters: { status: { default: 503, min: 400, max: 599 } },
  },
  /** A page of a gateway. */
  html: {
    stages: ['in', 'out'],
    ops,
    when: 'before',
    parameters: { status: { default: 502, min: 200, max: 599 } },
  },
  /** "Too many requests", and nothing was done. */
  rate_limit: {
    stages: ['in'],
    ops,
    parameters: { retry_after_s: { default: 1, min: 0, max: 86_400 } },
  },
  /** Our own account does not cover it: turned away at the door, and nothing is kept of it. */
  no_float: { stages: ['in'], ops: ['disburse'] },
  /** The token is refused, although its time is not over. */
  token_expired: {
    stages: ['in'],
    ops: ops.filter((op) => op !== 'token'),
    impossible: gsmaOnly('it has keys and no tokens'),
  },
  /** After so many questions about an operation each further one is too many. */
  poll_limit: {
    stages: ['in'],
    ops: ['query'],
    parameters: {
      polls: { default: 0, min: 0, max: 1_000 },
      retry_after_s: { default: 1, min: 0, max: 86_400 },
    },
  },
  /** The connection breaks first, and the request is carried out later. */
  late_execution: { stages: ['in'], ops: money, parameters: { ms: milliseconds(2_500) } },
  /** A repeated correlation id is carried out again. */
  no_dedupe: { stages: ['execute'], ops: money },
  /** Carried out, and the connection breaks before the answer. */
  close_after: { stages: ['out'], ops },
  /** Carried out, and answered late. */
  delay: { stages: ['out'], ops, parameters: { ms: milliseconds(30_000) } },
  /** Carried out; the answer is no JSON. */
  garbage: { stages: ['out'], ops },
  /** Carried out; the answer ends half way. */
  truncate: { stages: ['out'], ops },
  /** A state of the operation that no document knows. */
  unmapped_status: { stages: ['out'], ops: [...payments, 'query'] },
  /** The link to the outcome leads to somebody else. */
  link_foreign_origin: {
    stages: ['out'],
    ops: ['query'],
    impossible: gsmaOnly('its answers carry no links'),
  },
  /** Fewer francs are paid than asked for. */
  wrong_amount: { stages: ['settle'], ops: payments, parameters: { less: francs } },
  /** More francs are paid than asked for. */
  excess_amount: {
    stages: ['settle'],
    ops: payments,
    parameters: { more: { ...francs, max: Number.MAX_SAFE_INTEGER } },
  },
  /** What was paid is taken back by the operator itself. */
  reversal: { stages: ['settle'], ops: payments, parameters: { ms: milliseconds(0) } },
  cb_drop: callbackStage,
  cb_duplicate: { ...callbackStage, parameters: { copies: { default: 2, min: 1, max: 100 } } },
  cb_delay: { ...callbackStage, parameters: { ms: milliseconds(60_000) } },
  /** After the outcome comes an older word: that nothing is decided yet. */
  cb_reorder: { ...callbackStage, parameters: { ms: milliseconds(500) } },
  /** The signature (webhook) or the digest of the body (callback) is wrong. */
  cb_bad_signature: callbackStage,
  /** It comes before the answer to the request; what comes later than 10 s after it is not waited for. */
  cb_before_response: { ...callbackStage, stages: ['out', 'tell'] },
  /** It says the contrary of what happened. */
  cb_contradict: callbackStage,
  /** Movements of our float that a statement leaves out, makes up, or tells wrongly. */
  stmt_drop: line,
  stmt_extra: line,
  stmt_amount: { ...line, parameters: { less: francs } },
  stmt_fee: { ...line, parameters: { more: { ...francs, default: 1 } } },
  stmt_next_day: line,
  stmt_duplicate: line,
  /** The statement ends before this line, and still promises what should follow. */
  stmt_truncate: line,
} as const satisfies Record<string, Effect>

export type EffectName = keyof typeof effects

export const effectNames = Object.keys(effects) as EffectName[]

/** What can be said of every effect. */
export function effectOf(name: EffectName): Effect {
  return effects[name]
}

/** What goes wrong, and where. A test number carries one of these built in (`scenarios.ts`). */
export interface Rule {
  readonly match: {
    readonly operator?: OperatorKey
    readonly ops?: readonly Op[]
    readonly msisdn?: string
    readonly clientReference?: string
  }
  readonly effect: EffectName
  readonly params: Readonly<Record<string, number>>
  /** Only for `status` and `html`. */
  readonly when: 'before' | 'after'
  /** How often it happens to one request and its repeats; null: each time. */
  readonly times: number | null
  /** Of all requests that match. */
  readonly probability: number
  /** What chance goes by: the request's own reference, or the customer's number. */
  readonly draw: 'reference' | 'msisdn'
}
