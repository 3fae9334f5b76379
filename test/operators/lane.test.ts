import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { createLane } from '../../src/operators/waiting.ts'
import { call } from '../kit/operators.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] }))
afterEach(() => void vi.useRealTimers())

describe('a lane', () => {
  test('lets so many in, so many wait in order, and turns the rest away', async () => {
    const lane = createLane(2, 2)
    expect([await lane.enter(call()), await lane.enter(call())]).toEqual([null, null])
    const order: string[] = []
    const third = lane.enter(call()).then(() => order.push('third'))
    const fourth = lane.enter(call()).then(() => order.push('fourth'))
    expect(lane.hasRoom).toBe(false)
    expect(await lane.enter(call())).toEqual({ kind: 'not_sent', cause: 'lane_full' })
    lane.leave()
    await third
    lane.leave()
    await fourth
    const fifth = lane.enter(call()).then(() => order.push('fifth'))
    await vi.advanceTimersByTimeAsync(0)
    expect(order).toEqual(['third', 'fourth'])
    lane.leave()
    await fifth
    lane.leave()
    expect(lane.hasRoom).toBe(true)
    expect(await lane.enter(call())).toBeNull()
  })

  test('who waits leaves half a second before its deadline', async () => {
    const lane = createLane(1, 5)
    await lane.enter(call())
    const waiting = lane.enter(call({ ms: 2_000 }))
    await vi.advanceTimersByTimeAsync(1_500)
    expect(await waiting).toEqual({ kind: 'not_sent', cause: 'deadline_before_send' })
    lane.leave()
    expect(await lane.enter(call())).toBeNull()
  })

  test('who gives up leaves its place in the queue', async () => {
    const lane = createLane(1, 1)
    await lane.enter(call())
    const abort = new AbortController()
    const waiting = lane.enter(call({ signal: abort.signal }))
    abort.abort()
    expect(await waiting).toMatchObject({ kind: 'not_sent' })
    expect(lane.hasRoom).toBe(true)
  })

  test('closing sends everyone away', async () => {
    const lane = createLane(1, 1)
    await lane.enter(call())
    const waiting = lane.enter(call())
    lane.close()
    expect(await waiting).toMatchObject({ kind: 'not_sent', cause: 'circuit_open' })
    expect(await lane.enter(call())).toMatchObject({ kind: 'not_sent', cause: 'circuit_open' })
  })
})
