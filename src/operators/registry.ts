import type { OperatorSettings } from '../config/operators.ts'
import type { Clock } from '../shared/clock.ts'
import type { Provider } from '../shared/providers.ts'
import { createCheckoutDriver } from './checkout-session.ts'
import { type Circuit, createCircuit } from './circuit.ts'
import { createGsmaDriver } from './gsma-mm.ts'
import { createBulkhead, type Bulkhead } from './call-limits.ts'
import type {
  CallContext,
  DriverDeps,
  NotSent,
  NotSentCause,
  OperationKind,
  OperatorDriver,
  UnknownCause,
  Unreachable,
} from './operator.ts'

/** The time limit of a probe, which is a small request. */
const probeDeadlineMs = 2_000
/**
 * Choice: an operator that reports good health while money calls to it fail gets no money call for six
 * pauses, by default one minute. (see docs/design/operators.md#when-an-operator-is-down)
 */
const doubtedPauses = 6
/** Choice: a full bulkhead has a free slot after about the time of one call. */
const bulkheadRetryMs = 1_000

export type OperatorAvailability = 'operational' | 'degraded' | 'down'

export interface OperatorStatus {
  provider: Provider
  collect: OperatorAvailability
  disburse: OperatorAvailability
  /** The time of the last change of the status, or of the start. */
  since: Date
}

export type CanStart = { ok: true } | { ok: false; cause: NotSentCause; retryAfterMs?: number | undefined }

/** An operator as the service uses it: its driver, behind its own bulkheads and circuits. */
export interface Operator extends Omit<OperatorDriver, 'close'> {
  availability(what: 'collect' | 'disburse'): OperatorAvailability
  /**
   * Returns whether a money call may start now, at once or in the queue. Callers ask this before they record
   * anything.
   */
  canStart(kind: OperationKind, priority?: CallContext['priority']): CanStart
}

export interface OperatorRegistry {
  list(): readonly OperatorStatus[]
  find(provider: Provider): Operator | null
  /**
   * Calls the listener after every change of an operator's availability.
   * @returns a function that ends the calls
   */
  onChange(listener: (status: OperatorStatus) => void): () => void
  /** Ends probes, waiting calls (`not_sent`), and running calls (`unknown` if they were sent). */
  close(): Promise<void>
}

/**
 * Makes every configured operator, each with its own bulkheads, circuits and connections, so that no operator
 * slows another one down.
 */
