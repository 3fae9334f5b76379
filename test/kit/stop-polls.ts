import { onTestFinished, vi } from 'vitest'

/** Stops every `setInterval` until the test ends, to show that the result does not depend on polling. */
export function stopPolls(): void {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  onTestFinished(() => void vi.useRealTimers())
}
