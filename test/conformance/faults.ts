import { type DriverOperation, operations, type RequestedFault } from './subject.ts'

/** The expected answer of a money call; `ok`: the answer without a fault. */
export type Expected =
  | { kind: 'ok' }
  | { kind: 'not_sent'; causes: readonly string[] }
  | { kind: 'unknown'; causes: readonly string[] }
  /** `accepted` or `unknown`: the operation may still go on. */
  | { kind: 'open' }

export interface DriverFault {
  name: string
  /** The operations that the fault happens to. */
  to: readonly DriverOperation[]
  requestedFault?: Pick<RequestedFault, 'effect' | 'params' | 'times'> & { op?: RequestedFault['op'] }
  /** A fault that needs no request to the operator. */
  without?: 'connection' | 'time' | 'token'
  /** The customer is unknown to the operator: the operation must be refused, and not executed. */
  refuses?: true
  expected: Expected
  /** Milliseconds that a call may take. */
  callMs?: number
  report?: Pick<ReportFault, 'says' | 'same'>
  statement?: StatementFault['expects']
}

const money = ['collect', 'disburse', 'reverse'] as const

const ok: Expected = { kind: 'ok' }
const lost: Expected = { kind: 'unknown', causes: ['response_lost'] }
const silent: Expected = { kind: 'unknown', causes: ['headers_timeout', 'body_timeout'] }
const failing: Expected = { kind: 'unknown', causes: ['http_5xx'] }
const unreadable: Expected = { kind: 'unknown', causes: ['unreadable', 'unmapped'] }

/** Long enough for a busy machine to connect and send, short enough to wait for. */
const patienceMs = 2_500
const once = { times: 1 }
const faultyAnswer = (effect: 'status' | 'html', status: number, when: 'before' | 'after') => ({
  effect,
  params: { status, when },
  ...once,
})

/** Twenty faults that any operation may meet. */
const everywhere: readonly Omit<DriverFault, 'to'>[] = [
  {
    name: 'no server listens',
    without: 'connection',
    expected: { kind: 'not_sent', causes: ['connect', 'token'] },
  },
  {
    name: 'no time is left',
    without: 'time',
    expected: { kind: 'not_sent', causes: ['deadline_before_send'] },
  },
  {
    name: 'the token service is down',
    without: 'token',
    requestedFault: { effect: 'status', op: 'token' },
    expected: { kind: 'not_sent', causes: ['token'] },
  },
  { name: 'a token that is refused', requestedFault: { effect: 'token_expired', ...once }, expected: ok },
  {
    name: 'too many requests',
    requestedFault: { effect: 'rate_limit', params: { retry_after_s: 7 }, ...once },
    expected: { kind: 'not_sent', causes: ['rate_limited'] },
  },
  { name: 'cut off before', requestedFault: { effect: 'close_before', ...once }, expected: lost },
  { name: 'cut off after', requestedFault: { effect: 'close_after', ...once }, expected: lost },
  { name: 'silence', requestedFault: { effect: 'hang', ...once }, expected: silent, callMs: patienceMs },
  {
    name: 'an answer too late',
    requestedFault: { effect: 'delay', params: { ms: 60_000 }, ...once },
    expected: silent,
    callMs: patienceMs,
  },
  { name: '500 before', requestedFault: faultyAnswer('status', 500, 'before'), expected: failing },
  { name: '500 after', requestedFault: faultyAnswer('status', 500, 'after'), expected: failing },
  { name: '503 before', requestedFault: faultyAnswer('status', 503, 'before'), expected: failing },
  { name: '503 after', requestedFault: faultyAnswer('status', 503, 'after'), expected: failing },
  { name: "a gateway's 502 before", requestedFault: faultyAnswer('html', 502, 'before'), expected: failing },
  { name: "a gateway's 504 after", requestedFault: faultyAnswer('html', 504, 'after'), expected: failing },
  {
    name: "a portal's 200 before",
    requestedFault: faultyAnswer('html', 200, 'before'),
    expected: unreadable,
  },
  { name: "a portal's 200 after", requestedFault: faultyAnswer('html', 200, 'after'), expected: unreadable },
  {
    name: "a gateway's 404 before",
    requestedFault: faultyAnswer('html', 404, 'before'),
    expected: unreadable,
  },
  { name: 'garbage', requestedFault: { effect: 'garbage', ...once }, expected: unreadable },
  { name: 'half an answer', requestedFault: { effect: 'truncate', ...once }, expected: lost },
]

