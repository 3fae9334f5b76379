import { randomUUID } from 'node:crypto'
import type {
  CallContext,
  Evidence,
  OperatorExchange,
  InitiateOutcome,
  OperationKind,
  OperatorDriver,
  OperatorHandle,
  QueryOutcome,
  StatementOutcome,
} from '../../src/operators/operator.ts'
import type { Expected, DriverFault } from './faults.ts'
import type { OperatorFixture, DriverOperation, DriverUnderTest, ConformanceVerdict } from './subject.ts'

const amount = 5_000n
const roundsMax = 8
const roundMs = 3_000
const callMs = 10_000

/** One operation under one fault, at an operator of its own. */
export interface Trial {
  subject: DriverUnderTest
  fixture: OperatorFixture
  driver: OperatorDriver
  fault: DriverFault
}

/** Stops a play with what the driver did wrong. */
export class ContractViolation extends Error {}

export function must(holds: boolean, why: string): void {
  if (!holds) throw new ContractViolation(why)
}

/** A money call: its answer under the fault, then the way to the truth, and what the books say. */
export async function playMoney(trial: Trial, kind: OperationKind): Promise<ConformanceVerdict | null> {
  const { fixture, fault } = trial
  const original = kind === 'reverse' ? await paid(trial) : undefined
  const impossible = await wish(trial, kind)
  if (impossible) return impossible
  const call = newCall(trial, kind, original)
  const ctx = context(fault)
  const first = await call.send(requestsOf(trial), 1, ctx)
  const reached = await fixture.creations(call.handle.correlationId)
  checkAnswer(fault.expected, first)
  checkExchanges(trial, kind, ctx.exchanges, reached)

  if (fault.without === 'token') await fixture.heal()
  const truth = await resolve(trial, kind, call, first)
  await checkBook(trial, kind, call.handle, truth.evidence, original)
  if (fault.report) checkReports(trial, fault.report)
  return null
}

/**
 * Rule 3: a refusal of the first send is one, at once or when it is asked for; that of a later send says
 * nothing of the earlier ones.
 */
export async function playRefusal(trial: Trial, kind: 'collect' | 'disburse'): Promise<null> {
  const { fixture, driver } = trial
  const stranger = { ...trial, subject: { ...trial.subject, customer: trial.subject.stranger } }
  const call = newCall(stranger, kind)
  const first = await call.send(driver, 1, context())
  must(first.kind === 'refused' || first.kind === 'accepted', `it was ${words(first)}`)
  const handle = 'handle' in first ? first.handle : call.handle
  await fixture.advance(roundMs)
  const then = first.kind === 'refused' ? first : await driver.query(kind, handle, context())
  must(then.kind === 'refused', `asked for, it was ${words(then)}`)
  if (then.kind === 'refused') must(then.refusal.reason.endsWith('_NOT_FOUND'), then.refusal.reason)
  must((await fixture.executions(handle.clientRef)).count === 0, 'it was done all the same')

  const resent = await newCall(stranger, kind).send(driver, 2, context())
  must(resent.kind !== 'refused', 'the refusal of a resend was taken for a proof')
  return null
}

/** A question about a payment that was made: under the fault nothing is learnt, afterwards the truth. */
export async function playQuery(trial: Trial): Promise<ConformanceVerdict | null> {
  const { fixture, driver, fault } = trial
  const handle = await paid(trial)
  const impossible = await wish(trial, 'query')
  if (impossible) return impossible
  const before = await fixture.creations(handle.correlationId)
  const ctx = context(fault)
  const asked = await requestsOf(trial).query('collect', handle, ctx)
  if (fault.expected.kind === 'ok' && fault.wish?.effect === 'token_expired')
    must(asked.kind === 'settled', `a fresh token was not tried: ${words(asked)}`)
  else if (fault.expected.kind === 'open')
    must(
      ['pending', 'unreachable', 'settled'].includes(asked.kind),
      `an unknown state became ${words(asked)}`,
    )
  else must(asked.kind === 'unreachable', `no answer became ${words(asked)}`)
  checkSecrets(trial, ctx.exchanges)

  await fixture.heal()
  const then = await driver.query('collect', handle, context())
  must(then.kind === 'settled' && then.evidence.amount === amount, `afterwards: ${words(then)}`)
  must((await fixture.creations(handle.correlationId)) === before, 'a question made a payment')
  return null
}

