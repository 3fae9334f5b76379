import { setTimeout as sleep } from 'node:timers/promises'

/** How often something happens, and for how long. */
export interface Pace {
  perSecond: number
  seconds: number
}

/** Acts at a rate. @returns when each began, in nanoseconds of the system's clock */
export async function actAtRate({ perSecond, seconds }: Pace, act: (n: number) => void): Promise<number[]> {
  const moments: number[] = []
  const begun = performance.now()
  while (moments.length < perSecond * seconds) {
    const due = ((performance.now() - begun) * perSecond) / 1_000
    while (moments.length < Math.min(due, perSecond * seconds)) {
      moments.push(Number(process.hrtime.bigint()))
      act(moments.length - 1)
    }
    await sleep(turnMs)
  }
  return moments
}

const turnMs = 1
