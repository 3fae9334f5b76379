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
const callMs = 60_000

/** One operation under one fault, at an operator of its own. */
export interface Trial {
  subject: DriverUnderTest
  fixture: OperatorFixture
  driver: OperatorDriver
  fault: DriverFault
}

/** Stops a trial with a sentence about the error of the driver. */
export class ContractViolation extends Error {}

export function must(holds: boolean, why: string): void {
  if (!holds) throw new ContractViolation(why)
}

/**
 * Plays a money call: checks its answer under the fault, finds the truth, and compares it with the operator's
 * books.
 */
export async function playMoney(trial: Trial, kind: OperationKind): Promise<ConformanceVerdict | null> {
  const { fixture, fault } = trial
  const original = kind === 'reverse' ? await paid(trial) : undefined
  const impossible = await putInForce(trial, kind)
  if (impossible) return impossible
  const call = newCall(trial, kind, original)
  const ctx = context(fault)
  const first = await call.send(requestsOf(trial), 1, ctx)
  const reached = await fixture.creations(call.handle.correlationId)
  checkAnswer(fault.expected, first)
  checkExchanges(trial, kind, ctx.exchanges, reached)

  if (fault.without === 'token') await fixture.endFaults()
  const truth = await resolve(trial, kind, call, first)
  await checkBook(trial, kind, call.handle, truth.evidence, original)
  if (fault.report) checkReports(trial, fault.report)
  return null
}

/**
 * Plays a call that the operator refuses. Rule 3: a refusal of the first send is final, at once or in an
 * answer to a query; a refusal of a later send says nothing about the earlier ones.
 */
export async function playRefusal(trial: Trial, kind: 'collect' | 'disburse'): Promise<null> {
  const { fixture, driver } = trial
  const stranger = { ...trial, subject: { ...trial.subject, customer: trial.subject.stranger } }
  const call = newCall(stranger, kind)
  const first = await call.send(driver, 1, context())
  must(first.kind === 'refused' || first.kind === 'accepted', `it was ${outcomeInWords(first)}`)
  const handle = 'handle' in first ? first.handle : call.handle
  await fixture.advance(roundMs)
  const then = first.kind === 'refused' ? first : await driver.query(kind, handle, context())
  must(then.kind === 'refused', `asked for, it was ${outcomeInWords(then)}`)
  if (then.kind === 'refused') must(then.refusal.reason.endsWith('_NOT_FOUND'), then.refusal.reason)
  must((await fixture.executions(handle.clientRef)).count === 0, 'it was done all the same')

  const resent = await newCall(stranger, kind).send(driver, 2, context())
  must(resent.kind !== 'refused', 'the refusal of a resend was taken for the outcome')
  return null
}

/** Plays a query about a paid payment: under the fault it gives no outcome, afterwards the truth. */
export async function playQuery(trial: Trial): Promise<ConformanceVerdict | null> {
  const { fixture, driver, fault } = trial
  const handle = await paid(trial)
  const impossible = await putInForce(trial, 'query')
  if (impossible) return impossible
  const before = await fixture.creations(handle.correlationId)
  const ctx = context(fault)
  const asked = await requestsOf(trial).query('collect', handle, ctx)
  if (fault.expected.kind === 'ok' && fault.requestedFault?.effect === 'token_expired')
    must(asked.kind === 'settled', `a fresh token was not tried: ${outcomeInWords(asked)}`)
  else if (fault.expected.kind === 'open')
    must(
      ['pending', 'unreachable', 'settled'].includes(asked.kind),
      `an unknown state became ${outcomeInWords(asked)}`,
    )
  else must(asked.kind === 'unreachable', `no answer became ${outcomeInWords(asked)}`)
  checkSecrets(trial, ctx.exchanges)

  await fixture.endFaults()
  const then = await driver.query('collect', handle, context())
  must(then.kind === 'settled' && then.evidence.amount === amount, `afterwards: ${outcomeInWords(then)}`)
  must((await fixture.creations(handle.correlationId)) === before, 'a question made a payment')
  return null
}