/** The statement of a day with three movements: whole, or not at all. */
export async function playStatement(trial: Trial): Promise<ConformanceVerdict | null> {
  const { fixture, driver, fault } = trial
  const { capabilities } = driver
  if (capabilities.statement === 'none') return { kind: 'not offered', what: 'statement' }
  await settle(trial, 'collect')
  const { clientRef } = await settle(trial, 'disburse')
  await settle(trial, 'collect')
  const day = new Date().toISOString().slice(0, 10)
  const whole = await driver.statement(day, context())
  must(whole.kind === 'statement', `without a fault: ${words(whole)}`)
  const impossible = await wish(trial, 'statement', fault.statement === undefined ? undefined : clientRef)
  if (impossible) return impossible
  const ctx = context(fault)
  const read = await requestsOf(trial).statement(day, ctx)
  checkSecrets(trial, ctx.exchanges)
  if (fault.statement !== undefined) checkLines(whole, read, fault.statement)
  else if (fault.wish?.effect === 'token_expired')
    must(read.kind === 'statement', 'a fresh token was not tried')
  else must(read.kind === 'unreachable', `no answer became ${words(read)}`)

  await fixture.heal()
  const again = await driver.statement(day, context())
  must(
    again.kind === 'statement' && whole.kind === 'statement' && again.lines.length === whole.lines.length,
    `afterwards: ${words(again)}`,
  )
  return null
}

/** A money call that can be sent again under the same identity. */
interface MoneyCall {
  handle: OperatorHandle
  send(driver: OperatorDriver, attempt: number, ctx: CallContext): Promise<InitiateOutcome>
}

function newCall({ subject, fixture }: Trial, kind: OperationKind, original?: OperatorHandle): MoneyCall {
  const handle: OperatorHandle = { correlationId: randomUUID(), clientRef: randomUUID() }
  const same = { handle, amount, callbackUrl: fixture.driver.callbackUrl('17') }
  const { customer } = subject
  const pages = { successUrl: 'https://shop.test/yes', cancelUrl: 'https://shop.test/no' }
  return {
    handle,
    send(driver, attempt, ctx) {
      const request = { ...same, attempt }
      if (kind === 'collect') return driver.collect({ ...request, ...pages, payer: customer }, ctx)
      if (kind === 'disburse') return driver.disburse({ ...request, payee: customer }, ctx)
      return driver.reverse({ ...request, original: original ?? handle }, ctx)
    },
  }
}

/** A collection that is through, without any fault. @returns its handle, with the operator's names */
function paid(trial: Trial): Promise<OperatorHandle> {
  return settle(trial, 'collect')
}

async function settle(trial: Trial, kind: 'collect' | 'disburse'): Promise<OperatorHandle> {
  const call = newCall(trial, kind)
  const first = await call.send(trial.driver, 1, context())
  must(first.kind === 'accepted' || first.kind === 'settled', `without a fault: ${words(first)}`)
  const { evidence, handle } = await resolve(trial, kind, call, first)
  return { ...handle, operatorRef: evidence.operatorRef }
}

/**
 * Asks until it is known, and sends again what the operator has no record of, where it may be: the policy of
 * the service.
 */
