import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { createInterface } from 'node:readline'
import type { Secret } from '../shared/secret.ts'

/** The operator simulator of a sandbox, reached over real HTTP, in a process of its own. */
export interface SimulatorProcess {
  url: string
  /** Resolves, with a text for the log, if the process ends without `close`. */
  ended: Promise<string>
  close(): Promise<void>
}

const program = fileURLToPath(new URL('../simulator/main.ts', import.meta.url))

/**
 * Starts the simulator on a loopback port, and ends it when this process ends for any reason.
 * @param options.port if another program uses it, any free port is taken
 * @param options.journalPath the file with the books of the simulated operators, kept over restarts
 * @param options.claimed resolves when this process owns the journal; until then the simulator only loads its
 * code
 * @throws Error when the simulator does not start
 */
export async function startSimulatorProcess(options: {
  port: number
  journalPath: string
  controlToken: Secret
  claimed?: Promise<unknown>
}): Promise<SimulatorProcess> {
  // As in `npm run operators`: with a larger young generation the memory grows by 20 MB more under load.
  const node = '--max-semi-space-size=16'
  const flags = ['--tied', '--any-port', '--port', String(options.port), '--journal', options.journalPath]
  const child = spawn(
    process.execPath,
    [node, program, ...flags, '--control-token', options.controlToken.reveal()],
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
