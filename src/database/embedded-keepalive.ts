import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { closeSync, constants, existsSync, openSync, readSync } from 'node:fs'
import { join } from 'node:path'
import { type Cluster, cleanEnvironment } from './embedded-cluster.ts'

// Each process that uses the server holds one named pipe open for writing. A shell beside the server owns it:
// it reads from the pipe, and stops the server in order when the last writer ends, however that one ends. So
// a killed service leaves no orphan, and a command beside the service neither stops the server nor loses it.

/** The claim of this process on the server of a folder, whichever process starts it. */
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
const apart = { detached: true, windowsHide: true }

/** Holds the server that serves the cluster, now or later. */
export function openHold(cluster: Cluster): Keepalive {
  if (process.platform === 'win32') return holdAsStarter(cluster)
  const path = join(cluster.dir, 'hold')
  const open = (flags: number) => openSync(path, flags)
  if (!existsSync(path)) {
    const { command, args, options } = cluster.as('mkfifo', ['-m', '600', path])
    const made = spawnSync(command, args, { ...options, encoding: 'utf8' })
    if (!existsSync(path)) throw new Error(`mkfifo failed: ${made.stderr || made.error}`)
  }
  // A pipe opens for writing at once only where a reader is.
  const reader = open(constants.O_RDONLY | constants.O_NONBLOCK)
  const writer = open(constants.O_WRONLY | constants.O_NONBLOCK)
  closeSync(reader)
  return {
    launch(serverArgs, logFile) {
      const { command, args, options } = cluster.as(join(cluster.bin, 'postgres'), serverArgs)
      const input = open(constants.O_RDONLY)
      const stdio = [input, logFile, logFile]
      const place = { ...options, ...apart, env: cleanEnvironment, cwd: cluster.dir, stdio }
      const child = spawn('sh', ['-c', script, 'sh', command, ...args], place)
      closeSync(input)
      return child
    },
    isWatched() {
      try {
        closeSync(open(constants.O_WRONLY | constants.O_NONBLOCK))
        return true
      } catch {
        return false
      }
    },
    release() {
      const last = open(constants.O_RDONLY | constants.O_NONBLOCK)
      closeSync(writer)
      try {
        readSync(last, Buffer.alloc(1))
        return false
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
const [data, pgCtl, postgres, ...args] = process.argv.slice(1)
const server = spawn(postgres, args, { stdio: ['ignore', 1, 2], windowsHide: true })
server.once('exit', () => process.exit())
process.stdin.once('end', () => spawnSync(pgCtl, ['stop', '-D', data, '-m', 'fast'])).resume()`

/** Windows has neither pipes in folders nor a shell: the server ends with the process that started it. */
function holdAsStarter({ bin, data, dir }: Cluster): Keepalive {
  let child: ChildProcess | undefined
  return {
    launch(serverArgs, logFile) {
      const args = ['-e', windowsScript, data, join(bin, 'pg_ctl'), join(bin, 'postgres'), ...serverArgs]
      child = spawn(process.execPath, args, { ...apart, cwd: dir, stdio: ['pipe', logFile, logFile] })
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
