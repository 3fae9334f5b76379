import type { OperationInput, Plan } from './behaviour.ts'
import { planOperation } from './behaviour.ts'
import { fees, pool, wallet } from './book.ts'
import type { SimulatorClock } from './clock.ts'
import { sha256 } from './credentials.ts'
import { factsAbout } from './facts.ts'
import type {
  OperationChange,
  CallbackNotice,
  SimulatedOperation,
  OperatorKey,
  Transfer,
  Reason,
} from './model.ts'
import { operatorKeys } from './model.ts'
import { feeFor, operators } from './operators.ts'
import type { Played, Rules } from './rules.ts'
import { partOf } from './scenarios.ts'
import type { Store } from './store.ts'

/** An operation as a protocol passes it to the engine. */
export interface Intent extends OperationInput {
  readonly id?: string
  readonly correlationId: string
  readonly clientReference: string
  readonly bodyHash?: string
  readonly amount: bigint
  readonly description: string
  readonly callbackUrl: string | null
  readonly originalId?: string
  readonly page?: SimulatedOperation['page']
}

/**
 * The longest time for which a synchronous operator lets a caller wait. If the decision will take longer, the
 * answer is "pending" at once.
 */
const answerWaitMaxMs = 10_000
const wrongPinsMax = 3
const rightPin = '0000'

const receiptPrefix = { collect: 'MP', disburse: 'CI', reverse: 'RV' } as const

/** The function that returns the callbacks of an operator about the new state of an operation. */
export type Announce = (operation: SimulatedOperation, at: number) => CallbackNotice[]

/**
 * The engine of all protocols: it opens, decides and reverses operations. Each change of an operation is one
 * commit.
 */
export class SimulatorEngine {
  readonly #store: Store
  readonly #clock: SimulatorClock
  readonly #seed: string
  readonly #rules: Rules
  readonly #announce: Announce
  readonly #waiting = new Map<string, (() => void)[]>()

