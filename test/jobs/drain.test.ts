import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { bulkQueue, openDrains, type Run } from '../../src/jobs/drain.ts'
import type { Leases } from '../../src/jobs/leases.ts'

/** Holds that grant each lane as often as the test says, and can be lost. */
function openFixture() {
  const ending = new AbortController()
  const lost: AbortController[] = []
  let grants = Number.POSITIVE_INFINITY
  const holds = {
    during: async (_lane: number, work: (lost: AbortSignal) => Promise<void>) => {
      if (lost.length >= grants) return undefined
      const hold = new AbortController()
      lost.push(hold)
      return work(hold.signal)
    },
  } as unknown as Leases
  return { drains: openDrains(ending.signal, holds), ending, lost, grant: (most: number) => (grants = most) }
}

/** Looks that the test answers one after another. */
function handLooks() {
  const looks: PromiseWithResolvers<boolean>[] = []
  const runs: Run[] = []
  return {
    looks,
    runs,
    open: (run: Run) => {
      runs.push(run)
      return () => {
        const look = Promise.withResolvers<boolean>()
        looks.push(look)
        return look.promise
      }
    },
    answer: async (more = false) => {
      looks.at(-1)?.resolve(more)
      await sleep(0)
    },
  }
}

test('a lane is looked at until a look finds nothing more, then its place is free', async () => {
  const { drains } = openFixture()
  const hand = handLooks()
  const done = drains.webhooks.run(7, hand.open)
  await sleep(0)
  expect(drains.webhooks.size).toBe(1)
  await hand.answer(true)
  expect(hand.looks).toHaveLength(2)
  await hand.answer(false)
  await done
  expect(drains.webhooks.size).toBe(0)
})

test('a call that comes while a look is under way causes one more look, by the same run', async () => {
  const { drains } = openFixture()
  const hand = handLooks()
  const done = drains.webhooks.run(7, hand.open)
  await sleep(0)
  await Promise.all([drains.webhooks.run(7, hand.open), drains.webhooks.run(7, hand.open)])
  await hand.answer()
  expect(hand.looks).toHaveLength(2)
  await hand.answer()
  await done
  expect(hand.runs).toHaveLength(1)
})

test('the run waits for the works that it began, and looks again after the last one', async () => {
  const { drains } = openFixture()
  const hand = handLooks()
  const works = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  let ends = 0
  const done = drains.payouts.run('OperatorA', hand.open)
  for (const { promise } of works) hand.runs[0]?.begin(promise, () => (ends += 1))
  await hand.answer()
  works[0]?.resolve()
  await sleep(0)
  expect([hand.looks.length, hand.runs[0]?.underWay, ends]).toEqual([1, 1, 1])
  works[1]?.resolve()
  await sleep(0)
  expect([hand.looks.length, hand.runs[0]?.underWay, ends]).toEqual([2, 0, 1])
  await hand.answer()
  await done
})

test('a pause is ended by the first wake: one look, not two', async () => {
  const { drains } = openFixture()
  const hand = handLooks()
  const work = Promise.withResolvers<void>()
  const done = drains.payouts.run('OperatorA', hand.open)
  hand.runs[0]?.begin(work.promise)
  await hand.answer()
  hand.runs[0]?.notify(20)
  hand.runs[0]?.notify()
  await sleep(0)
  await hand.answer()
  await sleep(40)
  expect(hand.looks).toHaveLength(2)
  hand.runs[0]?.notify(5)
  await sleep(40)
  expect(hand.looks).toHaveLength(3)
  await hand.answer()
  work.resolve()
  await sleep(0)
  await hand.answer()
  await done
})

test('the drain does not look where another process holds the lane', async () => {
  const { drains, grant } = openFixture()
  grant(0)
  const hand = handLooks()
  await drains.batches.run(bulkQueue, hand.open)
  expect(hand.looks).toHaveLength(0)
})

test('a run whose hold is lost ends at once; a call that came meanwhile holds the lane anew', async () => {
  const { drains, lost } = openFixture()
  const hand = handLooks()
  const done = drains.batches.run(bulkQueue, hand.open)
  await sleep(0)
  void drains.batches.run(bulkQueue, hand.open)
  lost[0]?.abort()
  expect(hand.runs[0]?.isOver).toBe(true)
  await hand.answer(true)
  expect([hand.runs.length, hand.looks.length, hand.runs[1]?.isOver]).toEqual([2, 2, false])
  await hand.answer()
  await done
})

test('a run that waits ends with the service, and none begins after it', async () => {
  const { drains, ending } = openFixture()
  const hand = handLooks()
  const done = drains.payouts.run('OperatorA', hand.open)
  hand.runs[0]?.begin(new Promise(() => {}))
  await hand.answer()
  ending.abort()
  await done
  await drains.payouts.run('OperatorA', hand.open)
  expect(hand.looks).toHaveLength(1)
})

test('lanes whose receiver failed are counted while they run', async () => {
  const { drains } = openFixture()
  const hands = [handLooks(), handLooks()]
  const done = hands.map((hand, at) => drains.webhooks.run(at + 1, hand.open))
  await sleep(0)
  const [run] = hands[0]?.runs ?? []
  if (run) run.isFailing = true
  expect([drains.webhooks.size, drains.webhooks.failing]).toEqual([2, 1])
  for (const hand of hands) await hand.answer()
  await Promise.all(done)
  expect(drains.webhooks.failing).toBe(0)
})
