import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process'
import { closeSync, constants, existsSync, openSync } from 'node:fs'
import { readFileSync, readlinkSync, readSync, realpathSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { type Cluster, cleanEnvironment, runSync } from './embedded-cluster.ts'

// Each process that uses the server holds one named pipe open for writing. A shell beside the server owns the
// server: it starts it again when it ends by itself, and stops it in order when the last writer ends, however
// that one ends. So a killed service leaves no orphan, and a command beside the service neither stops the
// server nor loses it.

/** The claim of this process on the server of a folder; another process may have started the server. */
export interface Keepalive {
  /** Starts PostgreSQL, which ends with the last hold. PostgreSQL's own lock lets one per folder go on. */
  launch(logFile: number): ChildProcess
  /** Whether a process waits for the end of the last hold, as one does from before the server's start. */
  isWatched(): boolean
  /** @returns whether another process still holds the server, which then goes on running */
  release(): boolean
}

// The watcher stops reading before it stops the server: a server that nothing watches is about to end, or has
// lost its watcher. SIGINT goes to the shell's process group: to PostgreSQL, whose children have groups of
// their own, and to the shell, which starts no other server then. The second SIGINT is for a server that the
// shell was starting in that instant. Status 1 says that the server did not start: after a kill, its last
// processes take a moment to end.
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

/** Holds the server that serves the cluster, now or later. */
export function openHold(cluster: Cluster, serverArgs: string[]): Keepalive {
  if (process.platform === 'win32') return holdAsStarter(cluster, serverArgs)
  const path = join(cluster.dir, 'hold')
  // Another process may make it at the same moment.
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
      // A session of its own: Ctrl-C in the terminal is for the service, and the database goes last.
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
      // Without another writer, the read returns the end of the file. With one, it fails: nothing to read
      // yet.
      const read = attempt(() => readSync(last, Buffer.alloc(1)))
      closeSync(last)
      return read === undefined
    },
  }
}

/**
 * Windows has neither pipes in folders nor a shell. Node ends its children there when it is killed, so the
 * server ends with the process that started it; it is not started again.
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
 * The server that serves this data folder now. Where the lock names a process id that another program has by
 * now, as happens when a container starts again, the lock is removed: PostgreSQL would take that program for
 * its predecessor. It handles all other old locks itself.
 */
export function readPostmaster(data: string) {
  const lock = join(data, 'postmaster.pid')
  const lines = attempt(() => readFileSync(lock, 'utf8').split('\n'))
  const [first, , , port, socketDir, , , status] = lines ?? []
  const pid = Number(first)
  if (!signal(pid, 0)) return undefined
  const folder = attempt(() => readlinkSync(`/proc/${pid}/cwd`))
  // A server works in its data folder.
  if (folder === undefined || folder === realpathSync(data))
    return { pid, host: socketDir || '127.0.0.1', port: Number(port), ready: status?.trim() === 'ready' }
  rmSync(lock, { force: true })
  return undefined
}

/** @returns false where no such process of the cluster's account lives */
export function signal(pid: number, name: 'SIGINT' | 0): boolean {
  return pid > 0 && attempt(() => process.kill(pid, name)) === true
}

/** @returns undefined where it throws */
function attempt<T>(act: () => T): T | undefined {
  try {
    return act()
  } catch {
    return undefined
  }
}