  constructor(store: Store, clock: SimulatorClock, seed: string, rules: Rules, announce: Announce) {
    this.#store = store
    this.#clock = clock
    this.#seed = seed
    this.#rules = rules
    this.#announce = announce
    store.onChange((change) => this.#follow(change))
  }

  /** Opens the account of our float at each operator that has none. */
  openBooks(): void {
    const at = this.#clock.now()
    const entries = operatorKeys.flatMap((operator) => this.#store.book.opening(operator, pool, at))
    this.#store.commit(entries.map((entry) => ({ entry })))
  }

  /** Receives an operation: it is refused or executed at once, or stays pending. */
  open(intent: Intent): SimulatedOperation {
    const plan = planOperation(intent)
    const operation = this.#draft(intent, plan)
    const { due } = operation
    if (plan.refuseNow) return this.#refuse(operation, plan.refuseNow, 'answered')
    if (intent.mode === 'synchronous' && due && plan.due?.afterMs === 0) return this.#act(operation)
    const { operator, msisdn } = operation
    const opening = msisdn ? this.#store.book.opening(operator, wallet(msisdn), operation.createdAt) : []
    this.#store.commit([{ operation }, ...opening.map((entry) => ({ entry }))])
    return operation
  }

  /** Confirms an operation for the customer. @returns the operation afterwards */
  confirm(operation: SimulatedOperation): SimulatedOperation {
    return operation.state === 'pending' ? this.#settle(operation) : operation
  }

  /** Refuses an operation for the customer, the operator or the merchant. */
  refuse(operation: SimulatedOperation, reason: Reason): SimulatedOperation {
    return operation.state === 'pending' ? this.#refuse(operation, reason) : operation
  }

  /**
   * Takes a payment back on the operator's own decision, and announces the reversal. Nothing is taken if the
   * account that received the money has too little of it left.
   * @returns the payment afterwards
   */
  takeBack(original: SimulatedOperation): SimulatedOperation {
    const left = BigInt(original.amount) - BigInt(original.reversedAmount)
    if (!isReversible(original, left)) return original
    const { operator, msisdn } = original
    const plan = planOperation({ operator, kind: 'reverse', msisdn, mode: 'synchronous' })
    const intent: Intent = {
      operator,
      kind: 'reverse',
      mode: 'synchronous',
      correlationId: '',
      clientReference: '',
      msisdn,
      amount: left,
      description: '',
      callbackUrl: null,
      originalId: original.id,
    }
    this.#settle(this.#draft(intent, plan), 'told of the original')
    return this.#store.operation(original.id) ?? original
  }

  /** Takes a PIN that a person enters on the telephone; the third wrong one ends the operation. */
  enterPin(operation: SimulatedOperation, pin: string): SimulatedOperation {
    if (operation.state !== 'pending') return operation
    if (pin === rightPin) return this.#settle(operation)
    const pinFailures = operation.pinFailures + 1
    if (pinFailures >= wrongPinsMax) return this.#refuse({ ...operation, pinFailures }, 'wrongPin')
    return this.#put({ ...operation, pinFailures })
  }

  /**
   * Pays an open checkout session from a telephone. A failure leaves the session open for another try, until
   * it expires.
   */
  payCheckout(session: SimulatedOperation, msisdn: string, pin: string): SimulatedOperation {
    if (session.state !== 'pending') return session
    const { act } = partOf(msisdn)
    if (act.does === 'refuse' || act.does === 'refuseAtOnce') return this.#failAttempt(session, act.reason)
    if (pin === rightPin) return this.#settle({ ...session, msisdn })
    const pinFailures = session.pinFailures + 1
    if (pinFailures < wrongPinsMax) return this.#put({ ...session, pinFailures })
    return this.#failAttempt({ ...session, pinFailures: 0 }, 'wrongPin')
  }

  /** Waits until an operation is decided, at most `answerWaitMaxMs`. */
  whenDecided(id: string): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, answerWaitMaxMs)
      timer.unref()
      const waiting = this.#waiting.get(id) ?? []
      this.#waiting.set(id, waiting)
      waiting.push(() => {
        clearTimeout(timer)
        resolve()
      })
    })
  }

  /** Ends the wait of all callers. */
  close(): void {
    for (const waiting of this.#waiting.values()) for (const resume of waiting) resume()
    this.#waiting.clear()
  }

  /**
   * True if the operation is decided soon enough for a caller to wait: within `answerWaitMaxMs` after its
   * arrival.
   */
  waitsFor(operation: SimulatedOperation): boolean {
    return operation.due !== null && operation.due.at - operation.createdAt <= answerWaitMaxMs
  }

  #follow(change: OperationChange): void {
    if ('reset' in change) {
      this.#clock.clearAll()
      this.close()
    }
    if (!('operation' in change)) return
    const { operation } = change
    if (operation.due && (operation.state === 'pending' || operation.due.act === 'reverse')) {
      this.#clock.set(`operation:${operation.id}`, operation.due.at, () => this.#comeDue(operation.id))
    } else this.#clock.clear(`operation:${operation.id}`)
    if (operation.state === 'pending') return
    const waiting = this.#waiting.get(operation.id) ?? []
    this.#waiting.delete(operation.id)
    for (const resume of waiting) resume()
  }

  #comeDue(id: string): void {
    const operation = this.#store.operation(id)
    if (operation?.state === 'pending' && operation.due) this.#act(operation)
    else if (operation?.due?.act === 'reverse') this.takeBack(operation)
  }

  #act(operation: SimulatedOperation): SimulatedOperation {
    const { due } = operation
    if (due?.act === 'confirm') return this.#settle(operation)
    return this.#refuse(operation, due?.reason ?? 'expired')
  }

  #settle(asked: SimulatedOperation, announced?: 'told of the original'): SimulatedOperation {
    const at = this.#clock.now()
    const operation = {
      ...asked,
      ...movedOtherwise(asked, this.#rules.play('settle', factsAbout(asked)), at),
    }
    const { operator, kind, amount } = operation
    const original = operation.originalId ? this.#store.operation(operation.originalId) : undefined
    if (kind === 'reverse' && !(original && isReversible(original, BigInt(amount)))) {
      return this.#refuse(operation, 'notReversible')
    }
    const posting = {
      operator,
      at,
      type: kind,
      operationId: operation.id,
      transfers: transfersOf(operation, original),
    }
    // The money of a disbursement may be spent by now: a reversal takes only money that is there.
    const entries = this.#store.book.prepare(posting, kind === 'reverse' ? 'refuse' : 'cover')
    if (!entries) return this.#refuse(operation, 'insufficientFunds')
    const decided = { changedAt: at, settledAt: at, lastError: null }
    const settled: SimulatedOperation = { ...operation, ...decided, state: 'completed' }
    const given = original && givenBack(original, BigInt(amount), at)
    this.#store.commit([
      { operation: settled },
      ...entries.map((entry) => ({ entry })),
      ...(given ? [{ operation: given }] : []),
      ...this.#announce(given && announced ? given : settled, at).map((note) => ({ note })),
    ])
    return settled
  }

  /** @param announced `answered`: the caller reads the refusal in the answer, so no callback is sent */
  #refuse(
    operation: SimulatedOperation,
    reason: Reason,
    announced: 'answered' | 'by note' = 'by note',
  ): SimulatedOperation {
    const at = this.#clock.now()
    const refused: SimulatedOperation = {
      ...operation,
      state: 'failed',
      refusal: reason,
      changedAt: at,
      due: null,
    }
    const notes = announced === 'answered' ? [] : this.#announce(refused, at)
    this.#store.commit([{ operation: refused }, ...notes.map((note) => ({ note }))])
    return refused
  }

  #failAttempt(session: SimulatedOperation, reason: Reason): SimulatedOperation {
    const at = this.#clock.now()
    const failed: SimulatedOperation = { ...session, lastError: reason, changedAt: at }
    this.#store.commit([{ operation: failed }, ...this.#announce(failed, at).map((note) => ({ note }))])
    return failed
  }

  #put(operation: SimulatedOperation): SimulatedOperation {
    const changed = { ...operation, changedAt: this.#clock.now() }
    this.#store.commit([{ operation: changed }])
    return changed
  }

  #draft(intent: Intent, plan: Plan): SimulatedOperation {
    const at = this.#clock.now()
    const number = this.#store.count + 1
    const reference = receipt(intent.kind, intent.operator, at, number)
    const profile = operators[intent.operator]
    const fee = intent.kind === 'reverse' ? 0n : feeFor(profile, intent.kind, intent.amount)
    const isSynchronous =
      intent.mode === 'synchronous' && plan.due !== null && plan.due.afterMs <= answerWaitMaxMs
    return {
      id: intent.id ?? reference,
      operator: intent.operator,
      kind: intent.kind,
      state: 'pending',
      reference,
      correlationId: intent.correlationId,
      serverCorrelationId: uuidFrom(`${this.#seed}:${reference}`),
      clientReference: intent.clientReference,
      bodyHash: intent.bodyHash ?? '',
      msisdn: intent.msisdn,
      amount: String(intent.amount),
      fee: String(fee),
      description: intent.description,
      // A caller that gets the outcome as its answer gets no callback.
      callbackUrl: isSynchronous ? null : intent.callbackUrl,
      scenario: plan.scenario,
      createdAt: at,
      changedAt: at,
      settledAt: null,
      expiresAt: plan.expiresAfterMs === null ? null : at + plan.expiresAfterMs,
      due: plan.due && { at: at + plan.due.afterMs, act: plan.due.act, reason: plan.due.reason },
      refusal: null,
      lastError: null,
      pinFailures: 0,
      originalId: intent.originalId ?? null,
      reversedAmount: '0',
      page: intent.page ?? null,
    }
  }
}

