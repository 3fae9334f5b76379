import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { StuckError } from './stuck.ts'

/** The service under test: the real `src/main.ts`, a process that is killed and started again. */
export interface Service {
  /** Starts it; where it cannot (its database was reset) it is started again, as a supervisor would. */
  start(): Promise<void>
  /** Begins a start and kills it after so many milliseconds, wherever it is then. */
  startAndKill(afterMs: number): Promise<void>
  /** Kills it (-9), and waits until it is gone. */
  kill(): Promise<void>
  /** Kills it and lets nobody start it again. */
  close(): Promise<void>
  /** Resolves where it serves; waits while it does not. */
  serving: () => Promise<void>
  /** Starts that ended before they served. */
  failedStarts(): number
}

/** Long, for a machine on which four storms and other tests run. */
const startMs = 90_000

/**
 * @param options.tree the source tree that it runs from
 * @param options.logPath takes its standard error
 * @param options.onEnd it ended although nobody killed it
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
    // Whoever waits already goes on waiting for the next start.
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

/** The end of its log, which has warnings and errors only: of a run in CI it is all that is left. */
export function lastWarnings(logPath: string, count: number): string[] {
  return readFileSync(logPath, 'utf8').trimEnd().split('\n').slice(-count)
}
