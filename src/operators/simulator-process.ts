import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { createInterface } from 'node:readline'
import type { Secret } from '../shared/secret.ts'

/** The operator simulator that a sandbox talks to, over real HTTP, in a process of its own. */
export interface SimulatorProcess {
  url: string
  /** Settles where it ends although nobody closed it, with words for the log. */
  ended: Promise<string>
  close(): Promise<void>
}

const program = fileURLToPath(new URL('../simulator/main.ts', import.meta.url))

/**
 * Starts the simulator on a loopback port, and ends it with this process, however that ends.
 * @param options.port taken by another program: any free one
 * @param options.journalPath the operators' own books, kept over restarts
 * @param options.claimed settles once the journal is this process's own; the program loads meanwhile
 * @throws Error when it does not start
 */
export async function startSimulatorProcess(options: {
  port: number
  journalPath: string
  controlToken: Secret
  claimed?: Promise<unknown>
}): Promise<SimulatorProcess> {
  const flags = ['--tied', '--any-port', '--port', String(options.port), '--journal', options.journalPath]
  const child = spawn(
    process.execPath,
    [program, ...flags, '--control-token', options.controlToken.reveal()],
    {
      stdio: ['pipe', 'pipe', 'inherit'],
    },
  )
  child.stdin.on('error', () => {})
  void (options.claimed ?? Promise.resolve()).then(
    () => child.stdin.write('\n'),
    () => child.stdin.end(),
  )
  const lines = createInterface({ input: child.stdout })
  const ready = once(lines, 'line').then(([line]) => String(line))
  const exit = once(child, 'exit')
  const line = await Promise.race([ready, exit.then(() => null)])
  const url = line === null ? undefined : (JSON.parse(line) as { url?: string }).url
  if (url === undefined) throw new Error(`The operator simulator did not start (${program}).`)
  child.stdout.resume()
  let closing = false
  const ended = new Promise<string>((report) => {
    void exit.then(([code, signal]) => {
      if (!closing) report(`the operator simulator ended by itself (${String(signal ?? code)})`)
    })
  })
  return {
    url,
    ended,
    async close() {
      closing = true
      child.stdin.end()
      await exit
    },
  }
}
