/** An argument of a program is wrong; the message names it. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

/**
 * Runs a program. A wrong argument is printed as a sentence and ends the program with code 2.
 * @param work returns the exit code
 */
export async function runProgram(work: () => Promise<number>): Promise<void> {
  try {
    process.exitCode = await work()
  } catch (error) {
    if (!isUsage(error)) throw error
    process.stderr.write(`${error.message}\n`)
    process.exitCode = 2
  }
}

/**
 * Ends the process although handles are open. All output is written before: a pipe whose reader is busy takes
 * only 64 kB, and what waits for it would be lost.
 */
export async function exitWritten(): Promise<void> {
  await new Promise<void>((resolve) => process.stdout.write('', () => resolve()))
  process.exit()
}

/** Our own usage errors, and those of `parseArgs`. */
function isUsage(error: unknown): error is Error {
  if (error instanceof UsageError) return true
  return error instanceof Error && 'code' in error && String(error.code).startsWith('ERR_PARSE_ARGS_')
}

/** Reads a whole number above 0. @throws UsageError */
export function wholeNumber(name: string, text: string): number {
  const value = numberOf(text)
  if (!Number.isSafeInteger(value) || value < 1)
    throw new UsageError(`--${name} ${text}: a whole number above 0 is needed`)
  return value
}

/** Reads a number above 0. @throws UsageError */
export function numberAboveZero(name: string, text: string): number {
  const value = numberOf(text)
  if (!Number.isFinite(value) || value <= 0)
    throw new UsageError(`--${name} ${text}: a number above 0 is needed`)
  return value
}

/** Digits only: `Number` takes `` and `0x10` too. */
function numberOf(text: string): number {
  return /^\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN
}
