import type { Addresses } from '../config/config.ts'
import type { SharedStatements } from '../database/shared-statements.ts'
import type { Database } from '../database/client.ts'
import type { Restores } from '../database/restores.ts'
import type { Access } from '../identity/callers/authenticate.ts'
import type { NotifiedJob } from '../jobs/catalogue.ts'
import type { Evidence } from '../operators/operator.ts'
import type { OperatorRegistry } from '../operators/registry.ts'
import type { Clock } from '../shared/clock.ts'
import type { InFlight } from '../shared/single-flight.ts'
import type { States } from '../shared/states.ts'
import type { Log } from '../telemetry/log.ts'
import type { ChecksByOperator } from './check-slots.ts'
import type { FinalOutcome, Expiry } from './outcome.ts'
import type { Subject } from './open-request.ts'

/** The services that this engine and the subject handlers need. */
export interface RequestServices {
  log: Log
  clock: Clock
  database: Pick<Database, 'pool'>
  sharedStatements: SharedStatements
  restores: Pick<Restores, 'mayHaveSent'>
  operators: Pick<OperatorRegistry, 'find'>
  access: Access
  addresses: Addresses
  inFlight: InFlight
  /** The slots of this process for checks, by operator. */
  checkSlots: ChecksByOperator
  /** Runs a periodic job now instead of at its next time. */
  notifyJob(name: NotifiedJob): void
  subjects: Subjects
}

/** The rules by which a request for one kind of subject is sent, asked about and ended. */
export interface SubjectRules {
  states: Pick<States<string>, 'canMove'>
  /** The subject's status while its outcome is awaited (`open`), and after the money moved (`success`). */
  open: string
  success: string
  /** How long after its recording a request is sent again if it provably never left. */
  unsentForMs: number
  /** True if the request waits while our own float at the operator is empty; otherwise it fails. */
  waitsForFloat: boolean
  /** How long after its recording a request is sent again if the operator has no record of it. */
  resendAbsentForMs: number
}

/** The status after an outcome was applied, and whether this call changed it. */
export interface AppliedOutcome {
  moved: boolean
  status: string
}

/** The rules and the handlers that the engine needs for one kind of subject. */
export interface SubjectRow extends SubjectRules {
  /** Applies a final outcome to the subject, at most once, from any source. */
  settle: (services: RequestServices, id: bigint, outcome: FinalOutcome) => Promise<AppliedOutcome>
  /** Ends the subject unpaid after its time; absent if subjects of this kind do not expire. */
  expire?: (services: RequestServices, id: bigint, expiry: Expiry) => Promise<AppliedOutcome>
  /** Reverses a payment after the operator answered that it took the money back. */
  reverse: (services: RequestServices, id: bigint, evidence: Evidence) => Promise<AppliedOutcome>
  /** The page to which the customer returns from a hosted page, unless the merchant names another. */
  pageOf?: (services: RequestServices, id: bigint) => string
}

/**
 * The handlers of every kind of subject. The resources pass this table in, so that the engine imports no
 * resource.
 */
export type Subjects = Readonly<Record<Subject, SubjectRow>>
