import { request } from 'undici'
import type { Secret } from '../shared/secret.ts'

/**
 * Commands to the simulator that no real operator has: move its time, and set the address of its webhooks.
 */
export interface SimulatorControl {
  /** Moves the simulator's time forward. A repeated call with the same `move` changes nothing. */
  advanceClock(ms: number, move?: string): Promise<void>
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
    advanceClock: (ms, move) => call('POST', 'clock', { advance_ms: ms, move }),
    setWebhook: (target) => call('PUT', 'webhook', { url: target }),
  }
}

const controlTimeoutMs = 10_000
