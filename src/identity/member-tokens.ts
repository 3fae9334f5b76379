import { randomBytes } from 'node:crypto'
import { base32 } from './totp.ts'
import { currentPepperId, hashSecret, type MasterSecret } from './secrets.ts'

/** What an invitation or a reset is proven by: 256 random bits that only the letter has. */
export function makeMemberToken(master: MasterSecret): { token: string; hash: Buffer } {
  const token = randomBytes(32).toString('base64url')
  return { token, hash: hashOfMemberToken(master, token) }
}

/** What the database keeps of it. */
export function hashOfMemberToken(master: MasterSecret, token: string): Buffer {
  return hashSecret(token, master.pepper(currentPepperId))
}

/** Ten codes that stand in for a telephone that is lost, 50 random bits each, and what is kept of them. */
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

/** In whatever letters and with whatever dashes it was typed. */
export function hashOfRecoveryCode(master: MasterSecret, memberId: number, typed: string): Buffer {
  const code = typed.toUpperCase().replaceAll(/[^A-Z2-7]/g, '')
  return hashSecret(`recovery:${memberId}:${code}`, master.pepper(currentPepperId))
}
