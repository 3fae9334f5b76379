import { chmod, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { existsSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type pg from 'pg'
import { expect, inject, onTestFinished, test } from 'vitest'
import { assertNoHalfRestore, backUpCluster, restoreCluster } from '../../src/database/backup-embedded.ts'
import { dumpDatabase } from '../../src/database/backup-external.ts'
import { startEmbedded } from '../../src/database/embedded.ts'
import { migrate } from '../../src/database/migrate.ts'
import { openClient } from '../kit/client.ts'
import { session } from '../kit/session.ts'

// Backups of the embedded PostgreSQL, on the real one.

const say = () => {}

/** A `DATA_DIR` with a database in it, and a folder for backups. */
async function openHome() {
  const dir = await mkdtemp(join(tmpdir(), 'merchant-payments-backup-'))
  onTestFinished(() => rm(dir, { recursive: true, force: true }))
  // PostgreSQL runs under another account where the tests run as root.
  await chmod(dir, 0o755)
  const dataDir = join(dir, 'data')
  const start = () => startEmbedded({ dataDir: join(dataDir, 'pg'), durable: false })
  const server = await start()
  await writeFile(join(dataDir, 'secret.key'), 'the secret of this installation\n', { mode: 0o600 })
  return { dataDir, folder: join(dir, 'backup'), server, start }
}

async function ask(connection: pg.ClientConfig, text: string) {
  return session(connection, async (client) => {
    await client.query('set role none')
    return (await client.query(text)).rows
  })
}

test('a backup beside writers comes back consistent, in another timeline, with the secret', async () => {
  const { dataDir, folder, server, start } = await openHome()
  await migrate(server.connection())
  await ask(server.connection(), 'CREATE TABLE pair (a int, b int)')
  const writer = await openClient(server.connection())
  await writer.query('set role none')
  let isOver = false
  const writing = (async () => {
    for (let n = 1; !isOver; n += 1) await writer.query('INSERT INTO pair VALUES ($1, $1), (-$1, -$1)', [n])
  })()
  const options = { dataDir, folder, withSecret: true, durable: false, say }
  const manifest = await backUpCluster(server.connection(), options)
  isOver = true
  await writing
  await writer.end()
  await ask(server.connection(), 'CREATE TABLE later ()')
  expect(statSync(folder).mode & 0o777).toBe(0o700)
  expect(statSync(join(folder, 'secret.key')).mode & 0o777).toBe(0o600)
  expect(manifest).toMatchObject({ kind: 'cluster', hasSecret: true, epoch: 1 })

  await expect(restoreCluster(options)).rejects.toThrow(/PostgreSQL \(pid \d+\) runs in/)
  await server.stop()
  await writeFile(join(dataDir, 'secret.key'), 'another secret\n')
  const { aside } = await restoreCluster(options)
  expect(aside && existsSync(join(aside, 'cluster/PG_VERSION'))).toBe(true)
  expect(await readFile(join(dataDir, 'secret.key'), 'utf8')).toBe('the secret of this installation\n')
  const kept = (await readdir(dataDir)).filter((name) => name.startsWith('secret.key.before-restore-'))
  expect(kept).toHaveLength(1)

  const restored = await start()
  onTestFinished(() => restored.stop())
  const [row] = await ask(
    restored.connection(),
    `SELECT count(*)::int AS rows, sum(a)::int AS sum, to_regclass('later') AS later FROM pair`,
  )
  expect(row).toMatchObject({ sum: 0, later: null })
  expect(row.rows % 2).toBe(0)
  const [found] = await ask(restored.connection(), 'SELECT moved FROM open_installation()')
  expect(found).toEqual({ moved: expect.stringContaining('timeline 2 and was on timeline 1') })
  expect(await ask(restored.connection(), 'SELECT timeline FROM database_identity()')).toEqual([
    { timeline: 2 },
  ])
}, 240_000)

test('a backup that was broken off, or changed, is refused, and nothing is touched', async () => {
  const { dataDir, folder, server } = await openHome()
  await migrate(server.connection())
  const options = { dataDir, folder, withSecret: true, durable: false, say }
  await rename(join(dataDir, 'secret.key'), join(dataDir, 'secret.away'))
  const lacking = backUpCluster(server.connection(), { ...options, folder: `${folder}-lacking` })
  await expect(lacking).rejects.toThrow(/secret\.key is missing/)
  await rename(join(dataDir, 'secret.away'), join(dataDir, 'secret.key'))
  await backUpCluster(server.connection(), options)
  await server.stop()
  await expect(backUpCluster(server.connection(), options)).rejects.toThrow(/is not empty/)

  const before = await readdir(dataDir)
  const version = join(folder, 'cluster/PG_VERSION')
  const right = await readFile(version)
  await writeFile(version, '17\n')
  await expect(restoreCluster(options)).rejects.toThrow(/cluster\/PG_VERSION in .* is not as it was written/)
  await rm(version)
  await expect(restoreCluster(options)).rejects.toThrow(/lacks cluster\/PG_VERSION/)
  await writeFile(version, right)
  const manifest = await readFile(join(folder, 'manifest.json'), 'utf8')
  await writeFile(join(folder, 'manifest.json'), manifest.slice(0, 100))
  await expect(restoreCluster(options)).rejects.toThrow(/is damaged/)
  await rm(join(folder, 'manifest.json'))
  await expect(restoreCluster(options)).rejects.toThrow(/is no whole backup/)
  expect(await readdir(dataDir)).toEqual(before)
}, 240_000)

test('a restore that was killed between its renames stops the start; another one finishes it', async () => {
  const { dataDir, folder, server, start } = await openHome()
  await migrate(server.connection())
  const options = { dataDir, folder, withSecret: true, durable: false, say }
  await backUpCluster(server.connection(), options)
  await server.stop()
  // As a kill leaves it: the old data aside, nothing in its place, and the lock of the step still there.
  const aside = join(dataDir, 'pg.before-restore-earlier')
  await rename(join(dataDir, 'pg'), aside)
  await writeFile(join(dataDir, 'restore-under-way.json'), JSON.stringify({ stamp: 'earlier' }))
  await expect(assertNoHalfRestore(dataDir)).rejects.toThrow(/was broken off/)
  expect((await restoreCluster(options)).aside).toBe(aside)
  await assertNoHalfRestore(dataDir)
  const restored = await start()
  onTestFinished(() => restored.stop())
  expect(await ask(restored.connection(), 'SELECT 1 AS one')).toEqual([{ one: 1 }])
}, 240_000)

test('a backup on a machine without pg_dump is refused, and the error names the package', async () => {
  const { url } = inject('testServer')
  const folder = join(tmpdir(), `merchant-payments-no-dump-${process.pid}`)
  const { PATH } = process.env
  process.env['PATH'] = '/nonexistent'
  onTestFinished(() => void (process.env['PATH'] = PATH))
  await expect(dumpDatabase(url, { folder, secretPath: null, say })).rejects.toThrow(
    /this machine has no pg_dump: install postgresql-client-\d+/,
  )
  expect(existsSync(folder)).toBe(false)
}, 240_000)
