import { onTestFinished, vi } from 'vitest'

/** Lets no `setInterval` fire until the test ends: what a poll would find must be found without it. */
export function stopPolls(): void {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  onTestFinished(() => void vi.useRealTimers())
}
