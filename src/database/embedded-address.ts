import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { chmodSync, chownSync, lstatSync, mkdirSync, readFileSync } from 'node:fs'
import { readlinkSync, realpathSync, rmSync, statSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** The address of a Unix socket holds 103 bytes everywhere; `/.s.PGSQL.65535` takes 15 of them. */
const socketDirBytesMax = 85

/** What `postmaster.pid` says about a server that is alive: going up, ready or going down. */
export interface Postmaster {
  pid: number
  /** Folder of the socket, or an IP address. */
  host: string
  port: number
  ready: boolean
}

/**
 * The settings that say where a new server listens: on a socket in the cluster's folder, which only its owner
 * may enter; on Windows on a free port of the loopback.
 * @param tcpPort also listen there on 127.0.0.1
 */
export async function chooseAddress(dir: string, tcpPort: number | undefined) {
  if (process.platform === 'win32')
    return { listen_addresses: '127.0.0.1', port: tcpPort ?? (await freePort()) }
  const socketDir = Buffer.byteLength(dir) <= socketDirBytesMax ? dir : shortDir(dir)
  return {
    listen_addresses: tcpPort === undefined ? '' : '127.0.0.1',
    port: tcpPort ?? 5432,
    // PostgreSQL splits this list at commas outside of double quotes.
    unix_socket_directories: `"${socketDir.replaceAll('"', '""')}"`,
  }
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
  if (isAlive(pid) && isElsewhere(data, pid)) rmSync(lockPath(data), { force: true })
}

function lockPath(data: string): string {
  return join(data, 'postmaster.pid')
}

function readLock(data: string): string[] {
  try {
    return readFileSync(lockPath(data), 'utf8').split('\n')
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

/** A folder with a short name for a cluster whose own path is too long for the address of a socket. */
function shortDir(dir: string): string {
  const hash = createHash('sha256').update(dir).digest('hex').slice(0, 16)
  const path = join(tmpdir(), `merchant-payments-${hash}`)
  const { uid, gid } = statSync(dir)
  const isNew = mkdirSync(path, { recursive: true, mode: 0o700 }) !== undefined
  if (isNew && process.getuid?.() === 0) chownSync(path, uid, gid)
  const found = lstatSync(path)
  if (!found.isDirectory() || found.uid !== uid)
    throw new Error(`${path} belongs to someone else: remove it.`)
  chmodSync(path, 0o700)
  return path
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}