/** Plays the statement of a day with three movements: the driver gives all of it, or nothing. */
export async function playStatement(trial: Trial): Promise<ConformanceVerdict | null> {
  const { fixture, driver, fault } = trial
  const { capabilities } = driver
  if (capabilities.statement === 'none') return { kind: 'not offered', what: 'statement' }
  await settle(trial, 'collect')
  const { clientRef } = await settle(trial, 'disburse')
  await settle(trial, 'collect')
  const day = new Date().toISOString().slice(0, 10)
  const whole = await driver.statement(day, context())
  must(whole.kind === 'statement', `without a fault: ${outcomeInWords(whole)}`)
  const impossible = await putInForce(
    trial,
    'statement',
    fault.statement === undefined ? undefined : clientRef,
  )
  if (impossible) return impossible
  const ctx = context(fault)
  const read = await requestsOf(trial).statement(day, ctx)
  checkSecrets(trial, ctx.exchanges)
  if (fault.statement !== undefined) checkLines(whole, read, fault.statement)
  else if (fault.requestedFault?.effect === 'token_expired')
    must(read.kind === 'statement', 'a fresh token was not tried')
  else must(read.kind === 'unreachable', `no answer became ${outcomeInWords(read)}`)

  await fixture.endFaults()
  const again = await driver.statement(day, context())
  must(
    again.kind === 'statement' && whole.kind === 'statement' && again.lines.length === whole.lines.length,
    `afterwards: ${outcomeInWords(again)}`,
  )
  return null
}

/** A money call that can be repeated under the same identity. */
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

/** Makes a collection without any fault. @returns its handle, with the operator's names */
function paid(trial: Trial): Promise<OperatorHandle> {
  return settle(trial, 'collect')
}

async function settle(trial: Trial, kind: 'collect' | 'disburse'): Promise<OperatorHandle> {
  const call = newCall(trial, kind)
  const first = await call.send(trial.driver, 1, context())
  must(first.kind === 'accepted' || first.kind === 'settled', `without a fault: ${outcomeInWords(first)}`)
  const { evidence, handle } = await resolve(trial, kind, call, first)
  return { ...handle, operatorRef: evidence.operatorRef }
}

/**
 * Finds the outcome by the policy of the service: queries until it is known, and sends again where the
 * operator has no record and the protocol recognises repetitions.
 */
async function resolve(
  { subject, fixture, driver }: Trial,
  kind: OperationKind,
  call: MoneyCall,
  first: InitiateOutcome,
): Promise<{ evidence: Evidence; handle: OperatorHandle }> {
  let outcome: InitiateOutcome | QueryOutcome = first
  let handle = call.handle
  for (let round = 1; round <= roundsMax; round++) {
    if ('handle' in outcome) handle = { ...handle, ...defined(outcome.handle) }
    if (outcome.kind === 'settled') return { evidence: outcome.evidence, handle }
    must(outcome.kind !== 'refused', `a payment that goes on was ${outcomeInWords(outcome)}`)
    const nothingLeft = outcome.kind === 'not_sent'
    if (nothingLeft || (outcome.kind === 'absent' && driver.capabilities.createIsIdempotent)) {
      outcome = await call.send(driver, nothingLeft ? 1 : 1 + round, context())
      continue
    }
    await fixture.advance(roundMs)
    const payee = kind === 'disburse' ? subject.customer : undefined
    outcome = await driver.query(kind, { ...handle, payee }, context())
    if (outcome.kind === 'reversed') return { evidence: outcome.evidence, handle }
  }
  throw new ContractViolation(`never known: ${outcomeInWords(outcome)}`)
}

function defined(handle: OperatorHandle): Partial<OperatorHandle> {
  return Object.fromEntries(Object.entries(handle).filter(([, value]) => value !== undefined))
}

/** Rule 3: a call without an answer is never refused. */
function checkAnswer(expected: Expected, outcome: InitiateOutcome): void {
  const seen = 'cause' in outcome ? outcome.cause : ''
  if (expected.kind === 'not_sent') {
    const fits = outcome.kind === 'not_sent' && expected.causes.includes(seen)
    must(fits, `expected not_sent (${expected.causes.join(', ')}), got ${outcomeInWords(outcome)}`)
    if (seen === 'rate_limited')
      must('retryAfterMs' in outcome && outcome.retryAfterMs === 7_000, 'Retry-After was not passed on')
  } else if (expected.kind === 'unknown') {
    // A driver may ask by itself and know already: the book tells whether that is true.
    const fits =
      outcome.kind === 'settled' ||
      (outcome.kind === 'unknown' && [...expected.causes, 'unmapped'].includes(seen))
    must(fits, `expected unknown (${expected.causes.join(', ')}), got ${outcomeInWords(outcome)}`)
  } else {
    const kinds = expected.kind === 'ok' ? ['accepted', 'settled'] : ['accepted', 'unknown']
    must(kinds.includes(outcome.kind), `expected ${kinds.join(' or ')}, got ${outcomeInWords(outcome)}`)
  }
}

