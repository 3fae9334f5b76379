import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test, vi } from 'vitest'
import { type Job, startJobs } from '../../src/jobs/schedule.ts'
import { createLog } from '../../src/telemetry/log.ts'

const log = createLog('silent')
const never = 3_600_000

/** A job that runs until the test ends the run. */
function handJob(name = 'hand', everyMs = never) {
  const runs: PromiseWithResolvers<boolean>[] = []
  const arrivals: (() => void)[] = []
  let overlap = false
  let running = false
  const job: Job = {
    name,
    everyMs,
    async run() {
      overlap ||= running
      running = true
      const gate = Promise.withResolvers<boolean>()
      runs.push(gate)
      for (const arrive of arrivals.splice(0)) arrive()
      try {
        return await gate.promise
      } finally {
        running = false
      }
    },
  }
  return {
    job,
    runs,
    overlapped: () => overlap,
    begun: async (count: number) => {
      while (runs.length < count) await new Promise<void>((arrive) => arrivals.push(arrive))
    },
    end: (at: number, more = false) => runs[at]?.resolve(more),
    fail: (at: number) => runs[at]?.reject(new Error('broken')),
  }
}

test('a job runs at once, and again after its pause', async () => {
  const hand = handJob('hand', 20)
  const schedule = startJobs([hand.job], log)
  await hand.begun(1)
  const ended = performance.now()
  hand.end(0)
  await hand.begun(2)
  expect(performance.now() - ended).toBeGreaterThanOrEqual(18)
  hand.end(1)
  await schedule.close()
})

test('a job with more to do runs again at once', async () => {
  const hand = handJob()
  const schedule = startJobs([hand.job], log)
  hand.end(0, true)
  await hand.begun(2)
  hand.end(1)
  await schedule.close()
  expect(hand.overlapped()).toBe(false)
})

test('a job that is notified while it pauses runs now', async () => {
  const hand = handJob()
  const schedule = startJobs([hand.job], log)
  await hand.begun(1)
  hand.end(0)
  await sleep(5)
  schedule.notify('hand')
  await hand.begun(2)
  hand.end(1)
  await schedule.close()
  expect(hand.runs).toHaveLength(2)
})

test('a job that is notified while it runs runs once more right after, never beside itself', async () => {
  const hand = handJob()
  const schedule = startJobs([hand.job], log)
  await hand.begun(1)
  for (let n = 0; n < 5; n += 1) schedule.notify('hand')
  hand.end(0)
  await hand.begun(2)
  hand.end(1)
  await sleep(20)
  expect(hand.runs).toHaveLength(2)
  expect(hand.overlapped()).toBe(false)
  await schedule.close()
})

test('a job that is notified while a run fails still runs once more', async () => {
  const hand = handJob()
  const schedule = startJobs([hand.job], log)
  await hand.begun(1)
  schedule.notify('hand')
  hand.fail(0)
  await hand.begun(2)
  hand.end(1)
  await schedule.close()
  expect(hand.overlapped()).toBe(false)
})

test('a failure ends neither the job nor another one', async () => {
  const broken: Job = {
    name: 'broken',
    everyMs: 5,
    run: () => {
      throw new Error('at once')
    },
  }
  const hand = handJob('hand', 5)
  const schedule = startJobs([broken, hand.job], log)
  await hand.begun(1)
  hand.fail(0)
  await hand.begun(2)
  hand.end(1)
  await schedule.close()
  expect(hand.overlapped()).toBe(false)
})

test('a hanging job delays no other job', async () => {
  const [stuck, well] = [handJob('stuck'), handJob('well', 5)]
  const schedule = startJobs([stuck.job, well.job], log)
  await stuck.begun(1)
  for (let run = 0; run < 3; run += 1) {
    await well.begun(run + 1)
    well.end(run)
  }
  await well.begun(4)
  well.end(3)
  expect(stuck.runs).toHaveLength(1)
  stuck.end(0)
  await schedule.close()
})

test('closing waits for the run under way and begins no other', async () => {
  const hand = handJob('hand', 1)
  const schedule = startJobs([hand.job], log)
  await hand.begun(1)
  schedule.notify('hand')
  let closed = false
  const closing = schedule.close().then(() => (closed = true))
  await sleep(10)
  expect(closed).toBe(false)
  hand.end(0, true)
  await closing
  schedule.notify('hand')
  await sleep(10)
  expect(hand.runs).toHaveLength(1)
})

test('an unknown name starts no job', async () => {
  const schedule = startJobs([], log)
  schedule.notify('nobody')
  expect(schedule.healthy()).toBe(true)
  await schedule.close()
})

test('a run that takes a minute more than its pause is stuck; many short ones in a row are not', async () => {
  let now = 0
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => now)
  try {
    const hand = handJob('hand', 500)
    const schedule = startJobs([hand.job], log)
    await hand.begun(1)
    for (let run = 0; run < 5; run += 1) {
      now += 40_000
      expect(schedule.healthy()).toBe(true)
      hand.end(run, true)
      await hand.begun(run + 2)
    }
    now += 60_400
    expect(schedule.healthy()).toBe(true)
    now += 200
    expect(schedule.healthy()).toBe(false)
    hand.end(5)
    await schedule.close()
    expect(schedule.healthy()).toBe(true)
  } finally {
    clock.mockRestore()
  }
})
