import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, constants, existsSync, openSync, readSync } from 'node:fs'
import { join } from 'node:path'
import { readPostmaster } from './embedded-address.ts'
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

// The watcher stops reading before it stops the server, so that a server which nobody watches is one that
// ends. SIGINT goes to the shell's process group: to the shells, which ignore it, and to PostgreSQL; its
// children have groups of their own. The status 1 says that the server did not start: the last processes of
// one that was killed take a moment to end.
const script = `
trap : HUP INT TERM
exec 3<&0 </dev/null
( trap '' HUP TERM; read -r _ <&3; exec 3<&-; kill -INT 0 ) &
exec 3<&-
failures=0
while kill -0 $! 2>&- && [ $failures -lt 5 ]; do
  "$@"
  [ $? = 1 ] && failures=$((failures + 1)) || failures=0
  sleep 0.2
done
kill -KILL $! 2>&-`

/** A session of its own: Ctrl-C in the terminal is for the service, and the database goes last. */
const apart = { detached: true, windowsHide: true, env: cleanEnvironment }

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
      const options = { ...apart, cwd: cluster.dir, stdio: [input, logFile, logFile] }
      const args = ['-c', script, 'sh', join(cluster.bin, 'postgres'), ...serverArgs]
      const child = spawn(...cluster.as('sh', args, options))
      closeSync(input)
      return child
    },
    isWatched() {
      try {
        closeSync(openToWrite())
        return true
      } catch {
        return false
      }
    },
    release() {
      const last = openToRead()
      closeSync(writer)
      try {
        return readSync(last, Buffer.alloc(1)) > 0
      } catch {
        // Nothing to read yet: there is another writer.
        return true
      } finally {
        closeSync(last)
      }
    },
  }
}

const windowsScript = `
const { spawn, spawnSync } = require('node:child_process')
const [data, bin, ...args] = process.argv.slice(1)
let restarts = 5
const start = () =>
  spawn(bin + '/postgres', args, { stdio: ['ignore', 1, 2], windowsHide: true })
    .once('exit', () => (restarts-- > 0 ? setTimeout(start, 200) : process.exit()))
const stop = () => process.exit(spawnSync(bin + '/pg_ctl', ['stop', '-D', data, '-m', 'fast']).status)
process.stdin.once('end', stop).resume()
start()`

/** Windows has neither pipes in folders nor a shell: the server ends with the process that started it. */
function holdAsStarter({ bin, data, dir }: Cluster, serverArgs: string[]): Keepalive {
  let child: ChildProcess | undefined
  const isStarter = () => child?.pid !== undefined && child.exitCode === null
  return {
    launch(logFile) {
      const options = { ...apart, cwd: dir, stdio: ['pipe' as const, logFile, logFile] }
      child = spawn(process.execPath, ['-e', windowsScript, data, bin, ...serverArgs], options)
      return child
    },
    isWatched: () => isStarter() || readPostmaster(data) !== undefined,
    release() {
      child?.stdin?.end()
      return !isStarter()
    },
  }
}
