import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { StuckError } from './stuck.ts'

/** The service under test: the real `src/main.ts`, a process that is killed and started again. */
export interface Service {
  /** Starts it, again and again where a start fails (its database was reset), as a supervisor would. */
  start(): Promise<void>
  /** Begins a start and kills the process after so many milliseconds, ready or not. */
  startAndKill(afterMs: number): Promise<void>
  /** Kills it (-9), and waits until it is gone. */
  kill(): Promise<void>
  /** Kills it and prevents further starts. */
  close(): Promise<void>
  /** Resolves once it serves. */
  serving: () => Promise<void>
  /** How many starts ended before the service was ready. */
  failedStarts(): number
}

/** Long enough for a machine that has four runs and other tests. */
const startMs = 240_000

/**
 * Manages the service under test.
 * @param options.tree the source tree that it runs from
 * @param options.logPath the file for its standard error
 * @param options.onEnd called where it ends without a kill
 */
export function createService(options: {
  tree: string
  environment: Readonly<Record<string, string>>
  logPath: string
  onEnd: (words: string) => void
}): Service {
  const { tree, environment, logPath, onEnd } = options
  let child: ChildProcess | null = null
  let isKilled = false
  let isClosed = false
  let failed = 0
  let gate = Promise.withResolvers<void>()
  let isOpen = false

  function launch(): { process: ChildProcess; exit: Promise<unknown> } {
    if (isClosed) throw new Error('the service under test is closed')
    const log = openSync(logPath, 'a')
    const process = spawn(
      'node',
      ['--import', join(tree, 'test/crash/short-limits.ts'), join(tree, 'src/main.ts')],
      { cwd: tree, env: environment, stdio: ['ignore', 'pipe', log] },
    )
    closeSync(log)
    isKilled = false
    child = process
    return { process, exit: once(process, 'exit') }
  }

  async function isReady(process: ChildProcess, exit: Promise<unknown>): Promise<boolean> {
    let screen = ''
    const shown = new Promise<boolean>((resolve) => {
      process.stdout?.on('data', (chunk) => {
        screen += String(chunk)
        if (screen.includes('npm run demo')) resolve(true)
      })
    })
    return Promise.race([shown, exit.then(() => false)])
  }

  async function kill(): Promise<void> {
    const process = child
    child = null
    isKilled = true
    // A caller that waits already goes on to wait for the next start.
    if (isOpen) gate = Promise.withResolvers()
    isOpen = false
    if (!process || process.exitCode !== null || process.signalCode !== null) return
    const exit = once(process, 'exit')
    process.kill('SIGKILL')
    await exit
  }

  return {
    async start() {
      const deadline = performance.now() + startMs
      for (;;) {
        const { process, exit } = launch()
        if (await isReady(process, exit)) {
          void exit.then(() => {
            if (child === process && !isKilled)
              onEnd(`it ended by itself (${process.exitCode ?? process.signalCode})`)
          })
          isOpen = true
          gate.resolve()
          return
        }
        failed += 1
        if (performance.now() > deadline)
          throw new StuckError(`the service does not come back: ${lastWarnings(logPath, 5).join(' ')}`)
        await sleep(100)
      }
    },
    async startAndKill(afterMs) {
      launch()
      await sleep(afterMs)
      await kill()
    },
    kill,
    close() {
      isClosed = true
      return kill()
    },
    serving: () => gate.promise,
    failedStarts: () => failed,
  }
}

/** The end of its log, which holds warnings and errors only: the only trace of a run in CI. */
export function lastWarnings(logPath: string, count: number): string[] {
  return readFileSync(logPath, 'utf8').trimEnd().split('\n').slice(-count)
}
