import { createSecretKey } from 'node:crypto'
import { expect, test } from 'vitest'
import { passwordBounds, Passwords } from '../../src/identity/members/passwords.ts'

const passwords = new Passwords(createSecretKey(Buffer.alloc(32, 7)))
const hash = await passwords.hash('un mot de passe')

test('a hash states its parameters, and two hashes of one password differ', async () => {
  expect(hash).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1,keyid=MQ\$[\w+/]{22}\$[\w+/]{43}$/)
  expect(await passwords.hash('un mot de passe')).not.toBe(hash)
})

test('a hash matches its password, also as another keyboard writes it, and no other password', async () => {
  expect(await passwords.matches('un mot de passe', hash)).toBe(true)
  expect(await passwords.matches('un mot de passé', hash)).toBe(false)
  expect(await passwords.matches('un mot de passe', null)).toBe(false)
  const accented = await passwords.hash('mot de passé')
  expect(await passwords.matches('mot de passe\u0301', accented)).toBe(true)
})

test('a hash matches no password without the pepper', async () => {
  const other = new Passwords(createSecretKey(Buffer.alloc(32, 8)))
  expect(await other.matches('un mot de passe', hash)).toBe(false)
})

test('two hashes are made at a time, a bounded number waits, and all of those are answered', async () => {
  const many = passwordBounds.queueMax + passwordBounds.atOnceMax
  const tries = await Promise.allSettled(
    Array.from({ length: many + 5 }, () => passwords.matches('falsch', hash)),
  )
  expect(tries.filter(({ status }) => status === 'fulfilled')).toHaveLength(many)
  for (const { status, ...more } of tries.slice(many)) {
    expect({ status, ...more }).toMatchObject({ status: 'rejected', reason: { code: 'OVERLOADED' } })
  }
  expect(await passwords.matches('un mot de passe', hash)).toBe(true)
})
