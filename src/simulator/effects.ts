import type { OperatorKey } from './model.ts'
import { operators } from './operators.ts'

/** The kinds of requests that faults distinguish. */
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
 * The stage of an effect: when the request arrives, when it is executed, when its answer leaves, when money
 * moves, when the operator sends its callback, or in each line of a statement.
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
  /** The kinds of requests that the effect applies to. */
  readonly ops: readonly Op[]
  readonly parameters?: Readonly<Record<string, Parameter>>
  /** The default of `params.when`, where the effect may happen before or after the execution. */
  readonly when?: 'before' | 'after'
  /** Returns why an operator cannot show the effect; null where it can. */
  readonly impossible?: (operator: OperatorKey) => string | null
}

const hour = 3_600_000
const money = ['collect', 'disburse', 'reverse'] as const
const payments = ['collect', 'disburse'] as const
const milliseconds = (usual: number): Parameter => ({ default: usual, min: 0, max: 100 * 24 * hour })
const francs: Parameter = { default: 100, min: 1, max: 1_000_000 }

/** The stage of callback effects. An operator that is polled sends no callbacks, so it cannot show them. */
const callbackStage = {
  stages: ['tell'],
  ops: payments,
  impossible: (operator: OperatorKey) =>
    operators[operator].notification === 'polling' ? 'it is polled and sends no callbacks' : null,
} as const
const gsmaOnly = (why: string) => (operator: OperatorKey) =>
  operators[operator].protocol === 'gsma' ? null : why
const line = { stages: ['line'], ops: ['statement'] } as const

/** Every fault that an operator can show. The parameter `ms` is a time by the simulator's clock. */
export const effects = {
  /** The connection breaks before the execution. */
  close_before: { stages: ['in'], ops },
  /** No answer ever comes, and nothing is executed. */
  hang: { stages: ['in'], ops },
  /** An error in the operator's own format. */
  status: {
    stages: ['in', 'out'],
    ops,
    when: 'before',
    parameters: { status: { default: 503, min: 400, max: 599 } },
  },
  /** An HTML page of a gateway. */
  html: {
    stages: ['in', 'out'],
    ops,
    when: 'before',
    parameters: { status: { default: 502, min: 200, max: 599 } },
  },
  /** "Too many requests"; nothing is executed. */
  rate_limit: {
    stages: ['in'],
    ops,
    parameters: { retry_after_s: { default: 1, min: 0, max: 86_400 } },
  },
  /** Our own account does not cover the amount: the request is rejected before execution and not recorded. */
  no_float: { stages: ['in'], ops: ['disburse'] },
  /** The token is refused although its lifetime is not over. */
  token_expired: {
    stages: ['in'],
    ops: ops.filter((op) => op !== 'token'),
    impossible: gsmaOnly('it has keys and no tokens'),
  },
  /** After this number of questions about an operation, each further one is refused. */
  poll_limit: {
    stages: ['in'],
    ops: ['query'],
    parameters: {
      polls: { default: 0, min: 0, max: 1_000 },
      retry_after_s: { default: 1, min: 0, max: 86_400 },
    },
  },
  /** The connection breaks first, and the request is executed later. */
  late_execution: { stages: ['in'], ops: money, parameters: { ms: milliseconds(2_500) } },
  /** A repeated correlation id is executed again. */
  no_dedupe: { stages: ['execute'], ops: money },
  /** The request is executed, and the connection breaks before the answer. */
  close_after: { stages: ['out'], ops },
  /** The request is executed, and answered late. */
  delay: { stages: ['out'], ops, parameters: { ms: milliseconds(30_000) } },
  /** The request is executed; the answer is no JSON. */
  garbage: { stages: ['out'], ops },
  /** The request is executed; the answer ends half way. */
  truncate: { stages: ['out'], ops },
  /** The answer has an undocumented state. */
  unmapped_status: { stages: ['out'], ops: [...payments, 'query'] },
  /** The answer is about another payment: it has another client reference. */
  other_reference: { stages: ['out'], ops: [...payments, 'query'] },
  /** The answer says that another customer was paid. */
  other_payee: { stages: ['out'], ops: ['disburse'] },
  /** The link to the outcome leads to a foreign address. */
  link_foreign_origin: {
    stages: ['out'],
    ops: ['query'],
    impossible: gsmaOnly('its answers carry no links'),
  },
  /** Fewer francs are paid than requested. */
  wrong_amount: { stages: ['settle'], ops: payments, parameters: { less: francs } },
  /** More francs are paid than requested. */
  excess_amount: {
    stages: ['settle'],
    ops: payments,
    parameters: { more: { ...francs, max: Number.MAX_SAFE_INTEGER } },
  },
  /** The operator itself takes a payment back. */
  reversal: { stages: ['settle'], ops: payments, parameters: { ms: milliseconds(0) } },
  cb_drop: callbackStage,
  cb_duplicate: { ...callbackStage, parameters: { copies: { default: 2, min: 1, max: 100 } } },
  cb_delay: { ...callbackStage, parameters: { ms: milliseconds(60_000) } },
  /** An outdated callback ("pending") follows the outcome. */
  cb_reorder: { ...callbackStage, parameters: { ms: milliseconds(500) } },
  /** The signature (webhook) or the digest of the body (callback) is wrong. */
  cb_bad_signature: callbackStage,
  /** The callback comes before the answer to the request; the answer waits at most 10 s for it. */
  cb_before_response: { ...callbackStage, stages: ['out', 'tell'] },
  /** The callback claims the contrary of the outcome. */
  cb_contradict: callbackStage,
  /** Movements of our float that a statement omits, invents, or changes. */
  stmt_drop: line,
  stmt_extra: line,
  stmt_amount: { ...line, parameters: { less: francs } },
  stmt_fee: { ...line, parameters: { more: { ...francs, default: 1 } } },
  stmt_next_day: line,
  stmt_duplicate: line,
  /** The statement ends before this line, but still announces the following lines. */
  stmt_truncate: line,
} as const satisfies Record<string, Effect>

export type EffectName = keyof typeof effects

export const effectNames = Object.keys(effects) as EffectName[]

/** Returns an effect with the type that all effects share. */
export function effectOf(name: EffectName): Effect {
  return effects[name]
}

/** A fault, and the requests that it applies to. Some test numbers have a fault built in (`scenarios.ts`). */
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
  /** How often the fault happens to one request and its repetitions; null: each time. */
  readonly times: number | null
  /** The share of the matching requests to which the fault happens, 0 to 1. */
  readonly probability: number
  /** The basis of chance: the request's own reference, or the customer's number. */
  readonly draw: 'reference' | 'msisdn'
}
