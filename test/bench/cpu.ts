import { readdirSync, readFileSync } from 'node:fs'

/** Nanoseconds that each thread has run so far, by the kernel's own accounts; null where it keeps none. */
export type CpuAccount = ReadonlyMap<string, number> | null

/** Reads the accounts of some processes, threads included. (Linux only.) */
export function cpuOf(processes: readonly number[]): CpuAccount {
  if (processes.length === 0) return null
  const account = new Map<string, number>()
  try {
    for (const process of processes) {
      for (const thread of threadsOf(process)) {
        const path = `/proc/${process}/task/${thread}/schedstat`
        account.set(path, Number(readFileSync(path, 'utf8').split(' ')[0]))
      }
    }
  } catch {
    return null
  }
  return account
}

/** Microseconds since an earlier account. A thread that came later counts whole. */
export function cpuSince(before: CpuAccount, processes: readonly number[]): number | null {
  const after = cpuOf(processes)
  if (!before || !after) return null
  let nanoseconds = 0
  for (const [thread, now] of after) nanoseconds += now - (before.get(thread) ?? 0)
  return nanoseconds / 1_000
}

function threadsOf(process: number): string[] {
  try {
    return readdirSync(`/proc/${process}/task`)
  } catch (error) {
    // A connection may have been closed since the list was made; without /proc there is no account at all.
    if (readdirSync('/proc').length > 0) return []
    throw error
  }
}
