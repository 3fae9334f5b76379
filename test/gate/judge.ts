import type { FileReport, RunReport } from '../kit/run-vitest.ts'

/** A fault that a run found. */
export interface Failure {
  /** The path is null if the file is not known. */
  path: string | null
  /** The name of the test; null: outside of every test. */
  title: string | null
  message: string
}

/** All faults of a run. */
export function failuresOf({ code, files, unfinished, unhandled }: RunReport): Failure[] {
  const failures: Failure[] = [
    ...files.flatMap(failuresIn),
    ...unhandled.map(({ path, message }) => ({ path, title: null, message: `unhandled: ${message}` })),
    ...unfinished.map((path) => ({ path, title: null, message: 'it did not end' })),
  ]
  if (code !== 0 && failures.length === 0)
    return [
      { path: null, title: null, message: `vitest ended with ${code ?? 'a signal'} and named no fault` },
    ]
  return failures
}

function failuresIn({ path, tests, errors }: FileReport): Failure[] {
  return [
    ...tests
      .filter(({ state }) => state === 'failed')
      .map(({ name, message }) => ({ path, title: name, message })),
    ...errors.map((message) => ({ path, title: null, message })),
  ]
}

/** More files than these do not fail by luck. */
const filesMax = 2

/** Words of a fault in money, which no second run excuses. */
const money =
  /\bVIOLATED\b|invariant|deadlock|\btwice\b|\bdoubled?\b|\blost\b|\bfrancs?\b|\bledger\b|\bbooks\b/i

/**
 * Says which files may be run again, alone: those of a few failures that do not speak of money.
 * @returns the files; null where nothing is excused
 */
export function filesToRepeat(failures: readonly Failure[]): string[] | null {
  const files = new Set(failures.map(({ path }) => path))
  if (files.size > filesMax || files.has(null)) return null
  if (failures.some(({ title, message }) => money.test(`${title ?? ''}\n${message}`))) return null
  return [...files].filter((path) => path !== null)
}

/** One line about a fault: file, title, and the first line of its message. */
export function lineOf({ path, title, message }: Failure): string {
  const [first = ''] = message.split('\n')
  return `${path ?? 'no file'} | ${title ?? 'outside of every test'} | ${first}`
}
