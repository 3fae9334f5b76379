/**
 * Waits until something holds: tries again and again, every 25 ms, until `check` no longer throws.
 * @returns what `check` gave
 * @throws what `check` threw last, once the time is over
 */
export async function eventually<T>(check: () => T | Promise<T>, withinMs = 10_000): Promise<T> {
  const deadline = performance.now() + withinMs
  for (;;) {
    try {
      return await check()
    } catch (error) {
      if (performance.now() > deadline) throw error
      await new Promise((resolve) => setTimeout(resolve, 25))
    }
  }
}
