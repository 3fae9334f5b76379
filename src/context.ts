import DataLoader from 'dataloader'
import type { Access } from './identity/authenticate.ts'
import type { HeadLog } from './audit/audit-heads.ts'
import type { Admission } from './limits/admission.ts'
import type { Channel } from './audit/audit-log.ts'
import type { Actor } from './identity/actor.ts'
import type { IdempotentOperation } from './idempotency/idempotency-keys.ts'
import type { RequestLimits } from './limits/request-limits.ts'
import type { Addresses, Config } from './config/config.ts'
import type { Batches } from './database/batch.ts'
import type { Database } from './database/client.ts'
import type { Restores } from './database/restores.ts'
import type { RecordMove } from './database/sandbox-clock.ts'
import type { Feed } from './events/feed.ts'
import type { Sequencer } from './events/sequencer.ts'
import type { Mailer } from './mail/mailer.ts'
import type { OperatorRegistry } from './operators/registry.ts'
import type { Drains } from './jobs/drain.ts'
import type { Leases } from './jobs/leases.ts'
import type { Subjects } from './requests/subjects.ts'
import type { Clock } from './shared/clock.ts'
import type { InFlight } from './shared/single-flight.ts'
import type { Sender } from './shared/sender.ts'
import type { Log } from './telemetry/log.ts'

/** What lives as long as the service. */
export interface Services {
  config: Config
  addresses: Addresses
  log: Log
  clock: Clock
  database: Database
  batches: Batches
  /** Whether the database was put back, and what this node has seen in it. */
  restores: Restores
  access: Access
  requestLimits: RequestLimits
  admission: Admission
  mailer: Mailer
  operators: OperatorRegistry
  sequencer: Sequencer
  auditHeads: HeadLog
  /** Brings events to merchants' own servers. */
  webhookSender: Sender
  /** Which lanes this process is at: endpoints by their ids, bulk pay as 0. Its sessions are theirs alone. */
  leases: Leases
  /** The lanes that are drained here. */
  drains: Drains
  feed: Feed
  inFlight: InFlight
  /** Every kind of thing that a request to an operator may be for. */
  subjects: Subjects
  /** Aborted when the service begins to end: whoever waits for an outcome answers without it. */
  ending: AbortSignal
  /**
   * How many live streams each token (`token:<id>`) and each merchant (`merchant:<id>`) has open here, and
   * how many files it is sending (`imports:<id>`).
   */
  streams: Map<string, number>
  /** Moves the sandbox clock; null in production. */
  sandbox: Sandbox | null
  /** Where the operator simulator shows its telephones; null where there is none. */
  simulatorUrl: string | null
  /** Runs a periodic job now instead of at its next time. */
  notifyJob(name: string): void
  /** How long this process has run, in milliseconds. */
  upMs(): number
  /** Whether every periodic job still gets its turn. */
  jobsHealthy(): boolean
}

/** What only a sandbox can do. */
export interface Sandbox {
  /**
   * Moves the service's and the simulator's time forward, once for each `move` that has a name.
   * @param record writes that down, in the transaction that does it
   * @returns the service's time after that
   */
  advanceClock(ms: number, move?: string, record?: RecordMove): Promise<Date>
}

/** What every verb and every resolver receives: the services, and who is asking. */
export interface Context extends Services {
  /** Null where nobody is signed in. */
  actor: Actor | null
  /** UUID, the same in the answer, the log and the error. */
  requestId: string
  clientAddress: string | null
  /** The way in by which the request came. */
  channel: Channel
  /**
   * Of a request that came with an `Idempotency-Key`: what a verb makes for it takes its identity from here
   * (a reference, a cause), so that beginning it again finds the first instead of making a second.
   */
  idempotentOperation: IdempotentOperation | null
  /** What people are told in: the caller's wish where it is French, else English. */
  language: 'fr' | 'en'
  /** Headers that the answer carries, where it has any: limits above all. */
  responseHeaders: Map<string, string>
  /** Cursor of the last event that the reader of a live stream has; one that comes back brings it. */
  lastEventId: string | null
  /** The loaders of this caller, by name: see `loader`. */
  loaders: Map<string, unknown>
}

/** Gives the context of another caller. It has its own loaders, so that no caller gets rows of another. */
export function actingAs(ctx: Context, actor: Actor | null): Context {
  return { ...ctx, actor, loaders: new Map() }
}

/**
 * Collects the keys that the resolvers of an operation ask for at one time, and reads them together. It keeps
 * no value, because a live stream reads the same rows again later.
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
