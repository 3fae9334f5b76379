import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inspect } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { encrypt, decrypt } from '../../src/identity/secrets/encrypt.ts'
import {
  currentPepperId,
  hashSecret,
  isApiKey,
  isApiSecret,
  MasterSecret,
  makeApiKey,
  makeApiSecret,
  openMasterSecret,
  secretMatches,
} from '../../src/identity/secrets/secrets.ts'
import { Secret } from '../../src/shared/secret.ts'

let folder = ''
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'master-secret-'))
})
afterAll(() => rm(folder, { recursive: true }))

const fingerprint = (master: MasterSecret) => master.callbackSecret.export().toString('hex')

test('ten openings at once make one file, readable by its owner alone, and one secret', async () => {
  const dataDir = join(folder, 'race')
  const opened = await Promise.all(Array.from({ length: 10 }, () => openMasterSecret(null, dataDir)))
  expect(new Set(opened.map(fingerprint)).size).toBe(1)
  expect(await readdir(dataDir)).toEqual(['secret.key'])
  expect((await stat(join(dataDir, 'secret.key'))).mode & 0o777).toBe(0o600)
  expect(fingerprint(await openMasterSecret(null, dataDir))).toBe(fingerprint(opened[0] as MasterSecret))
})

test('two folders get two secrets', async () => {
  const one = await openMasterSecret(null, join(folder, 'one'))
  const other = await openMasterSecret(null, join(folder, 'other'))
  expect(fingerprint(one)).not.toBe(fingerprint(other))
})

test('a damaged file is refused by name and left as it is', async () => {
  const path = join(folder, 'secret.key')
  await writeFile(path, 'half a sec')
  await expect(openMasterSecret(null, folder)).rejects.toThrow(`${path} is damaged`)
  expect(await readFile(path, 'utf8')).toBe('half a sec')
})

test('a configured secret needs no file, and determines every derived key', async () => {
  const configured = (text: string) =>
    openMasterSecret(new Secret(text.repeat(32)), join(folder, 'never-made'))
  const [a, again, b] = await Promise.all([configured('a'), configured('a'), configured('b')])
  expect(fingerprint(a)).toBe(fingerprint(again))
  expect(fingerprint(a)).not.toBe(fingerprint(b))
  await expect(stat(join(folder, 'never-made'))).rejects.toThrow('ENOENT')
})

test('each purpose has a key of its own, 32 bytes long', () => {
  const master = new MasterSecret(Buffer.alloc(32, 1))
  const keys = [master.pepper(1), master.pepper(2), master.encryptionKey].map((key) =>
    key.export().toString('hex'),
  )
  const all = [...keys, fingerprint(master)]
  expect(new Set(all).size).toBe(4)
  expect(all.every((key) => key.length === 64)).toBe(true)
})

test('keys and secrets have the promised form and do not repeat', () => {
  const keys = new Set(Array.from({ length: 500 }, makeApiKey))
  const secrets = new Set(Array.from({ length: 500 }, () => makeApiSecret().reveal()))
  expect([keys.size, secrets.size]).toEqual([500, 500])
  expect([...keys].every((key) => /^mk_[0-9A-Za-z]{22}$/.test(key) && isApiKey(key))).toBe(true)
  expect([...secrets].every((secret) => /^ms_[0-9A-Za-z]{49}$/.test(secret) && isApiSecret(secret))).toBe(
    true,
  )
})

test('all characters are equally frequent: no remainder of 256 by 62 favours the first ones', () => {
  const counts = new Map<string, number>()
  const characters = Array.from({ length: 4_000 }, () => makeApiKey().slice(3)).join('')
  for (const character of characters) counts.set(character, (counts.get(character) ?? 0) + 1)
  const expected = characters.length / 62
  const chiSquare = [...counts.values()].reduce((sum, count) => sum + (count - expected) ** 2 / expected, 0)
  expect(counts.size).toBe(62)
  // 61 degrees of freedom: above 125 once in a million; without redrawing it is about 1,000.
  expect(chiSquare).toBeLessThan(125)
})

test('a key with one wrong character, or two swapped, is recognised without a look into the database', () => {
  const secret = makeApiSecret().reveal()
  for (let at = 3; at < secret.length; at += 1) {
    const other = secret[at] === 'x' ? 'y' : 'x'
    expect(isApiSecret(`${secret.slice(0, at)}${other}${secret.slice(at + 1)}`)).toBe(false)
  }
  expect(
    ['', 'ms_', `${secret}0`, secret.slice(1), secret.toLowerCase(), ` ${secret}`].some(isApiSecret),
  ).toBe(false)
})

test('a secret matches its own hash only, and an unknown key matches none', () => {
  const master = new MasterSecret(Buffer.alloc(32, 1))
  const secret = makeApiSecret().reveal()
  const stored = { secretHash: hashSecret(secret, master.pepper(currentPepperId)), pepperId: currentPepperId }
  expect(secretMatches(master, secret, stored)).toBe(true)
  expect(secretMatches(master, makeApiSecret().reveal(), stored)).toBe(false)
  expect(secretMatches(master, secret, { ...stored, pepperId: 2 })).toBe(false)
  expect(secretMatches(new MasterSecret(Buffer.alloc(32, 2)), secret, stored)).toBe(false)
  expect(secretMatches(master, secret, null)).toBe(false)
})

test('no form of printing shows a secret', () => {
  const root = Buffer.from('the-root-of-all-keys-of-32-bytes')
  const master = new MasterSecret(root)
  const secret = makeApiSecret()
  const printed = [master, { master, secret }].flatMap((value) => [
    inspect(value, { depth: 9, showHidden: true, getters: false }),
    JSON.stringify(value),
  ])
  const hidden = [secret.reveal(), root.toString(), root.toString('hex'), root.toString('base64')]
  for (const text of printed) for (const part of hidden) expect(text).not.toContain(part)
})

test('an encrypted value opens with its own context only, and not after a change', () => {
  const key = new MasterSecret(Buffer.alloc(32, 1)).encryptionKey
  const otherKey = new MasterSecret(Buffer.alloc(32, 2)).encryptionKey
  const encrypted = encrypt(key, Buffer.from('plain'), 'row 1')
  expect(decrypt(key, encrypted, 'row 1').toString()).toBe('plain')
  expect(encrypted.toString('latin1')).not.toContain('plain')
  expect(() => decrypt(key, encrypted, 'row 2')).toThrow('authenticate')
  expect(() => decrypt(otherKey, encrypted, 'row 1')).toThrow('authenticate')
  for (let at = 0; at < encrypted.length; at += 1) {
    const altered = Buffer.from(encrypted)
    altered[at] = (altered[at] ?? 0) ^ 1
    expect(() => decrypt(key, altered, 'row 1')).toThrow('authenticate')
  }
  expect(() => decrypt(key, encrypted.subarray(0, 20), 'row 1')).toThrow('tag length')
})
