import type pg from 'pg'
import { MasterSecret } from '../../src/identity/secrets/secrets.ts'
import { afterAll, beforeAll, beforeEach, expect, vi } from 'vitest'
import type { Services } from '../../src/context.ts'
import { openSharedStatements } from '../../src/database/shared-statements.ts'
import { openSandboxClock, type SandboxClock } from '../../src/database/sandbox-clock.ts'
import { openDrains } from '../../src/jobs/drain.ts'
import type { Leases } from '../../src/jobs/leases.ts'
import type {
  CollectRequest,
  DisburseRequest,
  Evidence,
  InitiateOutcome,
  OperatorHandle,
  QueryOutcome,
} from '../../src/operators/operator.ts'
import type { Operator } from '../../src/operators/registry.ts'
import type { OpenRequest } from '../../src/requests/open-request.ts'
import { claimOne } from '../../src/requests/store.ts'
import { deadlineIn } from '../../src/operators/call-limits.ts'
import { sendRequest } from '../../src/requests/send.ts'
import { checkRequest } from '../../src/requests/check.ts'
import { subjects } from '../../src/resources/subjects.ts'
import { createLog } from '../../src/telemetry/log.ts'
import { makeMerchant, type SignedInMerchant } from './merchants.ts'
import { balanceOf, openCollection, problemsOf } from './money.ts'
import { createTestDatabase, type TestDatabase } from './database.ts'

export const second = 1_000
export const minute = 60 * second
export const hour = 60 * minute

/** A service with a database of its own and one operator, played by the test. */
interface Scripted {
  db: TestDatabase
  pool: pg.Pool
  /** Moves the service's time, in code and database. */
  clock: SandboxClock
  services: Services
  /** A new merchant for each test. */
  merchant: SignedInMerchant
}
export const scripted = {} as Scripted

/** An operator that gives the answers of the test, and records its questions. */
export const script = {
  collect: [] as InitiateOutcome[],
  disburse: [] as InitiateOutcome[],
  query: [] as QueryOutcome[],
  sent: [] as CollectRequest[],
  paidOut: [] as DisburseRequest[],
  asked: 0,
  idempotent: true,
  callbacks: 'unsigned' as 'none' | 'unsigned',
  synchronous: false,
}
const operator = {
  provider: 'OperatorA',
  get capabilities() {
    const { idempotent, callbacks, synchronous } = script
    return { createIsIdempotent: idempotent, callbacks, disburseIsSynchronous: synchronous }
  },
  callbackUrl: (id: bigint) => `https://us.example/callbacks/${id}`,
  collect: async (request: CollectRequest) => {
    script.sent.push(request)
    return named(next(script.collect), request.handle)
  },
  disburse: async (request: DisburseRequest) => {
    script.paidOut.push(request)
    return named(next(script.disburse), request.handle)
  },
  query: async (_kind: string, asked: OperatorHandle) => {
    script.asked += 1
    return named(next(script.query), asked)
  },
} as unknown as Operator

function next<T>(answers: T[]): T {
  const answer = answers.shift()
  if (answer === undefined) throw new Error('the script ends here')
  return answer
}

/** Gives the evidence of each payment a reference of its own, unless the test gave it one. */
export function named<T extends InitiateOutcome | QueryOutcome>(
  answer: T,
  { correlationId }: OperatorHandle,
): T {
  if (!('evidence' in answer) || answer.evidence.operatorRef !== evidence.operatorRef) return answer
  return { ...answer, evidence: { ...answer.evidence, operatorRef: `OP-1 ${correlationId}` } }
}

/** Opens the service and the scripted operator for the tests of a file. */
export function useScriptedOperator(): void {
  beforeAll(async () => {
    const db = await createTestDatabase()
    const { pool } = db.database
    const clock = await openSandboxClock(pool)
    const ending = new AbortController().signal
    const services = {
      database: db.database,
      sharedStatements: openSharedStatements(pool),
      operators: { find: () => operator },
      clock,
      log: createLog('silent'),
      addresses: { publicUrl: 'https://us.example', callbackUrl: 'https://us.example' },
      access: { master: new MasterSecret(Buffer.alloc(32)) },
      inFlight: new Map(),
      checkSlots: new Map(),
      notifyJob: () => undefined,
      subjects,
      restores: { mayHaveSent: () => false },
      ending,
      drains: openDrains(ending, {} as Leases),
    } as unknown as Services
    Object.assign(scripted, { db, pool, clock, services })
  })
  afterAll(() => scripted.db.drop())
  beforeEach(async () => {
    scripted.merchant = await makeMerchant(scripted.pool)
    Object.assign(script, {
      collect: [],
      disburse: [],
      query: [],
      sent: [],
      paidOut: [],
      asked: 0,
      idempotent: true,
      callbacks: 'unsigned',
      synchronous: false,
    })
  })
}