/** Faults of one operation or another. */
const somewhere: readonly DriverFault[] = [
  { name: 'no such wallet', to: ['collect', 'disburse'], refuses: true, expected: { kind: 'open' } },
  {
    name: 'done after the cut',
    to: money,
    requestedFault: { effect: 'late_execution', ...once },
    expected: lost,
  },
  { name: 'repeats are done again', to: money, requestedFault: { effect: 'no_dedupe' }, expected: ok },
  {
    name: 'a state unheard of',
    to: ['collect', 'disburse', 'query'],
    requestedFault: { effect: 'unmapped_status', ...once },
    expected: { kind: 'open' },
  },
  {
    name: 'another amount is paid',
    to: ['collect', 'disburse'],
    requestedFault: { effect: 'wrong_amount', params: { less: 100 } },
    expected: ok,
  },
  {
    name: 'more is paid than asked',
    to: ['collect', 'disburse'],
    requestedFault: { effect: 'excess_amount', params: { more: 100 } },
    expected: ok,
  },
  {
    name: 'the operator takes it back',
    to: ['collect', 'disburse'],
    requestedFault: { effect: 'reversal', params: { ms: 1_000 } },
    expected: ok,
  },
  {
    name: 'our float is empty',
    to: ['disburse'],
    requestedFault: { effect: 'no_float', ...once },
    expected: { kind: 'not_sent', causes: ['float_empty'] },
  },
  {
    name: 'polls are used up',
    to: ['query'],
    requestedFault: { effect: 'poll_limit', ...once },
    expected: ok,
  },
  {
    name: 'a record of another payment',
    to: ['query'],
    requestedFault: { effect: 'other_reference' },
    expected: { kind: 'unknown', causes: ['other_payment'] },
  },
  {
    name: 'answered for another payment',
    to: ['collect', 'disburse'],
    requestedFault: { effect: 'other_reference', ...once },
    expected: { kind: 'open' },
  },
  {
    name: 'paid to another number',
    to: ['disburse'],
    requestedFault: { effect: 'other_payee', ...once },
    expected: { kind: 'open' },
  },
  {
    name: 'a link to elsewhere',
    to: ['query'],
    requestedFault: { effect: 'link_foreign_origin', ...once },
    expected: { kind: 'open' },
  },
]

/** Faults of the operator's own reports of a collection, and the statements of these reports. */
const reports: readonly ReportFault[] = [
  { name: 'no report comes', effect: 'cb_drop', says: [] },
  { name: 'a report comes twice', effect: 'cb_duplicate', says: ['settled', 'settled'], same: true },
  { name: 'a stale report follows', effect: 'cb_reorder', says: ['settled', 'pending'] },
  { name: 'a report is forged', effect: 'cb_bad_signature', says: ['rejected'] },
  { name: 'a report before the answer', effect: 'cb_before_response', says: ['settled'] },
  { name: 'a report says the contrary', effect: 'cb_contradict', says: ['refused'] },
]
interface ReportFault {
  name: string
  effect: string
  /** The statements of the reports in order: a hint, or that the report was rejected. */
  says: readonly string[]
  /** Whether the reports must count as one. */
  same?: boolean
}

/** Faults of a statement: a driver passes it on as it is, and never a part of it as the whole. */
const statements: readonly StatementFault[] = [
  { name: 'the end of the statement is missing', effect: 'stmt_truncate', expects: 'unreachable' },
  { name: 'a line is missing', effect: 'stmt_drop', expects: { lines: -1 } },
  { name: 'a line is made up', effect: 'stmt_extra', expects: { lines: 1 } },
  { name: 'a line is repeated', effect: 'stmt_duplicate', expects: { lines: 1 } },
  { name: 'a line has the date of the next day', effect: 'stmt_next_day', expects: { lines: -1 } },
  { name: 'a line has another amount', effect: 'stmt_amount', expects: { amount: -100n } },
  { name: 'a line has another fee', effect: 'stmt_fee', expects: { fee: 1n } },
]
interface StatementFault {
  name: string
  effect: string
  /** The difference to the true statement: more lines, or more francs in amounts or fees. */
  expects: 'unreachable' | { lines?: number; amount?: bigint; fee?: bigint }
}

/** Every fault, in the order of the table. */
export const faults: readonly DriverFault[] = [
  ...everywhere.map((fault) => ({ ...fault, to: operations })),
  ...somewhere,
  ...reports.map(
    ({ name, effect, ...report }): DriverFault => ({
      name,
      to: ['collect'],
      requestedFault: { effect },
      expected: ok,
      report,
    }),
  ),
  ...statements.map(
    ({ name, effect, expects }): DriverFault => ({
      name,
      to: ['statement'],
      requestedFault: { effect },
      expected: ok,
      statement: expects,
    }),
  ),
]
