import pg from 'pg'
import type { Log } from '../telemetry/log.ts'
import { type Mark, readMark, writeMark } from './mark.ts'
import { ownerRole } from './ownership.ts'
import { sqlFunction } from './sql-function.ts'

const insertEpoch = sqlFunction('begin_epoch', { takes: { known: 'int', why: 'text' }, gives: 'int' })
const handleEpochs = sqlFunction('handle_epochs', { takes: {}, gives: 'void' })
const suspendSome = sqlFunction('suspend_credentials', {
  takes: { lost: 'int[]?', newest: 'bigint?', most: 'int' },
  gives: 'boolean',
})

/** Knows whether the database was restored from a backup, and keeps the evidence outside of the database. */
export interface Restores {
  /** True if a restore was noticed that no person has accepted yet: then no money leaves. */
  isWaiting(): boolean
  /**
   * True if a request that looks new may have been sent before a restore under the same identity, so that the
   * operator may know it: until the restore is accepted, and for `mayHaveSentForMs` after the epoch began.
   * Drivers then search before they send, and do not trust a refusal alone.
   */
  mayHaveSent(): boolean
  /**
   * Checks, before a new session is used, whether the database was restored meanwhile; handles a restore.
   */
  checkSession(client: pg.ClientBase): Promise<void>
  /**
   * Reads the state of the database and records it in the mark. Where the database was restored, begins a new
   * epoch, which halts payments out.
   */
  look(): Promise<void>
  /**
   * Does the same as `look`, before the caller of a change gets its answer. Never throws: if it fails, the
   * job `database.look` tries again.
   */
  record(): Promise<void>
  /** Sets the pool for later calls of `look`. */
  use(pool: pg.Pool): void
}

/** How long `mayHaveSent` is true in a new epoch. Choice: checkouts, prompts and collections end sooner. */
const mayHaveSentForMs = 24 * 60 * 60 * 1_000
/** The most credential changes in a mark. Choice: more than are usual between two backups. */
const changesMax = 1_000
const suspendedAtOnce = 500

interface Options {
  connection: pg.ClientConfig | string
  dataDir: string
  /** The value of `DATABASE_EPOCH`; null where it is not set, or does not matter. */
  expectedEpoch: number | null
  /**
   * Whether credentials are suspended where this node does not know which changes were lost. An
   * administrator's command leaves that to the service, which may know.
   */
  suspendsUnknown: boolean
  log: Log
}

/**
 * Compares the database with its recorded identity and with this node's mark, before the service begins.
 * Where the database was restored, a new epoch begins: payments out are halted, lost ids and positions are
 * not given again, and credentials that were replaced or ended after the backup stay invalid.
 * @throws Error where `DATABASE_EPOCH` names another epoch
 */
export async function openRestores(options: Options): Promise<Restores> {
  const { dataDir, expectedEpoch, log } = options
  const found = readMark(dataDir)
  if (found === 'unreadable') log.warn({ dataDir }, 'database-mark.json is unreadable and is written anew')
  const restores = new Watch(options, found === 'unreadable' ? null : found)
  const epoch = await restores.open()
  if (expectedEpoch !== null && expectedEpoch !== epoch) throw new Error(otherEpoch(epoch, expectedEpoch))
  return restores
}

function otherEpoch(epoch: number, expected: number): string {
  return epoch > expected
    ? `The database was restored: it is in epoch ${epoch}, and DATABASE_EPOCH is ${expected}. ` +
        `Set DATABASE_EPOCH=${epoch} once you know of the restore; no money leaves until it is accepted.`
    : `The database has an older state: it is in epoch ${epoch}, and DATABASE_EPOCH is ${expected}. ` +
        `Run "npm run admin -- restore declare" until it is in epoch ${expected}, or correct DATABASE_EPOCH.`
}

/** The result of one read of the database's state. */
interface Sight {
  id: string
  epoch: number
  systemIdentifier: string
  timeline: number
  databaseOid: string
  isWaiting: boolean
  /** Time since the epoch began; null in the first epoch. */
  epochAgeMs: number | null
  /** True if the credentials that a restore may have made valid again were suspended, for every epoch. */
  areKeysHandled: boolean
  /** How the database differs from its identity at the start of the epoch; null where it does not. */
  moved: string | null
  lastEventId: string
  lastRequestId: string
  /** Null where the read left them out. */
  credentialChanges: [string, number][] | null
}

class Watch implements Restores {
  readonly #options: Options
  #mark: Mark | null
  #sight: Sight | null = null
  #looking: Promise<void> | null = null
  #isUnwritable = false
  #pool: pg.Pool | null = null

