import { randomBytes } from 'node:crypto'
import { base32 } from './totp.ts'
import { currentPepperId, hashSecret, type MasterSecret } from '../secrets/secrets.ts'

/** Makes the token of an invitation or of a password reset: 256 random bits that only the e-mail contains. */
export function makeMemberToken(master: MasterSecret): { token: string; hash: Buffer } {
  const token = randomBytes(32).toString('base64url')
  return { token, hash: hashOfMemberToken(master, token) }
}

/** Returns the hash of a member's token, which the database stores instead of the token. */
export function hashOfMemberToken(master: MasterSecret, token: string): Buffer {
  return hashSecret(token, master.pepper(currentPepperId))
}

/** Makes ten recovery codes for a member whose telephone is lost, 50 random bits each, and their hashes. */
export function makeRecoveryCodes(
  master: MasterSecret,
  memberId: number,
): { codes: string[]; hashes: Buffer[] } {
  const codes = Array.from({ length: recoveryCodes }, () =>
    base32(randomBytes(7)).slice(0, 10).replace(/.{5}/, '$&-'),
  )
  return { codes, hashes: codes.map((code) => hashOfRecoveryCode(master, memberId, code)) }
}

const recoveryCodes = 10

/**
 * Returns the hash of a recovery code. Small letters, dashes and spaces in the typed code make no difference.
 */
export function hashOfRecoveryCode(master: MasterSecret, memberId: number, typed: string): Buffer {
  const code = typed.toUpperCase().replaceAll(/[^A-Z2-7]/g, '')
  return hashSecret(`recovery:${memberId}:${code}`, master.pepper(currentPepperId))
}
