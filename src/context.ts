import DataLoader from 'dataloader'
import type { Access } from './identity/callers/authenticate.ts'
import type { HeadLog } from './audit/audit-heads.ts'
import type { Admission } from './limits/admission.ts'
import type { Channel } from './audit/audit-log.ts'
import type { Actor } from './identity/callers/actor.ts'
import type { IdempotentOperation } from './idempotency/idempotency-keys.ts'
import type { RequestLimits } from './limits/request-limits.ts'
import type { Addresses, Config } from './config/config.ts'
import type { SharedStatements } from './database/shared-statements.ts'
import type { Database } from './database/client.ts'
import type { Restores } from './database/restores.ts'
import type { RecordMove } from './database/sandbox-clock.ts'
import type { Feed } from './events/feed.ts'
import type { Mailer } from './mail/mailer.ts'
import type { OperatorRegistry } from './operators/registry.ts'
import type { NotifiedJob } from './jobs/catalogue.ts'
import type { Drains } from './jobs/drain.ts'
import type { Leases } from './jobs/leases.ts'
import type { ChecksByOperator } from './requests/check-slots.ts'
import type { Subjects } from './requests/subjects.ts'
import type { Clock } from './shared/clock.ts'
import { DomainError } from './shared/errors.ts'
import type { InFlight } from './shared/single-flight.ts'
import type { Sender } from './shared/sender.ts'
import type { Log } from './telemetry/log.ts'

/** The parts of the service that live as long as the process. */
export interface Services {
  config: Config
  addresses: Addresses
  log: Log
  clock: Clock
  database: Database
  sharedStatements: SharedStatements
  /**
   * Notices that the database was restored from a backup: compares it with the state that this node saw last.
   */
  restores: Restores
  access: Access
  requestLimits: RequestLimits
  admission: Admission
  mailer: Mailer
  operators: OperatorRegistry
  auditHeads: HeadLog
  /** Sends events to the merchants' endpoints. */
  webhookSender: Sender
  /**
   * The leases of this process on queues: the key of a webhook endpoint is its id, that of bulk pay 0. They
   * use database sessions of their own.
   */
  leases: Leases
  /** The queues that this process drains. */
  drains: Drains
  feed: Feed
  inFlight: InFlight
  /** The slots in which this process asks each operator about payments. */
  checkSlots: ChecksByOperator
  /** Every kind of subject that a request to an operator may have. */
  subjects: Subjects
  /** Aborted when the service begins to end: a request that waits for an outcome then answers without it. */
  ending: AbortSignal
  /**
   * The slots taken in this process, by name: live streams of a token (`token:<id>`), of a merchant
   * (`merchant:<id>`) and of payment pages at an address, and imports of a merchant (`imports:<id>`).
   */
  streams: Map<string, number>
  /** Moves the sandbox clock; null in production. */
  sandbox: Sandbox | null
  /** The address where the operator simulator shows its telephones; null in production. */
  simulatorUrl: string | null
  /** Runs a periodic job now instead of at its next time. */
  notifyJob(name: NotifiedJob): void
  /** Returns how long this process has run, in milliseconds. */
  upMs(): number
  /** Whether the periodic jobs run in time and the job engines work. */
  jobsHealthy(): boolean
}

/** The functions that only a sandbox has. */
export interface Sandbox {
  /**
   * Moves the time of the service and of the simulator forward. A `move` with a name is carried out only
   * once.
   * @param record records the move, in the same transaction
   * @returns the service's time after the move
   */
  advanceClock(ms: number, move?: string, record?: RecordMove): Promise<Date>
}

/** The cookie in which a browser keeps the session of a person, out of the reach of scripts. */
export interface SessionCookie {
  /** The token that the browser sent; null where it sent none. */
  token: string | null
  /** The id of the member whose session the page shows; null where the page does not say. */
  memberId: string | null
  /** Replaces the cookie with the answer, or removes it. Null over a WebSocket, which cannot set cookies. */
  write: ((issued: { token: string; expiresIn: number } | null) => void) | null
}

/**
 * Returns the sandbox. @throws DomainError NOT_FOUND where the service is no sandbox, as for an unknown path
 */
export function sandboxOf({ sandbox }: Pick<Services, 'sandbox'>): Sandbox {
  if (!sandbox) throw new DomainError('NOT_FOUND', 'This operation exists only in a sandbox.')
  return sandbox
}

/** The context that every verb and resolver receives: the services, and the caller. */
export interface Context extends Services {
  /** The signed-in caller; null for an anonymous one. */
  actor: Actor | null
  /** A UUID, the same in the answer, the log and the error. */
  requestId: string
  clientAddress: string | null
  /** The channel by which the request came. */
  channel: Channel
  /**
   * The operation of a request with an `Idempotency-Key`, else null. A verb derives the identity of its new
   * rows from the operation, so that a repeated request finds the first row instead of making a second one.
   */
  idempotentOperation: IdempotentOperation | null
  /** The language of messages for people: French where the caller prefers it, else English. */
  language: 'fr' | 'en'
  /** Further headers of the answer, mostly those of rate limits. */
  responseHeaders: Map<string, string>
  /** The cursor of the last event that a reader got, sent by a reader that reconnects (`Last-Event-ID`). */
  lastEventId: string | null
  /** The cookie of a browser's session; null where no page of this service makes the request. */
  sessionCookie: SessionCookie | null
  /**
   * The newest position in the merchant's event log before the operation read anything; null where the
   * operation does not ask for it.
   */
  asOfSequence: Promise<bigint> | null
  /** The loaders of this caller, by name: see `loader`. */
  loaders: Map<string, unknown>
}

/** Returns the context of another caller. It has its own loaders, so that no caller gets another's rows. */
export function actingAs(ctx: Context, actor: Actor | null): Context {
  return { ...ctx, actor, loaders: new Map() }
}

/**
 * Returns a loader that collects the keys for which the resolvers of an operation ask at one time, and reads
 * them together. It keeps no value, because a live stream reads the same rows again later.
 * @param name names the loader: the kind of row and every filter
 * @param read returns one value for each key, in the order of the keys
 */
export function loader<Key, Value>(
  { loaders }: Pick<Context, 'loaders'>,
  name: string,
  read: (keys: readonly Key[]) => Promise<(Value | Error)[]>,
): DataLoader<Key, Value> {
  const known = loaders.get(name) as DataLoader<Key, Value> | undefined
  if (known) return known
  const made = new DataLoader<Key, Value>(read, { cache: false })
  loaders.set(name, made)
  return made
}