async function resolve(
  { fixture, driver }: Trial,
  kind: OperationKind,
  call: MoneyCall,
  first: InitiateOutcome,
): Promise<{ evidence: Evidence; handle: OperatorHandle }> {
  let outcome: InitiateOutcome | QueryOutcome = first
  let handle = call.handle
  for (let round = 1; round <= roundsMax; round++) {
    if ('handle' in outcome) handle = { ...handle, ...defined(outcome.handle) }
    if (outcome.kind === 'settled') return { evidence: outcome.evidence, handle }
    must(outcome.kind !== 'refused', `a payment that goes on was ${words(outcome)}`)
    const nothingLeft = outcome.kind === 'not_sent'
    if (nothingLeft || (outcome.kind === 'absent' && driver.capabilities.createIsIdempotent)) {
      outcome = await call.send(driver, nothingLeft ? 1 : 1 + round, context())
      continue
    }
    await fixture.advance(roundMs)
    outcome = await driver.query(kind, handle, context())
    if (outcome.kind === 'reversed') return { evidence: outcome.evidence, handle }
  }
  throw new ContractViolation(`never known: ${words(outcome)}`)
}

function defined(handle: OperatorHandle): Partial<OperatorHandle> {
  return Object.fromEntries(Object.entries(handle).filter(([, value]) => value !== undefined))
}

/** Rule 3: what nobody answered is never refused. */
function checkAnswer(expected: Expected, outcome: InitiateOutcome): void {
  const seen = 'cause' in outcome ? outcome.cause : ''
  if (expected.kind === 'not_sent') {
    const fits = outcome.kind === 'not_sent' && expected.causes.includes(seen)
    must(fits, `expected not_sent (${expected.causes.join(', ')}), got ${words(outcome)}`)
    if (seen === 'rate_limited')
      must('retryAfterMs' in outcome && outcome.retryAfterMs === 7_000, 'Retry-After was not passed on')
  } else if (expected.kind === 'unknown') {
    // A driver that asks by itself may know already: the book tells whether that is true.
    const fits =
      outcome.kind === 'settled' ||
      (outcome.kind === 'unknown' && [...expected.causes, 'unmapped'].includes(seen))
    must(fits, `expected unknown (${expected.causes.join(', ')}), got ${words(outcome)}`)
  } else {
    const kinds = expected.kind === 'ok' ? ['accepted', 'settled'] : ['accepted', 'unknown']
    must(kinds.includes(outcome.kind), `expected ${kinds.join(' or ')}, got ${words(outcome)}`)
  }
}

/** Rules 2 and 4: sent once, by our record and by the operator's, and without a secret in it. */
function checkExchanges(
  trial: Trial,
  kind: string,
  exchanges: readonly OperatorExchange[],
  reached: number,
): void {
  const { without, wish: asked } = trial.fault
  const recorded = exchanges.filter(({ operation }) => operation === kind).length
  const withNewToken = asked?.effect === 'token_expired' ? 1 : 0
  const held = without === 'token' || without === 'time'
  const most = held ? 0 : 1 + withNewToken
  const least = without === 'connection' ? 0 : most
  must(recorded >= least && recorded <= most, `${recorded} exchanges are on record, ${most} were due`)
  // An answer that is held back is written down by the operator only when it leaves.
  must(reached <= most, `it was sent ${reached} times`)
  checkSecrets(trial, exchanges)
}

function checkSecrets({ subject }: Trial, exchanges: readonly OperatorExchange[]): void {
  must(!subject.secrets.test(JSON.stringify(exchanges)), 'a secret is on record')
  // Whoever signs in shows a secret and gets one, whatever their fields are called.
  const signIns = exchanges.filter(({ operation }) => operation === 'token')
  const clear = signIns.filter((each) => !/^(\[secret\])*$/.test(each.requestBody + each.responseBody))
  must(clear.length === 0, 'what was said at the sign-in is on record')
}

