import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { createInterface } from 'node:readline'
import { request } from 'undici'
import type { Secret } from '../shared/secret.ts'

/** The operator simulator that a sandbox talks to, over real HTTP, in a process of its own. */
export interface SimulatorProcess {
  url: string
  close(): Promise<void>
}

const program = fileURLToPath(new URL('./simulator/main.ts', import.meta.url))

/**
 * Starts the simulator on a loopback port, and ends it with this process, however that ends.
 * @param options.port taken by another program: any free one
 * @param options.journalPath the operators' own books, kept over restarts
 * @throws Error when it does not start
 */
export async function startSimulatorProcess(options: {
  port: number
  journalPath: string
  controlToken: Secret
  /** Told when it ends although nobody closed it. */
  onEnd: (words: string) => void
}): Promise<SimulatorProcess> {
  const flags = ['--tied', '--any-port', '--port', String(options.port), '--journal', options.journalPath]
  const child = spawn(
    process.execPath,
    [program, ...flags, '--control-token', options.controlToken.reveal()],
    {
      stdio: ['pipe', 'pipe', 'inherit'],
    },
  )
  const lines = createInterface({ input: child.stdout })
  const ready = once(lines, 'line').then(([line]) => String(line))
  const ended = once(child, 'exit')
  const line = await Promise.race([ready, ended.then(() => null)])
  const url = line === null ? undefined : (JSON.parse(line) as { url?: string }).url
  if (url === undefined) throw new Error(`The operator simulator did not start (${program}).`)
  child.stdout.resume()
  let closing = false
  void ended.then(([code, signal]) => {
    if (!closing) options.onEnd(`the operator simulator ended by itself (${String(signal ?? code)})`)
  })
  return {
    url,
    async close() {
      closing = true
      child.stdin.end()
      if (child.exitCode === null && child.signalCode === null) {
        child.kill('SIGTERM')
        await ended
      }
    },
  }
}

/** Tells the simulator what no operator could be told: to move its time, and where its webhooks go. */
export interface SimulatorControl {
  advanceClock(ms: number): Promise<void>
  setWebhook(url: string): Promise<void>
}

export function simulatorControl(url: string, token: Secret): SimulatorControl {
  async function call(method: 'POST' | 'PUT', path: string, body: object): Promise<void> {
    const response = await request(`${url}/_sim/${path}`, {
      method,
      headers: { 'content-type': 'application/json', 'x-control-token': token.reveal() },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(controlTimeoutMs),
    })
    const answer = await response.body.text()
    if (response.statusCode >= 300)
      throw new Error(`simulator: ${path} answered ${response.statusCode} ${answer}`)
  }
  return {
    advanceClock: (ms) => call('POST', 'clock', { advance_ms: ms }),
    setWebhook: (target) => call('PUT', 'webhook', { url: target }),
  }
}

const controlTimeoutMs = 10_000
