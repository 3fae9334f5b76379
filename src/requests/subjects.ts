import type { Addresses } from '../config/config.ts'
import type { Batches } from '../database/batch.ts'
import type { Database } from '../database/client.ts'
import type { Restores } from '../database/restores.ts'
import type { Sequencer } from '../events/sequencer.ts'
import type { Access } from '../identity/authenticate.ts'
import type { Evidence } from '../operators/operator.ts'
import type { OperatorRegistry } from '../operators/registry.ts'
import type { Clock } from '../shared/clock.ts'
import type { InFlight } from '../shared/single-flight.ts'
import type { States } from '../shared/states.ts'
import type { Log } from '../telemetry/log.ts'
import type { FinalOutcome, Expiry } from './outcome.ts'
import type { Subject } from './open-request.ts'

/** What this engine, and the rows that are handed to it, need of the service. */
export interface RequestServices {
  log: Log
  clock: Clock
  database: Pick<Database, 'pool'>
  batches: Batches
  restores: Pick<Restores, 'mayHaveSent'>
  operators: Pick<OperatorRegistry, 'find'>
  sequencer: Sequencer
  access: Access
  addresses: Addresses
  inFlight: InFlight
  subjects: Subjects
}

/** What decides how a request for one kind of subject is sent, asked about and ended. */
export interface SubjectRules {
  states: Pick<States<string>, 'canMove'>
  /** Its status while its outcome is awaited, and once the money moved. */
  open: string
  success: string
  /** What provably never left is sent again for so long after it was recorded. */
  unsentForMs: number
  /** Whether it waits where our own float at the operator is empty; else it failed. */
  waitsForFloat: boolean
  /** What the operator has no record of is sent again for so long. */
  resendAbsentForMs: number
}

/** What stands after an outcome was brought, and whether this call moved it. */
interface AppliedOutcome {
  moved: boolean
  status: string
}

/** One kind of subject: its rules, and the verbs that end it. */
export interface SubjectRow extends SubjectRules {
  /** Brings it its outcome, once, whoever learned it. */
  settle: (services: RequestServices, id: bigint, outcome: FinalOutcome) => Promise<AppliedOutcome>
  /** Ends it unpaid after its time; absent where nothing ends by its age. */
  expire?: (services: RequestServices, id: bigint, expiry: Expiry) => Promise<AppliedOutcome>
  /** Takes back what was paid, on the operator's answer that it did so. */
  reverse: (services: RequestServices, id: bigint, evidence: Evidence) => Promise<AppliedOutcome>
  /** Where the customer of a hosted page comes back to, unless the merchant says otherwise. */
  pageOf?: (services: RequestServices, id: bigint) => string
}

/** Every kind of subject. The resources hand this table in, so that the engine imports none of them. */
export type Subjects = Readonly<Record<Subject, SubjectRow>>
