import { createHmac } from 'node:crypto'

/** The period of a code: authenticator applications show a new one every 30 s (RFC 6238). */
const stepMs = 30_000
const digits = 6
/** The steps by which a telephone's clock may differ from ours. */
const toleranceSteps = [0n, -1n, 1n]

/**
 * Returns the 6-digit code of one 30-second step (RFC 4226, section 5.3). It uses HMAC-SHA-1, because every
 * authenticator application supports that.
 */
export function totpCode(secret: Uint8Array, step: bigint): string {
  const counter = Buffer.alloc(8)
  counter.writeBigUInt64BE(step)
  const mac = createHmac('sha1', secret).update(counter).digest()
  const offset = (mac.at(-1) ?? 0) & 0xf
  const number = mac.readUInt32BE(offset) & 0x7fff_ffff
  return String(number % 10 ** digits).padStart(digits, '0')
}

/** Finds the step that has this code: the present one, the one before or the next; null where none has it. */
export function stepOfCode(secret: Uint8Array, code: string, nowMs: number = Date.now()): bigint | null {
  const present = BigInt(Math.floor(nowMs / stepMs))
  const steps = toleranceSteps.map((offset) => present + offset)
  return steps.find((step) => step >= 0n && totpCode(secret, step) === code) ?? null
}

/**
 * Returns the address that an authenticator application reads, as text or from a QR code: `otpauth://totp/…`.
 */
export function totpUri(issuer: string, account: string, secret: Uint8Array): string {
  const name = `${encodeURIComponent(issuer)}:${encodeURIComponent(account)}`
  const given = new URLSearchParams({ secret: base32(secret), issuer })
  return `otpauth://totp/${name}?${given}`
}

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'

/** Encodes bytes in base 32 (RFC 4648), without padding. */
export function base32(bytes: Uint8Array): string {
  const bits = Array.from(bytes, (byte) => byte.toString(2).padStart(8, '0')).join('')
  const parts = bits.match(/.{1,5}/g) ?? []
  return parts.map((part) => alphabet.charAt(Number.parseInt(part.padEnd(5, '0'), 2))).join('')
}
