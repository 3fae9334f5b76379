import { argon2, type KeyObject, randomBytes, timingSafeEqual } from 'node:crypto'
import { promisify } from 'node:util'
import { DomainError } from '../../shared/errors.ts'

/**
 * The bounds of argon2id (OWASP's minimum): the work of one hash, the most hashes at once, and the most that
 * wait.
 */
export const passwordBounds = { memoryKib: 19_456, passes: 2, atOnceMax: 2, queueMax: 32 }

/** The stored form of a password: `$argon2id$v=19$m=…,t=…,p=1,keyid=…$salt$hash` (PHC's form). */
export type PasswordHash = string

/**
 * Hashes passwords with argon2id under a pepper, so that a stolen database alone is not enough to guess them.
 * Each hash takes 19 MiB and tens of milliseconds on purpose: two are made at once, and a bounded number
 * waits.
 */
export class Passwords {
  readonly #pepper: KeyObject
  readonly #waiting: (() => void)[] = []
  #underWay = 0

  constructor(pepper: KeyObject) {
    this.#pepper = pepper
  }

  /** Hashes a password for storage. @throws DomainError OVERLOADED */
  async hash(password: string): Promise<PasswordHash> {
    const salt = randomBytes(saltBytes)
    const { memoryKib: memory, passes } = passwordBounds
    const digest = await this.#digest(password, salt, { memory, passes })
    return `$argon2id$v=19$m=${memory},t=${passes},p=1,keyid=${pepperId}$${bare(salt)}$${bare(digest)}`
  }

  /**
   * Whether a password matches the stored hash. `null`, for a person who has no password or is unknown, takes
   * the same work and never matches.
   * @throws DomainError OVERLOADED
   */
  async matches(password: string, stored: PasswordHash | null): Promise<boolean> {
    const { memory, passes, salt, digest } = (stored === null ? null : read(stored)) ?? nobodys()
    const given = await this.#digest(password, salt, { memory, passes })
    return timingSafeEqual(given, digest) && stored !== null
  }

  async #digest(password: string, nonce: Buffer, cost: { memory: number; passes: number }): Promise<Buffer> {
    if (this.#waiting.length >= passwordBounds.queueMax) throw new DomainError('OVERLOADED')
    if (this.#underWay >= passwordBounds.atOnceMax) {
      // A hash that ends hands its slot to the next one that waits.
      await new Promise<void>((resolve) => this.#waiting.push(resolve))
    } else this.#underWay += 1
    try {
      return await derive('argon2id', {
        message: password.normalize('NFC'),
        nonce,
        parallelism: 1,
        tagLength: digestBytes,
        ...cost,
        secret: this.#pepper.export(),
      })
    } finally {
      const next = this.#waiting.shift()
      if (next) next()
      else this.#underWay -= 1
    }
  }
}

const derive = promisify(argon2)
const saltBytes = 16
const digestBytes = 32
/** The name of the pepper, in the base 64 of PHC. */
const pepperId = 'MQ'

interface Stored {
  memory: number
  passes: number
  salt: Buffer
  digest: Buffer
}

/** Makes a random digest, which stands for the password of a person who has none. */
function nobodys(): Stored {
  const { memoryKib: memory, passes } = passwordBounds
  return { memory, passes, salt: randomBytes(saltBytes), digest: randomBytes(digestBytes) }
}

function read(stored: PasswordHash): Stored | null {
  const found = /^\$argon2id\$v=19\$m=(\d+),t=(\d+),p=1,keyid=MQ\$([^$]+)\$([^$]+)$/.exec(stored)
  const [, memory = '', passes = '', salt = '', digest = ''] = found ?? []
  if (!found) return null
  return {
    memory: Number(memory),
    passes: Number(passes),
    salt: Buffer.from(salt, 'base64'),
    digest: Buffer.from(digest, 'base64'),
  }
}

/** Returns base 64 as PHC writes it: without padding. */
function bare(bytes: Buffer): string {
  return bytes.toString('base64').replace(/=+$/, '')
}
