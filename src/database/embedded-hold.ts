import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { closeSync, constants, openSync, readSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { type Cluster, cleanEnvironment } from './embedded-cluster.ts'

// What keeps the server alive is a named pipe that every process using the server holds open for writing. A
// shell beside the server reads from it: when the last holder ends, however it ends, the read ends, and the
// shell stops the server in order. So a killed service leaves no orphan, and a command beside it neither
// stops the server nor loses it.

/** A claim on a running server, given up by `release`. */
export interface Hold {
  /** @returns whether another process still holds the server, which then goes on running */
  release: () => boolean
}

/** A server process on its way up, with the hold of this process on it. */
export interface Launch {
  /** Process id of PostgreSQL, NaN when it could not be started. */
  pid: Promise<number>
  /** The process beside PostgreSQL that ends when it ends. */
  child: ChildProcess
  hold: Hold
  /**
   * Lets other processes hold this server too. Called once it is known to be the one that serves the cluster.
   */
  publish: () => void
}

const script = `
trap '' HUP INT TERM
exec 3<&0 </dev/null
"$@" 3<&- >&2 &
server=$!
echo $server
exec >&-
( read -r _ <&3; exec 3<&-; kill -INT $server 2>&- ) &
watcher=$!
exec 3<&-
wait $server
code=$?
kill -KILL $watcher 2>&-
exit $code`

/** Starts PostgreSQL tied to this process. */
export function launch(cluster: Cluster, serverArgs: string[], logFile: number): Launch {
  if (process.platform === 'win32') return launchWithoutPipes(cluster, serverArgs, logFile)
  const path = join(cluster.dir, `hold.new-${process.pid}-${Date.now()}`)
  const made = spawnSync('mkfifo', ['-m', '600', path], { encoding: 'utf8' })
  if (made.status !== 0) throw new Error(`mkfifo failed: ${made.stderr ?? made.error}`)
  // A pipe opens for writing at once only where a reader is, and for blocking reads where a writer is.
  const first = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  const writer = openSync(path, constants.O_WRONLY | constants.O_NONBLOCK)
  const reader = openSync(path, constants.O_RDONLY)
  closeSync(first)

  const postgres = cluster.command('postgres', serverArgs)
  const child = spawn('sh', ['-c', script, 'sh', postgres.command, ...postgres.args], {
    ...postgres.options,
    env: cleanEnvironment,
    cwd: cluster.dir,
    // A session of its own: Ctrl-C in the terminal is for us, and the database goes last.
    detached: true,
    stdio: [reader, 'pipe', logFile],
  })
  closeSync(reader)
  child.unref()

  let current = path
  child.once('exit', () => rmSync(path, { force: true }))
  const publish = () => {
    renameSync(path, publishedPath(cluster))
    current = publishedPath(cluster)
  }
  return {
    pid: firstLine(child).then(Number),
    child,
    hold: { release: () => releasePipe(writer, current) },
    publish,
  }
}

/** Holds the server that another process started, or null where none is held by anyone (any more). */
export function joinHold(cluster: Cluster): Hold | null {
  if (process.platform === 'win32') return { release: () => true }
  try {
    const path = publishedPath(cluster)
    const writer = openSync(path, constants.O_WRONLY | constants.O_NONBLOCK)
    return { release: () => releasePipe(writer, path) }
  } catch {
    return null
  }
}

/** Whether the server that holds are for waits for their end: the last one may have gone a moment ago. */
export function isHeld(cluster: Cluster): boolean {
  if (process.platform === 'win32') return true
  try {
    closeSync(openSync(publishedPath(cluster), constants.O_WRONLY | constants.O_NONBLOCK))
    return true
  } catch {
    return false
  }
}

/** Closes our end of the pipe, then looks whether anyone else still has one. */
function releasePipe(writer: number, path: string): boolean {
  let reader: number
  try {
    reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  } catch {
    closeSync(writer)
    return false
  }
  closeSync(writer)
  try {
    readSync(reader, Buffer.alloc(1))
    return false
  } catch {
    return true
  } finally {
    closeSync(reader)
  }
}

function publishedPath(cluster: Cluster): string {
  return join(cluster.dir, 'hold')
}

async function firstLine(child: ChildProcess): Promise<string> {
  for await (const chunk of child.stdout ?? []) return String(chunk)
  return ''
}

const scriptWithoutPipes = `
const { spawn, spawnSync } = require('node:child_process')
const [data, pgCtl, postgres, ...args] = process.argv.slice(1)
const server = spawn(postgres, args, { stdio: ['ignore', 2, 2], windowsHide: true })
server.once('error', (error) => { console.error(error); process.exit(1) })
server.once('spawn', () => console.log(server.pid))
server.once('exit', (code) => process.exit(code ?? 1))
process.stdin.once('end', () => spawnSync(pgCtl, ['stop', '-D', data, '-m', 'fast'])).resume()`

/**
 * Windows has neither named pipes in folders nor a shell: there the server lives as long as its first
 * process.
 */
function launchWithoutPipes(cluster: Cluster, serverArgs: string[], logFile: number): Launch {
  const postgres = cluster.command('postgres', serverArgs)
  const pgCtl = cluster.command('pg_ctl', [])
  const args = ['-e', scriptWithoutPipes, cluster.data, pgCtl.command, postgres.command, ...postgres.args]
  const child = spawn(process.execPath, args, {
    ...postgres.options,
    cwd: cluster.dir,
    detached: true,
    windowsHide: true,
    stdio: ['pipe', 'pipe', logFile],
  })
  child.unref()
  const release = () => {
    child.stdin?.end()
    return false
  }
  return { pid: firstLine(child).then(Number), child, hold: { release }, publish: () => {} }
}