const handle = { correlationId: 'from-the-operator', clientRef: 'r', operatorRef: 'OP-1' }
export const evidence: Evidence = {
  operatorRef: 'OP-1',
  amount: 5_000n,
  settledAt: new Date('2026-01-31T10:00:00.000Z'),
  source: 'query',
  digest: 'd',
}
const refusal = { reason: 'PAYER_DECLINED', code: 'no', message: 'Declined.' } as const
const push = { type: 'push' } as const
export const says = {
  accepted: { kind: 'accepted', duplicate: false, handle, action: push, notify: 'callback' },
  duplicate: { kind: 'accepted', duplicate: true, handle, action: push, notify: 'callback' },
  settled: { kind: 'settled', handle, evidence },
  refused: { kind: 'refused', refusal },
  notSent: { kind: 'not_sent', cause: 'connect' },
  unknown: { kind: 'unknown', cause: 'response_lost', handle },
} as const satisfies Record<string, InitiateOutcome>
export const answers = {
  pending: { kind: 'pending' },
  settled: { kind: 'settled', evidence },
  refused: { kind: 'refused', refusal },
  absent: { kind: 'absent', asOf: new Date() },
  unreachable: { kind: 'unreachable', cause: 'connect' },
  reversed: { kind: 'reversed', evidence, reversalRef: 'R' },
} as const satisfies Record<string, QueryOutcome>

export interface Opened {
  transactionId: bigint
  requestId: bigint
  correlationId: string
}

/** Makes a collection that `collect` is about to send. */
export async function fresh(): Promise<Opened & { request: OpenRequest }> {
  const opened = await openCollection(scripted.pool, scripted.merchant)
  const request = await claim(opened)
  await scripted.db.owner.query('UPDATE operator_request SET check_count = 0 WHERE id = $1', [
    opened.requestId,
  ])
  return { ...opened, request: { ...request, checkCount: 0 } }
}

/** Takes the request as the schedule does, without the wait between two questions. */
export async function claim({ transactionId, requestId }: Opened): Promise<OpenRequest> {
  await scripted.db.owner.query('UPDATE operator_request SET query_after = NULL WHERE id = $1', [requestId])
  const request = await claimOne(scripted.pool, transactionId)
  if (!request) throw new Error('nothing to claim')
  return request
}

export async function lowerFence({ requestId }: Pick<Opened, 'requestId'>): Promise<void> {
  await scripted.db.owner.query(
    `UPDATE operator_request SET fence_until = now() - interval '1 s' WHERE id = $1`,
    [requestId],
  )
}

export async function stands({ transactionId }: Opened) {
  const { rows } = await scripted.db.owner.query(
    `SELECT t.status, t.late, t.failure_reason AS why, r.state, r.attempt,
       extract(epoch FROM r.next_check_at - service_now())::float AS "nextS"
     FROM transaction t JOIN operator_request r ON r.transaction_id = t.id WHERE t.id = $1`,
    [transactionId],
  )
  const row = rows[0]
  if (!row) throw new Error('no such transaction')
  return row as {
    status: string
    late: boolean
    why: string | null
    state: string
    attempt: number
    nextS: number | null
  }
}

/** Matches a number of seconds between these two, with room for jitter and a moment of running. */
export function seconds(from: number, to = from) {
  return {
    asymmetricMatch: (value: unknown) =>
      typeof value === 'number' && value >= from * 0.8 - 1 && value <= to * 1.2 + 0.1,
  }
}

export async function credited(): Promise<bigint> {
  expect(await problemsOf(scripted.pool, scripted.merchant.merchantId)).toEqual([])
  return (await balanceOf(scripted.pool, scripted.merchant.merchantId)).available
}

/** An accepted collection of this age. */
export async function accepted(ageMs = 0): Promise<Opened> {
  const opened = await fresh()
  script.collect = [says.accepted]
  await sendRequest(scripted.services, opened.request, 'interactive', deadlineIn(10_000))
  if (ageMs > 0) await scripted.clock.advance(ageMs)
  script.sent = []
  return opened
}

export async function ask(opened: Opened, ...outcomes: QueryOutcome[]) {
  script.query = outcomes
  return checkRequest(scripted.services, await claim(opened))
}

/** Kills the process after its next batched commit. */
export function killSecondCommit() {
  const { sharedStatements } = scripted.services
  const run = sharedStatements.run.bind(sharedStatements)
  return vi
    .spyOn(sharedStatements, 'run')
    .mockImplementationOnce(run)
    .mockImplementation(() => Promise.reject(new Error('killed')))
}

export const day = 24 * hour

/** Makes a collection of this age; its first answer was lost. */
export async function doubtful(ageMs: number): Promise<Opened> {
  const opened = await fresh()
  script.collect = [says.unknown]
  await sendRequest(scripted.services, opened.request, 'interactive', deadlineIn(10_000))
  if (ageMs > 0) await scripted.clock.advance(ageMs)
  script.sent = []
  return opened
}
