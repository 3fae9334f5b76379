import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { createBulkhead } from '../../src/operators/call-limits.ts'
import { call } from '../kit/operators.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] }))
afterEach(() => void vi.useRealTimers())

describe('a lane', () => {
  test('lets so many in, so many wait in order, and turns the rest away', async () => {
    const bulkhead = createBulkhead(2, 2)
    expect([await bulkhead.enter(call()), await bulkhead.enter(call())]).toEqual([null, null])
    const order: string[] = []
    const third = bulkhead.enter(call()).then(() => order.push('third'))
    const fourth = bulkhead.enter(call()).then(() => order.push('fourth'))
    expect(bulkhead.hasRoom).toBe(false)
    expect(await bulkhead.enter(call())).toEqual({ kind: 'not_sent', cause: 'bulkhead_full' })
    bulkhead.leave()
    await third
    bulkhead.leave()
    await fourth
    const fifth = bulkhead.enter(call()).then(() => order.push('fifth'))
    await vi.advanceTimersByTimeAsync(0)
    expect(order).toEqual(['third', 'fourth'])
    bulkhead.leave()
    await fifth
    bulkhead.leave()
    expect(bulkhead.hasRoom).toBe(true)
    expect(await bulkhead.enter(call())).toBeNull()
  })

  test('a waiting call leaves half a second before its deadline', async () => {
    const bulkhead = createBulkhead(1, 5)
    await bulkhead.enter(call())
    const waiting = bulkhead.enter(call({ ms: 2_000 }))
    await vi.advanceTimersByTimeAsync(1_500)
    expect(await waiting).toEqual({ kind: 'not_sent', cause: 'deadline_before_send' })
    bulkhead.leave()
    expect(await bulkhead.enter(call())).toBeNull()
  })

  test('a call that gives up leaves its place in the queue', async () => {
    const bulkhead = createBulkhead(1, 1)
    await bulkhead.enter(call())
    const abort = new AbortController()
    const waiting = bulkhead.enter(call({ signal: abort.signal }))
    abort.abort()
    expect(await waiting).toMatchObject({ kind: 'not_sent' })
    expect(bulkhead.hasRoom).toBe(true)
  })

  test('closing turns all waiting calls away', async () => {
    const bulkhead = createBulkhead(1, 1)
    await bulkhead.enter(call())
    const waiting = bulkhead.enter(call())
    bulkhead.close()
    expect(await waiting).toMatchObject({ kind: 'not_sent', cause: 'circuit_open' })
    expect(await bulkhead.enter(call())).toMatchObject({ kind: 'not_sent', cause: 'circuit_open' })
  })
})