/** Whether this amount of a settled operation can still be given back. */
export function isReversible(original: SimulatedOperation, amount: bigint): boolean {
  if (original.kind === 'reverse' || original.state !== 'completed') return false
  return BigInt(original.reversedAmount) + amount <= BigInt(original.amount)
}

/** Returns the effects of faults when money moves: another amount, or a later reversal. */
function movedOtherwise(
  { amount }: SimulatedOperation,
  played: readonly Played[],
  at: number,
): Pick<SimulatedOperation, 'amount' | 'due'> {
  let [francs, due]: [bigint, SimulatedOperation['due']] = [BigInt(amount), null]
  for (const { effect, params } of played) {
    if (effect === 'wrong_amount') francs -= BigInt(params['less'] ?? 0)
    if (effect === 'excess_amount') francs += BigInt(params['more'] ?? 0)
    if (effect === 'reversal') due = { at: at + (params['ms'] ?? 0), act: 'reverse', reason: null }
  }
  return { amount: String(francs < 1n ? 1n : francs), due }
}

function givenBack(original: SimulatedOperation, amount: bigint, at: number): SimulatedOperation {
  const reversed = BigInt(original.reversedAmount) + amount
  const state = reversed === BigInt(original.amount) ? 'reversed' : 'completed'
  return { ...original, reversedAmount: String(reversed), state, changedAt: at, due: null }
}

function transfersOf(operation: SimulatedOperation, original: SimulatedOperation | undefined): Transfer[] {
  const customer = wallet(operation.msisdn ?? '')
  const { amount, fee } = operation
  if (operation.kind === 'collect') {
    return [{ from: customer, to: pool, amount }, ...charge(pool, fees, fee)]
  }
  if (operation.kind === 'disburse') {
    return [{ from: pool, to: customer, amount }, ...charge(pool, fees, fee)]
  }
  if (original?.kind !== 'disburse') return [{ from: pool, to: customer, amount }]
  // The reversal of a whole payout costs nothing: its fee returns as well.
  const feeBack = amount === original.amount ? original.fee : '0'
  return [{ from: customer, to: pool, amount }, ...charge(fees, pool, feeBack)]
}

function charge(from: string, to: string, amount: string): Transfer[] {
  return amount === '0' ? [] : [{ from, to, amount }]
}

function receipt(
  kind: SimulatedOperation['kind'],
  operator: OperatorKey,
  at: number,
  number: number,
): string {
  const stamp = new Date(at).toISOString()
  const day = stamp.slice(2, 10).replaceAll('-', '')
  const time = stamp.slice(11, 16).replace(':', '')
  return `${receiptPrefix[kind]}${day}.${time}.${operator.toUpperCase()}${String(number).padStart(5, '0')}`
}

function uuidFrom(text: string): string {
  const hex = sha256(text)
  const variant = ((Number.parseInt(hex.slice(16, 17), 16) & 3) | 8).toString(16)
  const parts = [hex.slice(0, 8), hex.slice(8, 12), `4${hex.slice(13, 16)}`, `${variant}${hex.slice(17, 20)}`]
  return [...parts, hex.slice(20, 32)].join('-')
}
