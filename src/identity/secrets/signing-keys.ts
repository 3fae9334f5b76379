import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type JsonWebKey,
  type KeyObject,
} from 'node:crypto'
import type pg from 'pg'
import { invariant } from '../../shared/invariant.ts'
import { limits } from '../../shared/limits.ts'
import { encrypt, decrypt } from './encrypt.ts'
import type { MasterSecret } from './secrets.ts'
import { sqlFunction } from '../../database/sql-function.ts'

const keepSigningKey = sqlFunction('keep_signing_key', {
  takes: { name: 'text', publicHalf: 'jsonb', encrypted: 'bytea' },
  gives: 'void',
})

/** The keys that sign access tokens, shared by all processes that use one database. */
export interface SigningKeys {
  /** The key that signs now. */
  readonly current: { kid: string; privateKey: KeyObject }
  /**
   * Finds the public half of a signing key; `null` for a key that never existed, or is no longer accepted.
   */
  find(kid: string): Promise<KeyObject | null>
}

/**
 * Loads the signing keys, and makes the first one where there is none.
 * @throws Error where the newest key was encrypted under another master secret
 */
export async function openSigningKeys(pool: pg.Pool, master: MasterSecret): Promise<SigningKeys> {
  let rows = await load(pool)
  if (!rows.some((row) => !row.retired)) {
    await make(pool, master)
    rows = await load(pool)
  }
  const newest = rows.find((row) => !row.retired)
  invariant(newest, 'a signing key that was just made is there')
  const current = { kid: newest.kid, privateKey: openPrivate(master, newest) }

  let known = publicKeys(rows)
  let loadedAt = performance.now()
  let loading: Promise<void> | null = null
  const reload = async () => {
    known = publicKeys(await load(pool))
    loadedAt = performance.now()
  }
  return {
    current,
    async find(kid) {
      const key = known.get(kid)
      if (key) return key
      // Another process may have made a key since the last load. A caller that invents key names causes one
      // reload a second at most.
      if (!loading) {
        if (performance.now() - loadedAt < reloadIntervalMs) return null
        loading = reload().finally(() => {
          loading = null
        })
      }
      await loading
      return known.get(kid) ?? null
    },
  }
}

const reloadIntervalMs = 1_000

interface SigningKeyRow {
  kid: string
  public_key: JsonWebKey
  encrypted_private: Buffer
  retired: boolean
}

/**
 * Loads the keys, the newest first. A retired key is accepted for as long as a token that it signed may live.
 */
async function load(pool: pg.Pool): Promise<SigningKeyRow[]> {
  const { rows } = await pool.query<SigningKeyRow>(
    `SELECT kid, public_key, encrypted_private, retired_at IS NOT NULL AS retired FROM signing_key
     WHERE retired_at IS NULL OR retired_at > now() - make_interval(hours => $1)
     ORDER BY created_at DESC, kid DESC`,
    [limits.tokenHoursMax],
  )
  return rows
}

/**
 * Makes the first key. Keys are numbered, so that the table's primary key lets only one of several starting
 * processes win. One statement reads both whether a key is missing and the next number: a process that comes
 * late makes no key.
 */
async function make(pool: pg.Pool, master: MasterSecret): Promise<void> {
  const { rows } = await pool.query<{ kid: string }>(
    `SELECT 'k' || count(*) + 1 AS kid FROM signing_key
     HAVING count(*) FILTER (WHERE retired_at IS NULL) = 0`,
  )
  const kid = rows[0]?.kid
  if (!kid) return
  const { publicKey, privateKey } = generateKeyPairSync('ed25519')
  const encrypted = encrypt(master.encryptionKey, privateKey.export({ format: 'der', type: 'pkcs8' }), kid)
  await keepSigningKey(pool, { name: kid, publicHalf: publicKey.export({ format: 'jwk' }), encrypted })
}

function publicKeys(rows: readonly SigningKeyRow[]): ReadonlyMap<string, KeyObject> {
  return new Map(rows.map((row) => [row.kid, createPublicKey({ key: row.public_key, format: 'jwk' })]))
}

/**
 * Decrypts a private key. A wrong master secret is reported here, at the start: under it no API secret would
 * match either.
 */
function openPrivate(master: MasterSecret, { kid, encrypted_private }: SigningKeyRow): KeyObject {
  try {
    return createPrivateKey({
      key: decrypt(master.encryptionKey, encrypted_private, kid),
      format: 'der',
      type: 'pkcs8',
    })
  } catch (cause) {
    const advice =
      'Give SECRET_KEY, or the secret.key file of the data folder, that this database was set up with.'
    throw new Error(`The master secret does not open signing key ${kid}. ${advice}`, { cause })
  }
}
