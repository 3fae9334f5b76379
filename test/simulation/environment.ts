import type pg from 'pg'
import { MasterSecret } from '../../src/identity/secrets/secrets.ts'
import { openSharedStatements, usualBounds } from '../../src/database/shared-statements.ts'
import { openSandboxClock } from '../../src/database/sandbox-clock.ts'
import type { Context, Services } from '../../src/context.ts'
import { openDrains } from '../../src/jobs/drain.ts'
import type { Leases } from '../../src/jobs/leases.ts'
import type {
  CollectRequest,
  DisburseRequest,
  InitiateOutcome,
  OperatorHandle,
  QueryOutcome,
} from '../../src/operators/operator.ts'
import { verifyLedger } from '../../src/ledger/verify.ts'
import { DomainError } from '../../src/shared/errors.ts'
import { subjects } from '../../src/resources/subjects.ts'
import { createLog } from '../../src/telemetry/log.ts'
import { wrongFigures } from '../kit/payment-figures.ts'
import { makeMerchant, type SignedInMerchant } from '../kit/merchants.ts'
import { createTestDatabase, type TestDatabase } from '../kit/database.ts'

/** The fate of a call to the operator. The service cannot tell `lost` from `vanished`. */
export const treatments = ['normal', 'instant', 'refused', 'lost', 'vanished', 'unsent'] as const
/**
 * `floatless`: our float at the operator is empty, and it rejects a disbursement before executing it.
 * `short`: the operator will state that it paid out 1 franc.
 */
export type Treatment = (typeof treatments)[number] | 'floatless' | 'short'

/** The state of one operation at the operator. */
interface Operation {
  state: 'prompting' | 'paid' | 'declined' | 'reversed'
  /** The amount that the operator states. */
  amount: bigint
}

/** One request to the operator and its answer. */
export interface PlayedExchange {
  correlationId: string
  what: 'collect' | 'disburse' | 'query'
  answer: InitiateOutcome['kind'] | QueryOutcome['kind'] | 'floatless'
  /** The amount that the answer states; null where it states none. */
  stated: bigint | null
}

/** An operator in memory: it keeps operations by their names, and a test plays its customers. */
export class PlayedOperator {
  readonly provider = 'OperatorA'
  readonly capabilities = { createIsIdempotent: true, callbacks: 'unsigned', disburseIsSynchronous: false }
  readonly operations = new Map<string, Operation>()
  readonly log: PlayedExchange[] = []
  /** The fate of the next calls. */
  treatment: Treatment = 'normal'
  isDown = false
  /** Errors that the service caught and logged. */
  readonly failures: unknown[] = []
  /** Names of operations; their next question gets an older state: still pending. */
  readonly stale = new Set<string>()

  canStart = () => ({ ok: true })
  callbackUrl = (id: bigint) => `https://us.example/callbacks/${id}`
  balance = () => {
    throw new Error('no test asks for the balance')
  }

  /** Called before the operator acts; an interleaving test waits here for its turn. */
  arrive: (what: string) => Promise<void> = async () => {}

  collect = async (request: CollectRequest): Promise<InitiateOutcome> => {
    await this.arrive('operator collect')
    return this.#record('collect', request.handle, this.#start(request))
  }

  disburse = async (request: DisburseRequest): Promise<InitiateOutcome> => {
    await this.arrive('operator disburse')
    return this.#record('disburse', request.handle, this.#start(request))
  }

  query = async (_kind: string, handle: OperatorHandle): Promise<QueryOutcome> => {
    await this.arrive('operator query')
    return this.#record('query', handle, this.#query(handle))
  }

  #record<T extends InitiateOutcome | QueryOutcome>(
    what: PlayedExchange['what'],
    handle: OperatorHandle,
    answer: T,
  ): T {
    const rejectedReason = answer.kind === 'not_sent' && answer.refusal !== undefined
    const heard = rejectedReason ? 'floatless' : answer.kind
    const stated = 'evidence' in answer ? answer.evidence.amount : null
    this.log.push({ correlationId: handle.correlationId, what, answer: heard, stated })
    return answer
  }

  #start({ handle, amount }: CollectRequest | DisburseRequest): InitiateOutcome {
    const { correlationId } = handle
    const duplicate = this.operations.has(correlationId)
    const treatment = this.isDown ? 'unsent' : this.treatment
    if (treatment === 'unsent') return { kind: 'not_sent', cause: 'connect' }
    if (treatment === 'floatless') return { kind: 'not_sent', cause: 'float_empty', refusal: noFloat }
    if (treatment === 'vanished') return { kind: 'unknown', cause: 'response_lost', handle }
    if (!duplicate) {
      const states = { lost: 'prompting', instant: 'paid', refused: 'declined' } as const
      const state = treatment === 'normal' || treatment === 'short' ? 'prompting' : states[treatment]
      this.operations.set(correlationId, { state, amount: treatment === 'short' ? 1n : amount })
      if (treatment === 'instant')
        return { kind: 'settled', handle, evidence: evidenceOf(correlationId, amount) }
      if (treatment === 'refused') return { kind: 'refused', refusal }
    }
    if (treatment === 'lost') return { kind: 'unknown', cause: 'response_lost', handle }
    return { kind: 'accepted', duplicate, handle, action: { type: 'push' }, notify: 'callback' }
  }

  #query({ correlationId }: OperatorHandle): QueryOutcome {
    if (this.isDown) return { kind: 'unreachable', cause: 'connect' }
    const operation = this.operations.get(correlationId)
    if (!operation) return { kind: 'absent', asOf: new Date() }
    if (this.stale.delete(correlationId) || operation.state === 'prompting') return { kind: 'pending' }
    if (operation.state === 'declined') return { kind: 'refused', refusal }
    const evidence = evidenceOf(correlationId, operation.amount)
    if (operation.state === 'reversed') return { kind: 'reversed', evidence, reversalRef: 'R' }
    return { kind: 'settled', evidence }
  }
}

