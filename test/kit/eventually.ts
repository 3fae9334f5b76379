import { setTimeout as sleep } from 'node:timers/promises'

/** The longest pause between two tries. Each try takes processor time from the work that it waits for. */
const pauseMsMax = 100

/**
 * How long a test waits for a state. No test sets a limit of its own: patience costs nothing where the state
 * comes, and a limit that a busy machine reaches would fail right code.
 */
export const patienceMs = 90_000

/**
 * Tries `check` again and again until it neither throws nor returns `false`.
 * @returns the result of `check`
 * @throws Error the last error of `check`, once the time is over
 */
export async function eventually<T>(check: () => T | Promise<T>): Promise<T> {
  const deadline = performance.now() + patienceMs
  for (let pauseMs = 5; ; pauseMs = Math.min(pauseMs + 5, pauseMsMax)) {
    try {
      const given = await check()
      if (given !== false) return given
      throw new Error(`still not so after ${patienceMs} ms: ${check.toString()}`)
    } catch (error) {
      if (performance.now() > deadline) throw error
    }
    await sleep(pauseMs)
  }
}

/**
 * Asks again and again until an answer passes the check.
 * @returns that answer
 * @throws Error with the last answer, once the time is over
 */
export function eventuallyGives<T>(ask: () => T | Promise<T>, fits: (answer: T) => boolean): Promise<T> {
  return eventually(async () => {
    const answer = await ask()
    if (fits(answer)) return answer
    throw new Error(`still so after ${patienceMs} ms: ${JSON.stringify(answer)?.slice(0, 500)}`)
  })
}