/** Rule 5, and the books: done once, for what the operator says. */
async function checkBook(
  { fixture, fault }: Trial,
  kind: OperationKind,
  handle: OperatorHandle,
  evidence: Evidence,
  original: OperatorHandle | undefined,
): Promise<void> {
  const book = await fixture.executions((original ?? handle).clientRef)
  const otherwise: Record<string, bigint> = { wrong_amount: -100n, excess_amount: 100n }
  const francs = amount + (otherwise[fault.wish?.effect ?? ''] ?? 0n)
  must(book.count === 1, `the operator's book has it ${book.count} times`)
  must(book.amount === francs, `the operator's book has ${book.amount} francs`)
  if (fault.wish?.effect !== 'reversal') {
    const back = kind === 'reverse' ? amount : 0n
    must(book.reversed === back, `${book.reversed} francs were given back`)
  }
  must(evidence.amount === francs, `the evidence says ${evidence.amount} francs`)
  must(/^[0-9a-f]{64}$/.test(evidence.digest), 'the evidence has no digest')
  must(evidence.operatorRef !== '', 'the evidence names nothing')
  const problems = await fixture.problems()
  must(problems.length === 0, problems.join('; '))
}

/** A report is a hint at most; one that is forged is none. */
function checkReports({ driver, fixture }: Trial, expected: NonNullable<DriverFault['report']>): void {
  const outcomes = fixture.callbacks.map((raw) => driver.parseCallback(raw))
  const said = outcomes.map((outcome) => (outcome.kind === 'hint' ? outcome.says : outcome.kind))
  must(said.join() === expected.says.join(), `the reports said: ${said.join(', ') || 'nothing'}`)
  const keys = new Set(outcomes.map((outcome) => (outcome.kind === 'hint' ? outcome.dedupeKey : '')))
  if (expected.same) must(keys.size === 1, 'a report that came twice counts twice')
}

function checkLines(
  whole: StatementOutcome,
  read: StatementOutcome,
  expected: NonNullable<DriverFault['statement']>,
): void {
  if (expected === 'unreachable')
    return must(read.kind === 'unreachable', `a part was read as ${words(read)}`)
  if (whole.kind !== 'statement' || read.kind !== 'statement')
    throw new ContractViolation(`it was ${words(read)}`)
  const sum = (lines: typeof read.lines, field: 'amount' | 'fee') =>
    lines.reduce((total, line) => total + line[field], 0n)
  const more = read.lines.length - whole.lines.length
  must(more === (expected.lines ?? 0), `${more} lines more`)
  for (const field of ['amount', 'fee'] as const) {
    const francs = sum(read.lines, field) - sum(whole.lines, field)
    const due = expected[field]
    if (due !== undefined) must(francs === due, `${francs} francs more in the column ${field}`)
  }
}

/** Puts the fault in force, where it needs the operator. */
async function wish(
  trial: Trial,
  operation: DriverOperation,
  clientRef?: string,
): Promise<ConformanceVerdict | null> {
  const { subject, fixture, fault } = trial
  if (fault.without === 'token' && !subject.signsIn)
    return { kind: 'impossible', why: 'it shows a key with each call' }
  if (!fault.wish) return null
  const why = await fixture.wish({ op: operation, ...fault.wish, ...(clientRef && { clientRef }) })
  return why === null ? null : { kind: 'impossible', why }
}

function requestsOf({ fixture, driver, fault }: Trial): OperatorDriver {
  if (fault.without === 'connection') return fixture.unreachable
  return fault.without === 'token' ? fixture.fresh : driver
}

function context(fault?: DriverFault): CallContext & { exchanges: OperatorExchange[] } {
  const exchanges: OperatorExchange[] = []
  const ms = fault?.without === 'time' ? 450 : (fault?.callMs ?? callMs)
  return {
    deadline: new Date(Date.now() + ms),
    priority: 'interactive',
    record: (exchange) => exchanges.push(exchange),
    exchanges,
  }
}

/** What a driver answered, in a few words. */
function words(outcome: { kind: string; cause?: string } | QueryOutcome | InitiateOutcome): string {
  return 'cause' in outcome && outcome.cause !== undefined ? `${outcome.kind}/${outcome.cause}` : outcome.kind
}