/** Rules 2 and 4: sent once, by our record and by the operator's, and recorded without a secret. */
function checkExchanges(
  trial: Trial,
  kind: string,
  exchanges: readonly OperatorExchange[],
  reached: number,
): void {
  const { without, requestedFault } = trial.fault
  const recorded = exchanges.filter(({ operation }) => operation === kind).length
  const withNewToken = requestedFault?.effect === 'token_expired' ? 1 : 0
  const isNothingSent = without === 'token' || without === 'time'
  const most = isNothingSent ? 0 : 1 + withNewToken
  const least = without === 'connection' ? 0 : most
  must(recorded >= least && recorded <= most, `${recorded} exchanges are on record, ${most} were due`)
  // The operator records a delayed answer only when the answer leaves.
  must(reached <= most, `it was sent ${reached} times`)
  checkSecrets(trial, exchanges)
}

function checkSecrets({ subject }: Trial, exchanges: readonly OperatorExchange[]): void {
  must(!subject.secrets.test(JSON.stringify(exchanges)), 'a secret is on record')
  // A sign-in sends a secret and receives one, under any field names: its bodies must be hidden.
  const signIns = exchanges.filter(({ operation }) => operation === 'token')
  const clear = signIns.filter((each) => !/^(\[secret\])*$/.test(each.requestBody + each.responseBody))
  must(clear.length === 0, 'the bodies of the sign-in are on record')
}

/** Rule 5, and the books: executed once, for the amount that the operator reports. */
async function checkBook(
  { fixture, fault }: Trial,
  kind: OperationKind,
  handle: OperatorHandle,
  evidence: Evidence,
  original: OperatorHandle | undefined,
): Promise<void> {
  const book = await fixture.executions((original ?? handle).clientRef)
  const otherwise: Record<string, bigint> = { wrong_amount: -100n, excess_amount: 100n }
  const francs = amount + (otherwise[fault.requestedFault?.effect ?? ''] ?? 0n)
  must(book.count === 1, `the operator's book has it ${book.count} times`)
  must(book.amount === francs, `the operator's book has ${book.amount} francs`)
  if (fault.requestedFault?.effect !== 'reversal') {
    const back = kind === 'reverse' ? amount : 0n
    must(book.reversed === back, `${book.reversed} francs were given back`)
  }
  must(evidence.amount === francs, `the evidence says ${evidence.amount} francs`)
  must(/^[0-9a-f]{64}$/.test(evidence.digest), 'the evidence has no digest')
  must(evidence.operatorRef !== '', 'the evidence names nothing')
  const problems = await fixture.problems()
  must(problems.length === 0, problems.join('; '))
}

/** A report is a hint at most; a forged one is rejected. */
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
    return must(read.kind === 'unreachable', `a part was read as ${outcomeInWords(read)}`)
  if (whole.kind !== 'statement' || read.kind !== 'statement')
    throw new ContractViolation(`it was ${outcomeInWords(read)}`)
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

/** Puts the fault in force. @returns the verdict where it cannot happen at this operator, else null */
async function putInForce(
  trial: Trial,
  operation: DriverOperation,
  clientRef?: string,
): Promise<ConformanceVerdict | null> {
  const { subject, fixture, fault } = trial
  if (fault.without === 'token' && !subject.signsIn)
    return { kind: 'impossible', why: 'it shows a key with each call' }
  if (!fault.requestedFault) return null
  const why = await fixture.putInForce({
    op: operation,
    ...fault.requestedFault,
    ...(clientRef && { clientRef }),
  })
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

/** Describes the outcome that a driver returned. */
function outcomeInWords(outcome: { kind: string; cause?: string } | QueryOutcome | InitiateOutcome): string {
  return 'cause' in outcome && outcome.cause !== undefined ? `${outcome.kind}/${outcome.cause}` : outcome.kind
}
