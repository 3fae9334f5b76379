import { createHash } from 'node:crypto'
import {
  chmodSync,
  chownSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Cluster } from './embedded-cluster.ts'

/** The address of a Unix socket holds 103 bytes everywhere; `/.s.PGSQL.65535` takes 15 of them. */
const socketDirBytesMax = 85

/** Where a server can be reached. */
export interface Address {
  /** Folder of the socket, or an IP address. */
  socketDir: string
  port: number
  /** The server's settings that make it so. */
  settings: Record<string, string | number>
}

/** What `postmaster.pid` says about a server that is alive. */
export interface Postmaster {
  pid: number
  address: Address
  ready: boolean
}

/**
 * A socket in the cluster's folder, which only its owner may enter; on Windows a free port of the loopback.
 */
export async function chooseAddress(cluster: Cluster, tcpPort: number | undefined): Promise<Address> {
  if (process.platform === 'win32') {
    const port = tcpPort ?? (await freePort())
    return { socketDir: '127.0.0.1', port, settings: { listen_addresses: '127.0.0.1', port } }
  }
  const socketDir = Buffer.byteLength(cluster.dir) <= socketDirBytesMax ? cluster.dir : shortDir(cluster.dir)
  const port = tcpPort ?? 5432
  const listen_addresses = tcpPort === undefined ? '' : '127.0.0.1'
  return { socketDir, port, settings: { listen_addresses, port, unix_socket_directories: quote(socketDir) } }
}

/** A server that serves this cluster now, going up, ready or going down. */
export function readPostmaster(cluster: Pick<Cluster, 'data'>): Postmaster | undefined {
  const lines = readLock(cluster)
  const pid = Number(lines?.[0])
  if (!lines || !pid || !isServing(cluster, pid)) return undefined
  const socketDir = lines[4] || '127.0.0.1'
  return {
    pid,
    address: { socketDir, port: Number(lines[3]), settings: {} },
    ready: lines[7]?.trim() === 'ready',
  }
}

/** Whether the process lives, and may be the server of this cluster. */
export function isServing(cluster: Pick<Cluster, 'data'>, pid: number): boolean {
  return isAlive(pid) && !servesAnother(pid, cluster)
}

/**
 * Removes the lock of a server that is gone where its process id belongs to another program by now, as
 * happens when a container starts again: PostgreSQL would take that program for its predecessor. It handles
 * all other old locks itself.
 */
export function removeStaleLock(cluster: Cluster): void {
  const pid = Number(readLock(cluster)?.[0])
  if (pid && isAlive(pid) && servesAnother(pid, cluster)) rmSync(lockPath(cluster), { force: true })
}

function lockPath(cluster: Pick<Cluster, 'data'>): string {
  return join(cluster.data, 'postmaster.pid')
}

function readLock(cluster: Pick<Cluster, 'data'>): string[] | undefined {
  try {
    return readFileSync(lockPath(cluster), 'utf8').split('\n')
  } catch {
    return undefined
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM'
  }
}

/** Whether this process is certainly not the server of the cluster: a server works in its data folder. */
function servesAnother(pid: number, cluster: Pick<Cluster, 'data'>): boolean {
  try {
    return readlinkSync(`/proc/${pid}/cwd`) !== realpathSync(cluster.data)
  } catch {
    return false
  }
}

/** A folder with a short name for a cluster whose own path is too long for the address of a socket. */
function shortDir(dir: string): string {
  const path = join(
    tmpdir(),
    `merchant-payments-${createHash('sha256').update(dir).digest('hex').slice(0, 16)}`,
  )
  const owner = lstatSync(dir)
  try {
    mkdirSync(path, { mode: 0o700 })
    if (process.getuid?.() === 0) chownSync(path, owner.uid, owner.gid)
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error
  }
  const found = lstatSync(path)
  if (!found.isDirectory() || found.uid !== owner.uid)
    throw new Error(`${path} belongs to someone else: remove it.`)
  chmodSync(path, 0o700)
  return path
}

/** Lists in PostgreSQL's settings are split at commas outside of double quotes. */
function quote(path: string): string {
  return `"${path.replaceAll('"', '""')}"`
}

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const address = server.address()
  await new Promise((done) => server.close(done))
  if (address === null || typeof address === 'string') throw new Error('The loopback has no free port.')
  return address.port
}
