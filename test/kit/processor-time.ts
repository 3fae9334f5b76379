// Tests measure work by its processor time, because other programs on the machine lengthen every time by the
// clock.

/** Milliseconds of processor time that this thread has taken, in steps of up to 4 ms. */
export function threadMs(): number {
  return milliseconds(process.threadCpuUsage())
}

/** Milliseconds of processor time that this process has taken, to the microsecond. */
export function processMs(): number {
  return milliseconds(process.cpuUsage())
}

function milliseconds({ user, system }: NodeJS.CpuUsage): number {
  return (user + system) / 1_000
}
