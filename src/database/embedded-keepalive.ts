import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, constants, existsSync, openSync, readSync } from 'node:fs'
import { join } from 'node:path'
import { type Cluster, cleanEnvironment, runSync } from './embedded-cluster.ts'

// Each process that uses the server holds one named pipe open for writing. A shell beside the server owns it:
// it reads from the pipe, and stops the server in order when the last writer ends, however that one ends. So
// a killed service leaves no orphan, and a command beside the service neither stops the server nor loses it.

/** The claim of this process on the server of a folder; another process may have started the server. */
export interface Keepalive {
  /** Starts PostgreSQL, which ends with the last hold. PostgreSQL's own lock lets one per folder go on. */
  launch(serverArgs: string[], logFile: number): ChildProcess
  /** Whether a process waits for the end of the last hold, as one does beside each server until it stops. */
  isWatched(): boolean
  /** @returns whether another process still holds the server, which then goes on running */
  release(): boolean
}

const script = `
trap '' HUP INT TERM
exec 3<&0 </dev/null
"$@" 3<&- &
server=$!
( read -r _ <&3; exec 3<&-; kill -INT $server 2>&- ) &
watcher=$!
exec 3<&-
wait $server
kill -KILL $watcher 2>&-`

/** A session of its own: Ctrl-C in the terminal is for the service, and the database goes last. */
const apart = { detached: true, windowsHide: true, env: cleanEnvironment }

/** Holds the server that serves the cluster, now or later. */
export function openHold(cluster: Cluster): Keepalive {
  if (process.platform === 'win32') return holdAsStarter(cluster)
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
    launch(serverArgs, logFile) {
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
const server = spawn(bin + '/postgres', args, { stdio: ['ignore', 1, 2], windowsHide: true })
server.once('exit', () => process.exit())
process.stdin.once('end', () => spawnSync(bin + '/pg_ctl', ['stop', '-D', data, '-m', 'fast'])).resume()`

/** Windows has neither pipes in folders nor a shell: the server ends with the process that started it. */
function holdAsStarter({ bin, data, dir }: Cluster): Keepalive {
  let child: ChildProcess | undefined
  return {
    launch(serverArgs, logFile) {
      const options = { ...apart, cwd: dir, stdio: ['pipe' as const, logFile, logFile] }
      child = spawn(process.execPath, ['-e', windowsScript, data, bin, ...serverArgs], options)
      return child
    },
    isWatched: () => true,
    release() {
      const isStarter = child?.exitCode === null
      child?.stdin?.end()
      return !isStarter
    },
  }
}
