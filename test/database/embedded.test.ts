import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, constants, existsSync, mkdirSync, openSync, readdirSync, readFileSync } from 'node:fs'
import { renameSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { eventually } from '../kit/eventually.ts'
import { type EmbeddedServer, startEmbedded } from '../../src/database/embedded.ts'
import { ask, end, endAll, folders, newFolder, owners, removeFolders } from '../kit/embedded-fixture.ts'
import { freePort } from '../kit/program.ts'
import { servers, start, startOwner } from '../kit/embedded-fixture.ts'

/** A data folder that is in use for a while already; `initdb` takes a second. */
let used: string
beforeAll(async () => {
  used = join(newFolder(), 'not/there/yet')
  const { server } = await start(used, { durable: true })
  await ask(server.connection(), 'create table kept as select 42 as answer')
  await endAll()
})

afterEach(endAll)
afterAll(removeFolders)

function lockOf(dataDir: string): string {
  return readFileSync(join(dataDir, 'cluster/postmaster.pid'), 'utf8')
}

function pidOf(dataDir: string): number {
  return Number.parseInt(lockOf(dataDir), 10)
}

/** The command lines of the shell and the server of a folder. */
function commandsIn(dataDir: string): string[] {
  const { stdout } = spawnSync('ps', ['-A', '-o', 'args='], { encoding: 'utf8' })
  return stdout.split('\n').filter((line) => line.includes(dataDir))
}

test('a stop takes everything down, and a second start finds what was written, durably', async () => {
  expect(existsSync(join(used, 'cluster/postmaster.pid'))).toBe(false)
  const { server } = await start(used, { durable: true })
  expect(await ask(server.connection(), 'select answer from kept')).toBe(42)
  expect(await ask(server.connection(), 'show fsync')).toBe('on')
  expect(await ask(server.connection(), 'show synchronous_commit')).toBe('on')
  expect(await ask(server.connection(), 'show full_page_writes')).toBe('on')
})

test('no other account can reach the database: no port, and a folder that is closed to others', async () => {
  const { server } = await start(used)
  expect(await ask(server.connection(), 'show listen_addresses')).toBe('')
  expect(statSync(server.connection().host).mode & 0o777).toBe(0o700)
})

test('a port for graphical tools wants the password', async () => {
  const { server } = await start(used, { tcpPort: await freePort() })
  expect(await ask(server.connection(), 'select 1')).toBe(1)
  const tcp = { ...server.connection(), host: '127.0.0.1' }
  expect(await ask(tcp, 'select 1')).toBe(1)
  await expect(ask({ ...tcp, password: 'wrong' }, 'select 1')).rejects.toThrow(
    'password authentication failed',
  )
})

test('a server that cannot start is refused with its own words, and nothing goes on trying', async () => {
  const tcpPort = await freePort()
  const blocker = createServer().listen(tcpPort, '127.0.0.1')
  onTestFinished(() => void blocker.close())
  await once(blocker, 'listening')
  await expect(start(used, { tcpPort })).rejects.toThrow(
    /^PostgreSQL did not start[^]*Address already in use/,
  )
  expect(isWatched(used)).toBe(false)
})

test('a folder whose path is too long for a socket address works all the same', async () => {
  const parent = join(newFolder(), 'a'.repeat(60))
  const dataDir = join(parent, 'b'.repeat(60))
  mkdirSync(parent)
  renameSync(used, dataDir)
  const { server } = await start(dataDir)
  const socketDir = server.connection().host
  folders.push(socketDir)
  expect(socketDir.length).toBeLessThan(86)
  expect(statSync(socketDir).mode & 0o777).toBe(0o700)
  expect(await ask(server.connection(), 'select 1')).toBe(1)
  await endAll()
  renameSync(dataDir, used)
})

interface Process {
  pid: number
  parent: number
  /** T: stopped; S: waits for something. */
  state: string
}

function processes(): Process[] {
  const { stdout } = spawnSync('ps', ['-A', '-o', 'pid=,ppid=,stat='], { encoding: 'utf8' })
  return [...stdout.matchAll(/(\d+) +(\d+) +(\S)/g)].map(([, pid, parent, state = '']) => ({
    pid: Number(pid),
    parent: Number(parent),
    state,
  }))
}

function stateOf(pid: number): string | undefined {
  return processes().find((each) => each.pid === pid)?.state
}

/** Suspends a process; it resumes at the end of the test in any case. */
async function suspend(pid: number): Promise<{ resume(): void }> {
  process.kill(pid, 'SIGSTOP')
  const resume = () => {
    if (stateOf(pid) === 'T') process.kill(pid, 'SIGCONT')
  }
  onTestFinished(resume)
  await eventually(() => expect(stateOf(pid)).toBe('T'))
  return { resume }
}

/** The process that waits for the last holder of this server to go: it stands beside it. */
function watcherOf(server: number): number {
  const all = processes()
  const shell = all.find((each) => each.pid === server)?.parent
  return all.find((each) => each.parent === shell && each.pid !== server)?.pid ?? 0
}

/** Whether something waits for the end of those who hold the server. */
function isWatched(dataDir: string): boolean {
  try {
    closeSync(openSync(join(dataDir, 'hold'), constants.O_WRONLY | constants.O_NONBLOCK))
    return true
  } catch {
    return false
  }
}

describe('a process that starts after another was killed', () => {
  /** Starts a server in a process that the test will kill. */
  async function startVictim() {
    const { owner, connection } = await startOwner(used)
    await ask(connection, 'create table if not exists left_behind as select 7 as answer')
    const log = join(used, 'postgres.log')
    const { size } = statSync(log)
    return {
      pid: pidOf(used),
      kill: () => end(owner, 'SIGKILL'),
      /** The lines that the server has logged since. */
      logged: () => readFileSync(log).subarray(size).toString(),
    }
  }

  test('and before that was noticed joins its server, which runs on without a break', async () => {
    const old = await startVictim()
    const watcher = watcherOf(old.pid)
    const suspended = await suspend(watcher)
    await old.kill()
    const { server } = await start(used)
    suspended.resume()
    // It looks, and goes on waiting: now for the new one.
    await eventually(() => expect(stateOf(watcher)).toBe('S'))
    expect(await ask(server.connection(), 'select answer from left_behind')).toBe(7)
    expect(pidOf(used)).toBe(old.pid)
    expect(old.logged()).not.toContain('shutdown')
    await server.stop()
    expect(stateOf(old.pid)).toBeUndefined()
  })

  test('and while its server is on the way down waits for that, and starts it anew', async () => {
    const old = await startVictim()
    const suspended = await suspend(old.pid)
    await old.kill()
    await eventually(() => expect(isWatched(used)).toBe(false))
    const events: string[] = []
    const starting = startEmbedded({ dataDir: used, durable: false, log: (event) => events.push(event) })
    await eventually(() => expect(events.join()).toContain(`(pid ${old.pid}) is starting or stopping`))
    suspended.resume()
    const server = await starting
    servers.push(server)
    expect(await ask(server.connection(), 'select answer from left_behind')).toBe(7)
    expect(pidOf(used)).not.toBe(old.pid)
    expect(stateOf(old.pid)).toBeUndefined()
    expect(old.logged()).not.toContain('automatic recovery')
  })

  test('together with the processes beside its server stops that server, and starts it anew', async () => {
    const old = await startVictim()
    const watcher = watcherOf(old.pid)
    const shell = processes().find(({ pid }) => pid === old.pid)?.parent ?? 0
    for (const pid of [watcher, shell]) process.kill(pid, 'SIGKILL')
    await old.kill()
    await eventually(() => expect(isWatched(used)).toBe(false))
    const { server } = await start(used)
    expect(await ask(server.connection(), 'select answer from left_behind')).toBe(7)
    expect(stateOf(old.pid) ?? 'Z').toBe('Z')
    expect(old.logged()).toContain('received fast shutdown request')
    expect(old.logged()).not.toContain('automatic recovery')
  })

  test('and after its server is gone starts it anew, and has all commits', async () => {
    const old = await startVictim()
    await old.kill()
    await eventually(() => expect(stateOf(old.pid)).toBeUndefined())
    const { server } = await start(used)
    expect(await ask(server.connection(), 'select answer from left_behind')).toBe(7)
    expect(pidOf(used)).not.toBe(old.pid)
    expect(old.logged()).not.toContain('automatic recovery')
  })
})

describe('several processes', () => {
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

  test('processes that start at the same moment on an empty folder share one database', async () => {
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

describe('the state after an accident', () => {
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
    const sleeper = spawn('sleep', ['60'], process.getuid?.() === 0 ? { uid, gid } : {})
    owners.push(sleeper)
    await once(sleeper, 'spawn')
    writeFileSync(join(used, 'cluster/postmaster.pid'), lock.replace(/^\d+/, String(sleeper.pid)))
    const { server } = await start(used)
    expect(await ask(server.connection(), 'select 1')).toBe(1)
  })

  test('a PostgreSQL that is killed comes back by itself, with all commits', async () => {
    const { server } = await start(used, { durable: true })
    await killServer(server)
    expect(await ask(server.connection(), 'select answer from committed')).toBe(5)
  })

  test('a killed PostgreSQL comes back for a process that joined it, after its starter is gone', async () => {
    const { owner } = await startOwner(used)
    const { server, events } = await start(used)
    await end(owner, 'SIGKILL')
    await killServer(server)
    expect(events[0]).toContain('joined')
  })

  test('a PostgreSQL that was killed and came back is stopped like any other', async () => {
    const { server } = await start(used)
    await killServer(server)
    const pid = pidOf(used)
    await server.stop()
    expect(stateOf(pid)).toBeUndefined()
    expect(existsSync(join(used, 'cluster/postmaster.pid'))).toBe(false)
  })

  test('a PostgreSQL that is stopped by hand is started again', async () => {
    const { server } = await start(used)
    const old = pidOf(used)
    process.kill(old, 'SIGINT')
    await eventually(() => expect(stateOf(old)).toBeUndefined())
    const answer = () => ask(server.connection(), 'select 1').catch(String)
    await eventually(async () => expect(await answer()).toBe(1))
  })

  test('a PostgreSQL that ends just before its last user is not started again', async () => {
    const { server } = await start(used)
    const old = pidOf(used)
    process.kill(old, 'SIGINT')
    await eventually(() => expect(stateOf(old)).toBeUndefined())
    await server.stop()
    await eventually(() => expect(commandsIn(used)).toEqual([]))
    expect(existsSync(join(used, 'cluster/postmaster.pid'))).toBe(false)
  })

  /** Kills the server, and waits until it is there again with what was committed before. */
  async function killServer(server: EmbeddedServer): Promise<void> {
    await ask(server.connection(), 'create table if not exists committed as select 5 as answer')
    const log = join(used, 'postgres.log')
    const { size } = statSync(log)
    const old = pidOf(used)
    process.kill(old, 'SIGKILL')
    const answer = () => ask(server.connection(), 'select answer from committed').catch(String)
    await eventually(async () => expect(await answer()).toBe(5))
    expect(pidOf(used)).not.toBe(old)
    expect(readFileSync(log).subarray(size).toString()).toContain('automatic recovery')
  }
})
