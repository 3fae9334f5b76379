import { expect, test, vi } from 'vitest'
import type { OpenRequest } from '../../../src/operators/requests.ts'
import { type Begun, openLanes } from '../../../src/resources/batches/lanes.ts'
import type { Provider } from '../../../src/shared/providers.ts'

/** Lanes whose calls end when the test says so. */
function stage(signal: AbortSignal = new AbortController().signal) {
  const calls: { begun: Begun; end: () => void }[] = []
  const lanes = openLanes(signal, (begun, onAnswered) => void calls.push({ begun, end: onAnswered }))
  const underWay = new Set<object>()
  return {
    lanes,
    take: (count: number, batchId: number, provider: Provider = 'OperatorA') => {
      const request = { provider } as OpenRequest
      for (let n = 0; n < count; n += 1) lanes.add({ batchId, request, deadline: new Date() })
    },
    /** The calls that have not ended, of a batch or of an operator. */
    calling: (what: { batchId?: number; provider?: Provider } = {}) =>
      calls.filter(
        (call) =>
          !underWay.has(call) &&
          call.begun.batchId === (what.batchId ?? call.begun.batchId) &&
          call.begun.request.provider === (what.provider ?? call.begun.request.provider),
      ).length,
    end: (count = 1, provider?: Provider) => {
      const open = calls.filter((call) => !underWay.has(call))
      const own = open.filter(({ begun }) => begun.request.provider === (provider ?? begun.request.provider))
      for (const call of own.slice(0, count)) {
        underWay.add(call)
        call.end()
      }
    },
  }
}

test('of one batch eight are called at a time, the next one as one ends', () => {
  const { lanes, take, calling, end } = stage()
  take(20, 1)
  expect(calling()).toBe(8)
  end(3)
  expect(calling()).toBe(8)
  expect(lanes.open()).toBe(17)
  for (let n = 0; n < 9; n += 1) end()
  expect(calling()).toBe(8)
  end()
  expect(calling()).toBe(7)
})

test('an answer that is told twice frees one place', () => {
  const ended: (() => void)[] = []
  const lanes = openLanes(new AbortController().signal, (_begun, onAnswered) => void ended.push(onAnswered))
  const request = { provider: 'OperatorA' } as OpenRequest
  for (let n = 0; n < 12; n += 1) lanes.add({ batchId: 1, request, deadline: new Date() })
  ended[0]?.()
  ended[0]?.()
  expect(ended).toHaveLength(9)
})

test('the operators of a batch share its calls: one that hangs holds up no other', () => {
  const { take, calling, end } = stage()
  take(2, 1, 'OperatorA')
  take(10, 1, 'OperatorD')
  expect(calling({ provider: 'OperatorD' })).toBe(4)
  for (let n = 0; n < 5; n += 1) end(1, 'OperatorD')
  expect(calling({ provider: 'OperatorA' })).toBe(2)
  expect(calling({ provider: 'OperatorD' })).toBe(4)
})

test('of one operator thirty-two are called at a time, whosever batches they are', () => {
  const { take, calling, end } = stage()
  for (let batch = 1; batch <= 5; batch += 1) take(8, batch)
  expect(calling()).toBe(32)
  expect(calling({ batchId: 5 })).toBe(0)
  end(2)
  expect(calling()).toBe(32)
  expect(calling({ batchId: 5 })).toBe(2)
})

test('of an operator that answers at once more is taken ahead; of a slow one nothing', () => {
  vi.useFakeTimers()
  try {
    const { lanes, take, end } = stage()
    take(16, 1, 'OperatorA')
    expect(lanes.list()).toEqual([{ batchId: 1, provider: 'OperatorA', open: 16, ahead: 0 }])
    vi.advanceTimersByTime(5)
    end(8)
    expect(lanes.list()).toEqual([{ batchId: 1, provider: 'OperatorA', open: 8, ahead: 32 }])
    for (let n = 0; n < 12; n += 1) {
      take(8, 1)
      vi.advanceTimersByTime(1_000)
      end(8)
    }
    expect(lanes.list()[0]?.ahead).toBe(0)
  } finally {
    vi.useRealTimers()
  }
})

test('nothing is called once it is over', () => {
  const over = new AbortController()
  const { take, calling, end } = stage(over.signal)
  take(12, 1)
  over.abort()
  end(4)
  expect(calling()).toBe(4)
})
