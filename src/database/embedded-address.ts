import { createHash } from 'node:crypto'
import { lstatSync, readFileSync, readlinkSync, realpathSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Cluster, runSync } from './embedded-cluster.ts'

/** The address of a Unix socket holds 103 bytes everywhere; `/.s.PGSQL.65535` takes 15 of them. */
const socketDirBytesMax = 85

/** The facts that `postmaster.pid` states about a running server: starting, ready or stopping. */
export interface Postmaster {
  pid: number
  /** Folder of the socket, or an IP address. */
  host: string
  port: number
  ready: boolean
}

/**
 * The settings that say where a server listens: on a socket in the cluster's folder, which only its owner may
 * enter; on Windows on a port of the loopback. A folder has the same address at each start, so that the
 * connections of a process that joined find the server again.
 * @param tcpPort also listen there on 127.0.0.1
 */
export function chooseAddress(cluster: Cluster, tcpPort: number | undefined) {
  const hash = createHash('sha256').update(cluster.dir).digest()
  if (process.platform === 'win32')
    return { listen_addresses: '127.0.0.1', port: tcpPort ?? 20_000 + (hash.readUInt16BE() % 10_000) }
  const isShort = Buffer.byteLength(cluster.dir) <= socketDirBytesMax
  const socketDir = isShort ? cluster.dir : makeShortDir(cluster, hash.toString('hex', 0, 8))
  return {
    listen_addresses: tcpPort === undefined ? '' : '127.0.0.1',
    port: tcpPort ?? 5432,
    // PostgreSQL splits this list at commas outside of double quotes.
    unix_socket_directories: `"${socketDir.replaceAll('"', '""')}"`,
  }
}

/** A folder with a short name for a cluster whose own path is too long for the address of a socket. */
function makeShortDir(cluster: Cluster, name: string): string {
  const path = join(tmpdir(), `merchant-payments-${name}`)
  runSync(cluster, 'mkdir', ['-p', '-m', '700', path])
  const found = lstatSync(path)
  if (!found.isDirectory() || found.uid !== statSync(cluster.dir).uid || (found.mode & 0o077) !== 0)
    throw new Error(`${path} belongs to another account, or is open to others: remove it.`)
  return path
}

/** The server that serves this data folder now. */
export function readPostmaster(data: string): Postmaster | undefined {
  const [first, , , port, socketDir, , , status] = readLock(data)
  const pid = Number(first)
  if (!isServing(data, pid)) return undefined
  return { pid, host: socketDir || '127.0.0.1', port: Number(port), ready: status?.trim() === 'ready' }
}

/** Whether the process lives, and may be the server of this data folder. */
export function isServing(data: string, pid: number): boolean {
  return isAlive(pid) && !isElsewhere(data, pid)
}

/**
 * Removes the lock of a server that is gone where its process id belongs to another program by now, as
 * happens when a container starts again: PostgreSQL would take that program for its predecessor. It handles
 * all other old locks itself.
 */
export function removeStaleLock(data: string): void {
  const pid = Number(readLock(data)[0])
  if (isAlive(pid) && isElsewhere(data, pid)) rmSync(join(data, 'postmaster.pid'), { force: true })
}

function readLock(data: string): string[] {
  try {
    return readFileSync(join(data, 'postmaster.pid'), 'utf8').split('\n')
  } catch {
    return []
  }
}

function isAlive(pid: number): boolean {
  try {
    return pid > 0 && process.kill(pid, 0)
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM'
  }
}

/** Whether the process is certainly not the server: a server works in its data folder. */
function isElsewhere(data: string, pid: number): boolean {
  try {
    return readlinkSync(`/proc/${pid}/cwd`) !== realpathSync(data)
  } catch {
    return false
  }
}