const noFloat = { reason: 'FLOAT_INSUFFICIENT', code: 'no_float', message: 'No float.' } as const
const refusal = { reason: 'PAYER_DECLINED', code: 'no', message: 'Declined.' } as const

function evidenceOf(operatorRef: string, amount: bigint) {
  return { operatorRef, amount, settledAt: new Date(), source: 'query', digest: 'd' } as const
}

/** The parts of a node that differ per node, and those that all nodes share. */
export type SettledEnvironment = Pick<SimulationEnvironment, 'operator' | 'clock' | 'pool' | 'merchantPool'>

/** Opens a node of the service: the services that verbs need, with the played operator. */
export function openNode({ pool, merchantPool, ...environment }: SettledEnvironment): Services {
  const log = createLog('silent')
  const ending = new AbortController().signal
  log.error = (detail: object) => {
    if ('err' in detail) environment.operator.failures.push(detail.err)
  }
  return {
    database: { pool, merchantPool },
    // Shared statements wait for no timer: only the scheduler decides the order.
    sharedStatements: openSharedStatements(pool, { ...usualBounds, pauseMaxMs: 0 }),
    operators: { find: () => environment.operator, list: () => [environment.operator] },
    clock: environment.clock,
    log,
    addresses: { publicUrl: 'https://us.example', callbackUrl: 'https://us.example' },
    access: {
      master: new MasterSecret(Buffer.alloc(32)),
      credentials: {
        forget: () => undefined,
        check: async () => {
          throw new DomainError('UNAUTHENTICATED')
        },
      },
    },
    inFlight: new Map(),
    checkSlots: new Map(),
    subjects,
    restores: { mayHaveSent: () => false },
    ending,
    drains: openDrains(ending, {} as Leases),
    notifyJob: () => undefined,
    // No call waits for a later outcome here: it is known when the operator has answered.
    feed: { start: async () => ({ after: 0n, head: 0n }), subscribe: async function* () {} },
  } as unknown as Services
}

/** The context of a verb that a merchant calls. */
export function contextOf(services: Services, merchant: SignedInMerchant): Context {
  const actor = { merchantId: merchant.merchantId, apiKeyId: merchant.apiKeyId, apiKeyVersion: 1 }
  return {
    ...services,
    actor,
    effect: null,
    language: 'en',
    responseHeaders: new Map(),
    channel: 'graphql',
  } as unknown as Context
}

/** A database of its own, a clock that the test moves, and an operator that the test plays. */
export interface SimulationEnvironment {
  db: TestDatabase
  pool: pg.Pool
  /** The pool for a merchant's own reads. */
  merchantPool: pg.Pool
  operator: PlayedOperator
  clock: Awaited<ReturnType<typeof openSandboxClock>>
  merchant(): Promise<SignedInMerchant>
  /** Lets this much time pass, also for fences and pauses, which go by the machine's own clock. */
  advance(ms: number): Promise<void>
}

export async function openEnvironment(): Promise<SimulationEnvironment> {
  const db = await createTestDatabase()
  const { pool, merchantPool } = db.database
  const clock = await openSandboxClock(pool)
  return {
    db,
    pool,
    merchantPool,
    clock,
    operator: new PlayedOperator(),
    merchant: () => makeMerchant(pool),
    async advance(ms) {
      await clock.advance(ms)
      await db.owner.query(
        `UPDATE operator_request SET fence_until = fence_until - $1 * interval '1 ms',
           query_after = query_after - $1 * interval '1 ms'
         WHERE next_check_at IS NOT NULL`,
        [ms],
      )
    },
  }
}

/**
 * Checks a database against every invariant of its books, and its counts against its rows.
 * @returns the problems
 */
export async function findProblems({ db }: SimulationEnvironment): Promise<unknown[]> {
  await db.owner.query('SELECT make_missing_deliveries(1000000)')
  const miscounted = await db.owner.query(
    `WITH counts AS (
       SELECT merchant_id, transaction_type, payment_method, status, n FROM transaction_count UNION ALL
       SELECT merchant_id, transaction_type, payment_method, status, n FROM transaction_count_change
     ), counted AS (
       SELECT merchant_id, transaction_type, payment_method, status, sum(n)::int AS n FROM counts
       GROUP BY 1, 2, 3, 4 HAVING sum(n) <> 0
     ), there AS (
       SELECT merchant_id, transaction_type, payment_method, status, count(*)::int AS n
       FROM transaction GROUP BY 1, 2, 3, 4
     )
     SELECT merchant_id, status, counted.n AS counted, there.n AS there
     FROM counted FULL JOIN there USING (merchant_id, transaction_type, payment_method, status)
     WHERE counted.n IS DISTINCT FROM there.n`,
  )
  const wrong = await wrongFigures(db.owner)
  return [...(await verifyLedger(db.database.pool)), ...miscounted.rows, ...wrong]
}
