import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process'
import { closeSync, constants, existsSync, openSync } from 'node:fs'
import { readFileSync, readlinkSync, readSync, realpathSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { type Cluster, cleanEnvironment, runSync } from './embedded-cluster.ts'

// Each process that uses the PostgreSQL server holds one named pipe open for writing. A shell starts the
// server, and starts it again when it ends by itself. When the last writer of the pipe has ended, also by a
// kill, the shell stops the server. So a killed service leaves no server behind, and a command beside the
// service neither stops the server nor loses it.

/** The claim of this process on the server of a folder; another process may have started the server. */
export interface Keepalive {
  /**
   * Starts PostgreSQL, which stops after the last release. If two processes each start a server, PostgreSQL's
   * lock file ends one of the two servers.
   */
  launch(logFile: number): ChildProcess
  /**
   * Whether the process that stops the server after the last release is running. It runs from before the
   * start of the server.
   */
  isWatched(): boolean
  /** Ends this process's claim. @returns whether the server goes on running, for another process */
  release(): boolean
}

// The subshell waits for the end of the last writer. It stops reading the pipe before it stops the server, so
// a server without a reader of the pipe is about to end, or its subshell was killed. SIGINT goes to the
// process group: to PostgreSQL, whose children have groups of their own, and to the shell, which then starts
// no other server. The second SIGINT is for a server that the shell was starting in that instant. Exit status
// 1 says that the server did not start, for instance because processes of a killed server still run; the
// shell gives up after five such starts in a row.
const script = `
ending=
trap ending=1 INT
trap : HUP TERM
exec 3<&0 </dev/null
( trap '' HUP INT TERM; read -r _ <&3; exec 3<&-; kill -INT 0; sleep 1; kill -INT 0 ) &
exec 3<&-
failures=0
while [ -z "$ending" ] && [ $failures -lt 5 ]; do
  "$@"
  [ $? = 1 ] && failures=$((failures + 1)) || failures=0
  [ "$ending" ] || sleep 0.2
done
kill -KILL $! 2>&-`

/** Makes the claim of this process on the server of the cluster, which may start later. */
export function openHold(cluster: Cluster, serverArgs: string[]): Keepalive {
  if (process.platform === 'win32') return holdAsStarter(cluster, serverArgs)
  const path = join(cluster.dir, 'hold')
  // Another process may make the pipe at the same moment.
  const makePipe = 'mkfifo -m 600 "$1" || test -p "$1"'
  if (!existsSync(path)) runSync(cluster, 'sh', ['-c', makePipe, 'sh', path])
  const openToRead = () => openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  // Fails where no process reads from the pipe.
  const openToWrite = () => openSync(path, constants.O_WRONLY | constants.O_NONBLOCK)
  const reader = openToRead()
  const writer = openToWrite()
  closeSync(reader)
  return {
    launch(logFile) {
      const input = openSync(path, 'r')
      const args = ['-c', script, 'sh', join(cluster.bin, 'postgres'), ...serverArgs]
      // In a separate session, so that Ctrl-C in the terminal stops the service and not yet the database.
      const options = { detached: true, cwd: cluster.dir, env: cleanEnvironment }
      const child = spawn(...cluster.as('sh', args), { ...options, stdio: [input, logFile, logFile] })
      closeSync(input)
      return child
    },
    isWatched() {
      const probe = attempt(openToWrite)
      if (probe !== undefined) closeSync(probe)
      return probe !== undefined
    },
    release() {
      const last = openToRead()
      closeSync(writer)
      // Without another writer, the read returns the end of the file. With one, the read fails, because
      // there is nothing to read yet.
      const read = attempt(() => readSync(last, Buffer.alloc(1)))
      closeSync(last)
      return read === undefined
    },
  }
}

/**
 * Runs the server on Windows, which has neither named pipes in folders nor `sh`. The server ends with the
 * process that started it, because children of Node end with Node there; it is not started again.
 */
function holdAsStarter({ bin, data, dir }: Cluster, serverArgs: string[]): Keepalive {
  let child: ChildProcess | undefined
  const isStarter = () => child?.pid !== undefined && child.exitCode === null
  return {
    launch(logFile) {
      const stdio: StdioOptions = ['ignore', logFile, logFile]
      child = spawn(join(bin, 'postgres'), serverArgs, { cwd: dir, stdio, windowsHide: true })
      return child
    },
    isWatched: () => isStarter() || readPostmaster(data) !== undefined,
    release() {
      if (!isStarter()) return true
      spawn(join(bin, 'pg_ctl'), ['stop', '-D', data, '-m', 'fast'], { windowsHide: true })
      return false
    },
  }
}

/** A server that starts, is ready or stops. Its host is the folder of its socket, or an IP address. */
export type Postmaster = NonNullable<ReturnType<typeof readPostmaster>>

/**
 * Returns the server that serves this data folder now, if any. Removes the lock file if its process id
 * belongs to another program by now (found out on Linux only), as happens when a container starts again:
 * PostgreSQL would take that program for a running server. PostgreSQL handles all other old lock files
 * itself.
 */
export function readPostmaster(data: string) {
  const lock = join(data, 'postmaster.pid')
  const lines = attempt(() => readFileSync(lock, 'utf8').split('\n'))
  const [first, , , port, socketDir, , , status] = lines ?? []
  const pid = Number(first)
  if (!signal(pid, 0)) return undefined
  const folder = attempt(() => readlinkSync(`/proc/${pid}/cwd`))
  // The working folder of a server is its data folder.
  if (folder === undefined || folder === realpathSync(data))
    return { pid, host: socketDir || '127.0.0.1', port: Number(port), ready: status?.trim() === 'ready' }
  rmSync(lock, { force: true })
  return undefined
}

/** Sends a signal; 0 only checks. @returns false where no such process lives, or it may not be signalled */
export function signal(pid: number, name: 'SIGINT' | 0): boolean {
  return pid > 0 && attempt(() => process.kill(pid, name)) === true
}

/** Calls `act`. @returns undefined where `act` throws */
function attempt<T>(act: () => T): T | undefined {
  try {
    return act()
  } catch {
    return undefined
  }
}
