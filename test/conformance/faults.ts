import { type DriverOperation, operations, type RequestedFault } from './subject.ts'

/** What a money call must answer; `ok`: what it answers without a fault. */
export type Expected =
  | { kind: 'ok' }
  | { kind: 'not_sent'; causes: readonly string[] }
  | { kind: 'unknown'; causes: readonly string[] }
  /** Either is true: nothing is known to be over. */
  | { kind: 'open' }

export interface DriverFault {
  name: string
  /** What it happens to. */
  to: readonly DriverOperation[]
  wish?: Pick<RequestedFault, 'effect' | 'params' | 'times'> & { op?: RequestedFault['op'] }
  /** Plays without a wish. */
  without?: 'connection' | 'time' | 'token'
  /** The customer is not the operator's: nothing may be done. */
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
const answers = (effect: 'status' | 'html', status: number, when: 'before' | 'after') => ({
  effect,
  params: { status, when },
  ...once,
})

/** Twenty faults that any operation may meet. */
const everywhere: readonly Omit<DriverFault, 'to'>[] = [
  {
    name: 'nobody listens',
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
    wish: { effect: 'status', op: 'token' },
    expected: { kind: 'not_sent', causes: ['token'] },
  },
  { name: 'a token that is refused', wish: { effect: 'token_expired', ...once }, expected: ok },
  {
    name: 'too many requests',
    wish: { effect: 'rate_limit', params: { retry_after_s: 7 }, ...once },
    expected: { kind: 'not_sent', causes: ['rate_limited'] },
  },
  { name: 'cut off before', wish: { effect: 'close_before', ...once }, expected: lost },
  { name: 'cut off after', wish: { effect: 'close_after', ...once }, expected: lost },
  { name: 'silence', wish: { effect: 'hang', ...once }, expected: silent, callMs: patienceMs },
  {
    name: 'an answer too late',
    wish: { effect: 'delay', params: { ms: 60_000 }, ...once },
    expected: silent,
    callMs: patienceMs,
  },
  { name: '500 before', wish: answers('status', 500, 'before'), expected: failing },
  { name: '500 after', wish: answers('status', 500, 'after'), expected: failing },
  { name: '503 before', wish: answers('status', 503, 'before'), expected: failing },
  { name: '503 after', wish: answers('status', 503, 'after'), expected: failing },
  { name: "a gateway's 502 before", wish: answers('html', 502, 'before'), expected: failing },
  { name: "a gateway's 504 after", wish: answers('html', 504, 'after'), expected: failing },
  { name: "a portal's 200 before", wish: answers('html', 200, 'before'), expected: unreadable },
  { name: "a portal's 200 after", wish: answers('html', 200, 'after'), expected: unreadable },
  { name: "a gateway's 404 before", wish: answers('html', 404, 'before'), expected: unreadable },
  { name: 'garbage', wish: { effect: 'garbage', ...once }, expected: unreadable },
  { name: 'half an answer', wish: { effect: 'truncate', ...once }, expected: lost },
]

/** Faults of one operation or another. */
const somewhere: readonly DriverFault[] = [
  { name: 'no such wallet', to: ['collect', 'disburse'], refuses: true, expected: { kind: 'open' } },
  { name: 'done after the cut', to: money, wish: { effect: 'late_execution', ...once }, expected: lost },
  { name: 'repeats are done again', to: money, wish: { effect: 'no_dedupe' }, expected: ok },
  {
    name: 'a state unheard of',
    to: ['collect', 'disburse', 'query'],
    wish: { effect: 'unmapped_status', ...once },
    expected: { kind: 'open' },
  },
  {
    name: 'another amount is paid',
    to: ['collect', 'disburse'],
    wish: { effect: 'wrong_amount', params: { less: 100 } },
    expected: ok,
  },
  {
    name: 'more is paid than asked',
    to: ['collect', 'disburse'],
    wish: { effect: 'excess_amount', params: { more: 100 } },
    expected: ok,
  },
  {
    name: 'the operator takes it back',
    to: ['collect', 'disburse'],
    wish: { effect: 'reversal', params: { ms: 1_000 } },
    expected: ok,
  },
  {
    name: 'our float is empty',
    to: ['disburse'],
    wish: { effect: 'no_float', ...once },
    expected: { kind: 'not_sent', causes: ['float_empty'] },
  },
  { name: 'polls are used up', to: ['query'], wish: { effect: 'poll_limit', ...once }, expected: ok },
  {
    name: 'a link to elsewhere',
    to: ['query'],
    wish: { effect: 'link_foreign_origin', ...once },
    expected: { kind: 'open' },
  },
]

/** What may go wrong when the operator reports a collection by itself, and what its reports then say. */
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
  /** What each of them says, in order: a hint, or that it was rejected. */
  says: readonly string[]
  /** They are known to be one. */
  same?: boolean
}

/** What may be wrong in a statement: a driver tells it as it stands, and never a part of it as the whole. */
const statements: readonly StatementFault[] = [
  { name: 'its end is missing', effect: 'stmt_truncate', expects: 'unreachable' },
  { name: 'a line is missing', effect: 'stmt_drop', expects: { lines: -1 } },
  { name: 'a line is made up', effect: 'stmt_extra', expects: { lines: 1 } },
  { name: 'a line stands twice', effect: 'stmt_duplicate', expects: { lines: 1 } },
  { name: 'a line is of the next day', effect: 'stmt_next_day', expects: { lines: -1 } },
  { name: 'a line has another amount', effect: 'stmt_amount', expects: { amount: -100n } },
  { name: 'a line has another fee', effect: 'stmt_fee', expects: { fee: 1n } },
]
interface StatementFault {
  name: string
  effect: string
  /** Against the true one: lines more, or francs more in amounts or fees. */
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
      wish: { effect },
      expected: ok,
      report,
    }),
  ),
  ...statements.map(
    ({ name, effect, expects }): DriverFault => ({
      name,
      to: ['statement'],
      wish: { effect },
      expected: ok,
      statement: expects,
    }),
  ),
]
