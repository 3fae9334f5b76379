import {
  createHmac,
  createSecretKey,
  hkdfSync,
  type KeyObject,
  randomBytes,
  randomUUID,
  timingSafeEqual,
} from 'node:crypto'
import { link, mkdir, open, readFile, unlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import { invariant } from '../../shared/invariant.ts'
import { Secret } from '../../shared/secret.ts'

/**
 * The one secret of an installation. Other keys are derived from it (HKDF-SHA-256, one purpose each), and
 * signing keys are encrypted under one of them, so that only one secret must be kept safe. The database alone
 * is not enough to guess secrets or to sign tokens.
 */
export class MasterSecret {
  readonly #root: KeyObject
  #receiptKey: KeyObject | undefined
  #identityKey: KeyObject | undefined

  constructor(root: Uint8Array) {
    this.#root = createSecretKey(root)
  }

  /**
   * Returns the pepper with this id: the key under which API secrets, members' tokens and recovery codes are
   * hashed. The stored hash of an API secret keeps the id of its pepper.
   */
  pepper(id: number): KeyObject {
    return createSecretKey(this.#derive(`api-secret-pepper:${id}`))
  }

  /**
   * The pepper of passwords: each password is hashed with it and with a salt. The stored hash names its
   * pepper.
   */
  get passwordPepper(): KeyObject {
    return createSecretKey(this.#derive('password-pepper:1'))
  }

  /**
   * Returns bytes that only this installation can derive, the same each time for one operation (`pairFor`).
   */
  pairSeed(operationId: string): Buffer {
    return this.#derive(`api-key-pair:${operationId}`, 1_024)
  }

  /** The AES-256 key for values that must be read again: see `encrypt.ts`. */
  get encryptionKey(): KeyObject {
    return createSecretKey(this.#derive('sealing'))
  }

  /** The key that makes the callback addresses given to operators. */
  get callbackSecret(): KeyObject {
    return createSecretKey(this.#derive('operator-callbacks'))
  }

  /** The key that makes the addresses of receipts; kept in memory, because a list needs it for every row. */
  get receiptKey(): KeyObject {
    this.#receiptKey ??= createSecretKey(this.#derive('receipts'))
    return this.#receiptKey
  }

  /** The key of `operatorIdentity`; kept in memory, because each payment needs it. */
  get identityKey(): KeyObject {
    this.#identityKey ??= createSecretKey(this.#derive('operator-identities'))
    return this.#identityKey
  }

  /** The key that authenticates the chains and heads of audit logs. */
  get auditKey(): KeyObject {
    return createSecretKey(this.#derive('audit-log'))
  }

  #derive(purpose: string, length = 32): Buffer {
    return Buffer.from(hkdfSync('sha256', this.#root, 'merchant-payments', purpose, length))
  }
}

/**
 * Opens the configured secret, or else the secret in the file `secret.key` of the data folder. If the file is
 * missing, creates it; processes that start at the same moment get the same secret.
 * @throws Error where the file holds something else
 */
export async function openMasterSecret(configured: Secret | null, dataDir: string): Promise<MasterSecret> {
  if (configured) return new MasterSecret(Buffer.from(configured.reveal(), 'utf8'))
  const path = join(dataDir, 'secret.key')
  const text = (await readIfThere(path)) ?? (await makeSecretFile(dataDir, path))
  if (!/^[\w-]{43}\n$/.test(text)) throw new Error(`${path} is damaged: restore it from a backup.`)
  // The text itself is the secret, so that the content of the file can become the setting, and the reverse.
  return new MasterSecret(Buffer.from(text.trim(), 'utf8'))
}

/** The id of the pepper that hashes new secrets. */
export const currentPepperId = 1

/** Both halves of an API key. */
export interface Pair {
  key: string
  secret: Secret
}

/**
 * Makes the pair of a request. A repetition of a request with an `Idempotency-Key` gets the same pair: it
 * finds the key that the first try created, and can show the secret although it was never stored.
 */
export function pairFor(master: MasterSecret, operationId: string | null): Pair {
  if (operationId === null) return { key: makeApiKey(), secret: makeApiSecret() }
  const seed = master.pairSeed(operationId)
  let at = 0
  const draw = (count: number) => seed.subarray(at, (at += count))
  return { key: makeApiKey(draw), secret: makeApiSecret(draw) }
}

type Draw = (count: number) => Uint8Array

/** Makes a public key, `mk_` and 22 letters or digits: 131 random bits. */
export function makeApiKey(draw: Draw = randomBytes): string {
  return `mk_${randomBase62(22, draw)}`
}

/**
 * Makes a secret, `ms_` and 49 letters or digits: 256 random bits and a CRC-32 that detects typing errors.
 */
export function makeApiSecret(draw: Draw = randomBytes): Secret {
  const body = randomBase62(43, draw)
  return new Secret(`ms_${body}${checksum(body)}`)
}

/** Returns the first characters of a key, enough to recognise it. */
export function prefixOf(key: string): string {
  return key.slice(0, 8)
}

export function isApiKey(text: string): boolean {
  return /^mk_[0-9A-Za-z]{22}$/.test(text)
}

export function isApiSecret(text: string): boolean {
  return /^ms_[0-9A-Za-z]{49}$/.test(text) && checksum(text.slice(3, 46)) === text.slice(46)
}

/**
 * Returns the stored form of a secret: its HMAC-SHA-256, 32 bytes. Choice: no slow hash. A slow hash adds
 * nothing for the 256 random bits of an API secret, and any caller could keep the service busy with it.
 */
export function hashSecret(secret: string, pepper: KeyObject): Buffer {
  return createHmac('sha256', pepper).update(secret).digest()
}

/** The stored hash of a key's secret, and the id of its pepper. */
export interface StoredSecret {
  secretHash: Uint8Array
  pepperId: number
}

/**
 * Whether the secret is the stored one. `null`, for an unknown key, takes the same work and never matches.
 */
export function secretMatches(master: MasterSecret, secret: string, stored: StoredSecret | null): boolean {
  const { secretHash, pepperId } = stored ?? nobodys
  const matches = timingSafeEqual(hashSecret(secret, master.pepper(pepperId)), secretHash)
  return matches && stored !== null
}

const nobodys: StoredSecret = { secretHash: randomBytes(32), pepperId: currentPepperId }

async function readIfThere(path: string): Promise<string | null> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if (isCode(error, 'ENOENT')) return null
    throw error
  }
}

/**
 * Makes the file of the secret. The file is written under a temporary name and then linked to its final name:
 * a process that comes second finds the whole file of the first.
 */
async function makeSecretFile(dataDir: string, path: string): Promise<string> {
  await mkdir(dataDir, { recursive: true })
  const draft = `${path}.${randomUUID()}`
  try {
    const text = `${randomBytes(32).toString('base64url')}\n`
    await writeFile(draft, text, { flag: 'wx', mode: 0o600, flush: true })
    await link(draft, path)
  } catch (error) {
    if (!isCode(error, 'EEXIST')) throw error
  } finally {
    await unlink(draft).catch(() => undefined)
  }
  await syncFolder(dataDir)
  return readFile(path, 'utf8')
}

/**
 * Writes the folder to the disk, so that the file's name survives a power cut: keys hashed under a lost
 * secret are lost with it.
 */
async function syncFolder(path: string): Promise<void> {
  // Windows cannot open a folder as a file, and writes names to the disk by itself.
  if (process.platform === 'win32') return
  const folder = await open(path, 'r')
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code
}

const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/**
 * Draws letters and digits. Bytes from 248 on are drawn again: 248 is a multiple of 62, so that no letter is
 * more frequent than another.
 */
function randomBase62(length: number, draw: Draw): string {
  let text = ''
  while (text.length < length) {
    const bytes = draw(length - text.length)
    invariant(bytes.length > 0, 'there is always another byte to draw')
    for (const byte of bytes) {
      if (byte < 248) text += alphabet.charAt(byte % 62)
    }
  }
  return text
}

/** Returns the CRC-32 of the text in six base-62 digits. */
function checksum(body: string): string {
  let rest = crc32(body)
  let digits = ''
  for (let index = 0; index < 6; index += 1) {
    digits = alphabet.charAt(rest % 62) + digits
    rest = Math.floor(rest / 62)
  }
  return digits
}
