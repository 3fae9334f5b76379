import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Access } from '../../../src/identity/callers/authenticate.ts'
import { makeRecoveryCodes } from '../../../src/identity/members/member-tokens.ts'
import { encrypt } from '../../../src/identity/secrets/encrypt.ts'
import { totpCode } from '../../../src/identity/members/totp.ts'
import { verifySecondFactor, totpAad } from '../../../src/resources/team/verify-second-factor.ts'
import { makeMember } from '../../kit/members.ts'
import { makeMerchant, master, openTestAccess } from '../../kit/merchants.ts'
import { createTestDatabase, type TestDatabase } from '../../kit/database.ts'

let db: TestDatabase
let access: Access
let memberId: number
const secret = Buffer.alloc(20, 'secret')
beforeAll(async () => {
  db = await createTestDatabase()
  access = await openTestAccess(db.database.pool)
  const { merchantId } = await makeMerchant(db.database.pool)
  memberId = (await makeMember(access, merchantId, 'owner')).memberId
  const encrypted = encrypt(master.encryptionKey, secret, totpAad(memberId))
  await db.owner.query('UPDATE member_secret SET totp_encrypted = $2 WHERE member_id = $1', [
    memberId,
    encrypted,
  ])
})
afterAll(async () => {
  access.close()
  await db.drop()
})

const proves = (code: string) => verifySecondFactor(db.database.pool, master, memberId, code)
/** Shows a code 20 times at once. @returns the number of times that it was taken */
async function taken(code: string): Promise<number> {
  const shown = await Promise.all(Array.from({ length: 20 }, () => proves(code)))
  return shown.filter(Boolean).length
}
const step = () => BigInt(Math.floor(Date.now() / 30_000))

test('a code of the application, shown 20 times at once, is taken once; an older one never', async () => {
  const now = step()
  expect(await taken(totpCode(secret, now))).toBe(1)
  expect(await proves(totpCode(secret, now - 1n))).toBe(false)
  expect(await taken(totpCode(secret, now + 1n))).toBe(1)
  expect(await proves(totpCode(secret, now + 1n))).toBe(false)
})

test('a recovery code that is shown 20 times at once is taken once, and the others stay good', async () => {
  const { codes, hashes } = makeRecoveryCodes(master, memberId)
  await db.owner.query('UPDATE member_secret SET recovery_hashes = $2 WHERE member_id = $1', [
    memberId,
    hashes,
  ])
  for (const code of codes.slice(0, 3)) expect(await taken(code)).toBe(1)
  const results = await Promise.all(codes.map(proves))
  expect(results).toEqual([
    ...Array.from({ length: 3 }, () => false),
    ...Array.from({ length: 7 }, () => true),
  ])
})

test('ten codes that are shown at once are each taken', async () => {
  const { codes, hashes } = makeRecoveryCodes(master, memberId)
  await db.owner.query('UPDATE member_secret SET recovery_hashes = $2 WHERE member_id = $1', [
    memberId,
    hashes,
  ])
  expect(await Promise.all(codes.map(proves))).not.toContain(false)
})