export function createOperators(settings: readonly OperatorSettings[], deps: DriverDeps): OperatorRegistry {
  const listeners = new Set<(status: OperatorStatus) => void>()
  const guarded = new Map(
    settings.map((each) => {
      const driver = createDriver(each, deps)
      const announce = (status: OperatorStatus) => {
        deps.log.warn(status, 'operator availability changed')
        for (const listener of listeners) listener(status)
      }
      return [each.provider, guard(driver, each, deps.clock, announce)]
    }),
  )
  return {
    list: () => [...guarded.values()].map((each) => each.status()),
    find: (provider) => guarded.get(provider)?.operator ?? null,
    onChange(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    async close() {
      listeners.clear()
      await Promise.all([...guarded.values()].map((each) => each.close()))
    },
  }
}

/** Makes the driver of an operator. A new protocol is a driver and a line here. */
function createDriver(settings: OperatorSettings, deps: DriverDeps): OperatorDriver {
  return settings.driver === 'gsma-mm'
    ? createGsmaDriver(settings, deps)
    : createCheckoutDriver(settings, deps)
}

interface Guarded {
  operator: Operator
  status(): OperatorStatus
  close(): Promise<void>
}

/**
 * Puts a driver behind its bulkheads and circuits. Money calls and questions have separate circuits, so that
 * failing money calls do not stop the questions that resolve unknown outcomes. Background calls have their
 * own bulkhead, so that batches take no slot of a call for which a customer waits.
 */
function guard(
  driver: OperatorDriver,
  { limits, faultNumbers }: OperatorSettings,
  clock: Clock,
  announce: (status: OperatorStatus) => void,
): Guarded {
  const bulkheads = {
    interactive: createBulkhead(limits.interactiveMax, limits.queueMax),
    background: createBulkhead(limits.backgroundMax, limits.queueMax),
    query: createBulkhead(limits.queriesMax, limits.queueMax),
  }
  const moneyBulkheads = [bulkheads.interactive, bulkheads.background]
  const probe = async () => (await driver.health(probeContext())).status !== 'unavailable'
  const openMs = limits.breakerOpenMs
  const doubtedMs = doubtedPauses * openMs
  const circuits = {
    initiate: createCircuit({ openMs, doubtedMs, probe, onChange: onMoneyChange }),
    query: createCircuit({ openMs, probe, onChange }),
  }
  const { cancel, lookupParty } = driver

  function availability(): OperatorAvailability {
    if (!circuits.initiate.closed) return 'down'
    return circuits.query.closed ? 'operational' : 'degraded'
  }

  let known: OperatorAvailability = 'operational'
  let since = clock.now()
  const status = () => ({ provider: driver.provider, collect: known, disburse: known, since })
  function onChange(): void {
    const current = availability()
    if (current === known) return
    known = current
    since = clock.now()
    announce(status())
  }
  function onMoneyChange(): void {
    const { initiate } = circuits
    if (!initiate.closed) for (const bulkhead of moneyBulkheads) bulkhead.sendAway(initiate.refusal())
    onChange()
  }

  const money = <T extends Outcome>(ctx: CallContext, call: () => Promise<T>, phone = '') => {
    const circuit = faultNumbers?.test(phone) ? uncounted(circuits.initiate) : circuits.initiate
    return through(circuit, bulkheads[ctx.priority], ctx, call)
  }
  const ask = async <T extends Outcome>(
    ctx: CallContext,
    call: () => Promise<T>,
  ): Promise<T | Unreachable> => {
    const outcome = await through(circuits.query, bulkheads.query, ctx, call)
    return isNotSent(outcome) ? { ...outcome, kind: 'unreachable' } : outcome
  }

  const operator: Operator = {
    provider: driver.provider,
    name: driver.name,
    capabilities: driver.capabilities,
    callbackUrl: (operationId) => driver.callbackUrl(operationId),
    parseCallback: (raw) => driver.parseCallback(raw),
    collect: (request, ctx) => money(ctx, () => driver.collect(request, ctx), request.payer),
    disburse: (request, ctx) => money(ctx, () => driver.disburse(request, ctx), request.payee),
    reverse: (request, ctx) => money(ctx, () => driver.reverse(request, ctx)),
    query: (kind, handle, ctx) => ask(ctx, () => driver.query(kind, handle, ctx)),
    balance: (ctx) => ask(ctx, () => driver.balance(ctx)),
    statement: (day, ctx) => ask(ctx, () => driver.statement(day, ctx)),
    // No circuit or bulkhead holds this question back: it must be possible while the operator is down.
    health: (ctx) => driver.health(ctx),
    ...(lookupParty && { lookupParty: (phone, ctx) => ask(ctx, () => lookupParty(phone, ctx)) }),
    ...(cancel && {
      // Withdrawals take no slot of a payment, and count as no answer: `unknown` does not tell a refusal from
      // an outage, and any visitor may send one, so that a good answer counted here would hide an outage.
      async cancel(handle, ctx) {
        const withdraw = async () => ({ kind: 'done', did: await cancel(handle, ctx) }) as const
        const outcome = await through(uncounted(circuits.query), bulkheads.query, ctx, withdraw)
        return outcome.kind === 'done' ? outcome.did : 'unknown'
      },
    }),
    availability,
    canStart(_kind, priority = 'interactive') {
      const { initiate } = circuits
      if (!initiate.closed) return { ...initiate.refusal(), ok: false }
      return bulkheads[priority].hasRoom
        ? { ok: true }
        : { ok: false, cause: 'bulkhead_full', retryAfterMs: bulkheadRetryMs }
    },
  }

  return {
    operator,
    status,
    async close() {
      for (const each of Object.values(circuits)) each.close()
      for (const each of Object.values(bulkheads)) each.close()
      await driver.close()
    },
  }
}

interface Outcome {
  kind: string
  cause?: NotSentCause | UnknownCause
}

/**
 * Returns a circuit for a call whose outcome says nothing about the operator: a test number of the sandbox
 * determines it, or it is a withdrawal. An open circuit holds the call back, but the outcome of the call is
 * not counted, and the call takes no place of a counted call.
 */
function uncounted(circuit: Circuit): GuardingCircuit {
  return {
    get closed() {
      return circuit.closed
    },
    refusal: () => circuit.refusal(),
    enter: async () => (circuit.closed ? { report: () => undefined } : circuit.refusal()),
  }
}

type GuardingCircuit = Pick<Circuit, 'closed' | 'refusal' | 'enter'>

/**
 * Makes one call through its bulkhead and its circuit. The circuit is checked again after the wait for a
 * slot.
 */
async function through<T extends Outcome>(
  circuit: GuardingCircuit,
  bulkhead: Bulkhead,
  ctx: CallContext,
  call: () => Promise<T>,
): Promise<T | NotSent> {
  if (!circuit.closed) return circuit.refusal()
  const refusal = await bulkhead.enter(ctx)
  if (refusal) return refusal
  try {
    const pass = await circuit.enter(ctx)
    if ('kind' in pass) return pass
    let outcome: T | null = null
    try {
      outcome = await call()
      return outcome
    } finally {
      pass.report(outcome)
    }
  } finally {
    bulkhead.leave()
  }
}

function isNotSent(outcome: Outcome): outcome is NotSent {
  return outcome.kind === 'not_sent'
}

function probeContext(): CallContext {
  return {
    deadline: new Date(Date.now() + probeDeadlineMs),
    priority: 'interactive',
    record: () => undefined,
  }
}
