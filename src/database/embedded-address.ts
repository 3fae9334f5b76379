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
 * enter; on Windows on a port of the loopback, the same one at each start.
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

/**
 * The server that serves this data folder now. Where the lock names a process id that another program has by
 * now, as happens when a container starts again, the lock is removed: PostgreSQL would take that program for
 * its predecessor. It handles all other old locks itself.
 */
export function readPostmaster(data: string): Postmaster | undefined {
  const lock = join(data, 'postmaster.pid')
  try {
    const [first, , , port, socketDir, , , status] = readFileSync(lock, 'utf8').split('\n')
    const pid = Number(first)
    if (!signal(pid, 0)) return undefined
    if (!isElsewhere(pid, data))
      return { pid, host: socketDir || '127.0.0.1', port: Number(port), ready: status?.trim() === 'ready' }
    rmSync(lock)
  } catch {
    // No lock: no server.
  }
  return undefined
}

/** @returns false where no such process of the cluster's account lives */
export function signal(pid: number, name: 'SIGINT' | 0): boolean {
  try {
    return pid > 0 && process.kill(pid, name)
  } catch {
    return false
  }
}

/** Whether the process is certainly not the server: a server works in its data folder. */
function isElsewhere(pid: number, data: string): boolean {
  try {
    return readlinkSync(`/proc/${pid}/cwd`) !== realpathSync(data)
  } catch {
    return false
  }
}
