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
import { invariant } from '../shared/invariant.ts'
import { Secret } from '../shared/secret.ts'

/**
 * The one secret of an installation. Every other key is derived from it (HKDF-SHA-256, one purpose each), so
 * that one thing must be kept safe; with the database alone nobody guesses secrets or signs tokens.
 */
export class MasterSecret {
  readonly #root: KeyObject
  #receiptKey: KeyObject | undefined
  #identityKey: KeyObject | undefined

  constructor(root: Uint8Array) {
    this.#root = createSecretKey(root)
  }

  /** The key under which API secrets are hashed; the row of a hash says which. */
  pepper(id: number): KeyObject {
    return createSecretKey(this.#derive(`api-secret-pepper:${id}`))
  }

  /** What passwords are hashed with, besides their salt; the form of a hash says which. */
  get passwordPepper(): KeyObject {
    return createSecretKey(this.#derive('password-pepper:1'))
  }

  /** Bytes that only this installation knows, always the same for the same request: see `pairFor`. */
  pairSeed(operationId: string): Buffer {
    return this.#derive(`api-key-pair:${operationId}`, 1_024)
  }

  /** AES-256 key that seals what must be read again: see `encrypt.ts`. */
  get encryptionKey(): KeyObject {
    return createSecretKey(this.#derive('sealing'))
  }

  /** The key from which the callback addresses given to operators are made. */
  get callbackSecret(): KeyObject {
    return createSecretKey(this.#derive('operator-callbacks'))
  }

  /** The key from which the addresses of receipts are made; kept, for lists ask for many. */
  get receiptKey(): KeyObject {
    this.#receiptKey ??= createSecretKey(this.#derive('receipts'))
    return this.#receiptKey
  }

  /** The key of `operatorIdentity`; kept, because each payment needs it. */
  get identityKey(): KeyObject {
    this.#identityKey ??= createSecretKey(this.#derive('operator-identities'))
    return this.#identityKey
  }

  /** The key that proves the heads of audit logs. */
  get auditKey(): KeyObject {
    return createSecretKey(this.#derive('audit-log'))
  }

  #derive(purpose: string, length = 32): Buffer {
    return Buffer.from(hkdfSync('sha256', this.#root, 'merchant-payments', purpose, length))
  }
}

/**
 * The configured secret, or else the one kept in `secret.key` of the data folder, which is made when it is
 * missing. Processes that start at the same moment get the same one.
 * @throws Error where the file holds something else
 */
export async function openMasterSecret(configured: Secret | null, dataDir: string): Promise<MasterSecret> {
  if (configured) return new MasterSecret(Buffer.from(configured.reveal(), 'utf8'))
  const path = join(dataDir, 'secret.key')
  const text = (await readIfThere(path)) ?? (await makeSecretFile(dataDir, path))
  if (!/^[\w-]{43}\n$/.test(text)) throw new Error(`${path} is damaged: restore it from a backup.`)
  // As text, so that the file's content may become the setting and the other way round.
  return new MasterSecret(Buffer.from(text.trim(), 'utf8'))
}

/** Which pepper hashes new secrets. */
export const currentPepperId = 1

/** Both halves of an API key. */
export interface Pair {
  key: string
  secret: Secret
}

/**
 * A pair for a request. One that came with an `Idempotency-Key` and is begun again gets the same pair: what
 * it made the first time is found by it, and its secret, which nobody kept, can be told.
 */
export function pairFor(master: MasterSecret, operationId: string | null): Pair {
  if (operationId === null) return { key: makeApiKey(), secret: makeApiSecret() }
  const seed = master.pairSeed(operationId)
  let at = 0
  const draw = (count: number) => seed.subarray(at, (at += count))
  return { key: makeApiKey(draw), secret: makeApiSecret(draw) }
}

type Draw = (count: number) => Uint8Array

/** A new public key, `mk_` and 22 letters or digits: 131 random bits. */
export function makeApiKey(draw: Draw = randomBytes): string {
  return `mk_${randomBase62(22, draw)}`
}

/** A new secret, `ms_` and 49 letters or digits: 256 random bits and a CRC-32 that tells typing errors. */
export function makeApiSecret(draw: Draw = randomBytes): Secret {
  const body = randomBase62(43, draw)
  return new Secret(`ms_${body}${checksum(body)}`)
}

/** As much of a key as says which one it is. */
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
 * What the database keeps of a secret: its HMAC-SHA-256, 32 bytes.
 * Choice: no slow hash. Against 256 random bits it adds nothing, and it would let anyone busy us.
 */
export function hashSecret(secret: string, pepper: KeyObject): Buffer {
  return createHmac('sha256', pepper).update(secret).digest()
}

/** What a key's row says about its secret. */
export interface StoredSecret {
  secretHash: Uint8Array
  pepperId: number
}

/** Whether the secret is the stored one. `null`, an unknown key, takes the same work and is never a match. */
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

/** Written whole beside the file, then linked to its name: who comes second finds the first one's whole. */
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

/** The name must outlive a power cut too: keys hashed under a lost secret are lost with it. */
async function syncFolder(path: string): Promise<void> {
  // Windows opens no folder as a file, and writes names through by itself.
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

/** Bytes from 248 on are drawn again: 248 is a multiple of 62, so no letter comes up more often. */
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

/** CRC-32 in six base-62 digits. */
function checksum(body: string): string {
  let rest = crc32(body)
  let digits = ''
  for (let index = 0; index < 6; index += 1) {
    digits = alphabet.charAt(rest % 62) + digits
    rest = Math.floor(rest / 62)
  }
  return digits
}