  constructor(options: Options, mark: Mark | null) {
    this.#options = options
    this.#mark = mark
  }

  isWaiting(): boolean {
    return this.#sight?.isWaiting ?? false
  }

  mayHaveSent(): boolean {
    const age = this.#sight?.epochAgeMs ?? null
    return this.isWaiting() || (age !== null && age < mayHaveSentForMs)
  }

  /** Reads the state and handles a restore. @returns the epoch */
  async open(): Promise<number> {
    const sight = await this.#withClient(see)
    await this.#take(sight)
    return this.#sight?.epoch ?? sight.epoch
  }

  async checkSession(client: pg.ClientBase): Promise<void> {
    const sight = await see(client, { changes: false })
    if (whyRestored(sight, this.#mark) !== null) await this.#share(() => this.#withClient(see))
  }

  use(pool: pg.Pool): void {
    this.#pool = pool
  }

  async look(): Promise<void> {
    const pool = this.#pool
    if (!pool) return this.#share(() => this.#withClient(see))
    // The session is taken first: a new one waits in `checkSession` for a shared look, which must not wait
    // for it in turn.
    const client = await pool.connect()
    let isBroken = true
    try {
      await this.#share(() => see(client))
      isBroken = false
    } finally {
      client.release(isBroken)
    }
  }

  async record(): Promise<void> {
    try {
      // A read that is running may have begun before the change was committed.
      await this.#looking?.catch(() => {})
      await this.look()
    } catch (error) {
      this.#options.log.warn({ err: error }, 'the database mark could not be written; trying again')
    }
  }

  #share(read: () => Promise<Sight>): Promise<void> {
    this.#looking ??= read()
      .then((sight) => this.#take(sight))
      .finally(() => (this.#looking = null))
    return this.#looking
  }

  /** Uses a session of its own, because beginning an epoch may take longer than a pool allows a statement. */
  async #withClient<T>(work: (client: pg.Client) => Promise<T>): Promise<T> {
    const client = new pg.Client(this.#options.connection)
    client.on('error', () => {})
    await client.connect()
    try {
      // By default a session of the account sees no merchant (`migrate`).
      await client.query(`set role ${ownerRole}`)
      return await work(client)
    } finally {
      await client.end()
    }
  }

  async #take(found: Sight): Promise<void> {
    const why = whyRestored(found, this.#mark)
    const isLate = isSame(this.#mark, found) && this.#mark.epoch < found.epoch
    const { suspendsUnknown } = this.#options
    if (why === null && !isLate && (found.areKeysHandled || !suspendsUnknown)) return this.#keep(found)
    const sight = await this.#withClient(async (client) => {
      if (why !== null) {
        const epoch = await beginEpoch(client, found.epoch, why)
        const words =
          'alarm: the database was restored; no money leaves until "npm run admin -- restore accept"'
        this.#options.log.error({ epoch, why }, words)
      }
      await suspendCredentials(client, this.#mark, await see(client), suspendsUnknown)
      return see(client)
    })
    this.#keep(sight)
  }

  #keep(sight: Sight): void {
    this.#sight = sight
    const mark = markOf(sight, this.#mark)
    const isNews = JSON.stringify({ ...mark, at: '' }) !== JSON.stringify({ ...this.#mark, at: '' })
    if (!isNews) return
    this.#mark = mark
    try {
      writeMark(this.#options.dataDir, mark)
      this.#isUnwritable = false
    } catch (error) {
      const words =
        'DATA_DIR cannot keep the database mark: an older snapshot of this database can go unnoticed. Set ' +
        'DATABASE_EPOCH, and run "npm run admin -- restore declare" after each return to a snapshot'
      if (!this.#isUnwritable) this.#options.log.warn({ err: error }, words)
      this.#isUnwritable = true
    }
  }
}

/** Reads the state of the database. @param options.changes false leaves out the changes of credentials */
async function see(client: pg.ClientBase | pg.Pool, options = { changes: true }): Promise<Sight> {
  const { rows } = await client.query<Sight>(
    `SELECT i.id, i.epoch, i.system_identifier AS "systemIdentifier", i.timeline, i.moved,
       i.database_oid AS "databaseOid", i.restored_at IS NOT NULL AS "isWaiting",
       (SELECT extract(epoch FROM now() - e.began_at)::float8 * 1000 FROM database_epoch e
        WHERE e.epoch = i.epoch) AS "epochAgeMs",
       NOT EXISTS (SELECT FROM database_epoch e WHERE e.keys_handled_at IS NULL) AS "areKeysHandled",
       coalesce((SELECT max(id) FROM event), 0)::text AS "lastEventId",
       coalesce((SELECT max(id) FROM operator_request), 0)::text AS "lastRequestId",
       CASE WHEN $1 THEN coalesce((SELECT jsonb_agg(jsonb_build_array(c.id::text, c.api_key_id) ORDER BY c.id)
         FROM (SELECT * FROM credential_change ORDER BY id DESC LIMIT ${changesMax}) c), '[]')
       END AS "credentialChanges"
     FROM open_installation() i`,
    [options.changes],
  )
  const [sight] = rows
  if (!sight) throw new Error('The database does not say which installation it holds.')
  return sight
}

function isSame(mark: Mark | null, sight: Sight): mark is Mark {
  return mark?.installation === sight.id
}

/** Returns why this database must have been restored; null where there is no sign of it. */
function whyRestored(sight: Sight, mark: Mark | null): string | null {
  if (sight.moved !== null) return `the database was restored, copied or promoted: ${sight.moved}`
  if (!isSame(mark, sight) || mark.epoch < sight.epoch) return null
  if (mark.epoch > sight.epoch)
    return `the database is in epoch ${sight.epoch}, and this node has seen epoch ${mark.epoch}`
  const hasAll =
    BigInt(mark.lastEventId) <= BigInt(sight.lastEventId) &&
    BigInt(mark.lastRequestId) <= BigInt(sight.lastRequestId)
  return hasAll ? null : `the database lacks rows that this node saw in it before ${mark.at}`
}

function markOf(sight: Sight, before: Mark | null): Mark {
  const { id, epoch, systemIdentifier, timeline, databaseOid } = sight
  const known = isSame(before, sight) && before.epoch === epoch ? before : null
  // A read that began earlier may end later, so the higher id is kept.
  const later = (a: string, b: string | undefined) => (b && BigInt(b) > BigInt(a) ? b : a)
  return {
    installation: id,
    epoch,
    systemIdentifier,
    timeline,
    databaseOid,
    lastEventId: later(sight.lastEventId, known?.lastEventId),
    lastRequestId: later(sight.lastRequestId, known?.lastRequestId),
    credentialChanges: sight.credentialChanges ?? known?.credentialChanges ?? [],
    at: new Date().toISOString(),
  }
}

/**
 * Begins the epoch after `known`, once among all nodes.
 * @returns the epoch of the database afterwards
 */
export async function beginEpoch(client: pg.ClientBase, known: number, why: string): Promise<number> {
  return insertEpoch(client, { known, why })
}

/**
 * Makes sure that a credential that was replaced or ended after the backup stays invalid. A node whose mark
 * goes back far enough suspends only these credentials. Otherwise, with `suspendsUnknown`, every key from
 * before the restore is suspended, and every session from before it ends.
 */
async function suspendCredentials(
  client: pg.Client,
  mark: Mark | null,
  sight: Sight,
  suspendsUnknown: boolean,
): Promise<void> {
  const lost = lostChanges(mark, sight)
  if (lost !== null) {
    // A credential that changed after the last change in the mark no longer has the state of the backup.
    await suspend(client, lost, BigInt(mark?.credentialChanges.at(-1)?.[0] ?? 0))
  } else {
    if (!suspendsUnknown || sight.areKeysHandled) return
    await suspend(client, null, null)
  }
  await handleEpochs(client, {})
}

/** Suspends credentials in small transactions, each of which waits only for the payments of its merchants. */
async function suspend(client: pg.Client, lost: number[] | null, newest: bigint | null): Promise<void> {
  let more: boolean
  do {
    more = await suspendSome(client, { lost, newest, most: suspendedAtOnce })
  } while (more)
}

/**
 * Returns the credentials whose replacement or end this node has seen and the database lacks; null where the
 * node cannot know them all.
 */
function lostChanges(mark: Mark | null, sight: Sight): number[] | null {
  if (!isSame(mark, sight)) return null
  const there = sight.credentialChanges ?? []
  const kept = new Set(there.map(([id]) => id))
  const [oldest, newest] = [BigInt(there[0]?.[0] ?? 0), BigInt(there.at(-1)?.[0] ?? 0)]
  const first = BigInt(mark.credentialChanges[0]?.[0] ?? 0)
  // The mark holds only the newest changes: where all of them are newer than the database's, others may be
  // lost too.
  if (mark.credentialChanges.length >= changesMax && first > newest) return null
  return mark.credentialChanges.flatMap(([id, apiKeyId]) =>
    BigInt(id) >= oldest && !kept.has(id) ? [apiKeyId] : [],
  )
}
