import { expect, onTestFinished, test, vi } from 'vitest'
import type { CallContext } from '../../src/operators/operator.ts'
import { createRate } from '../../src/operators/call-limits.ts'

/** Takes turns by a clock that the test moves; the names of those that had one, in their order. */
function takers(perSecond: number) {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const rate = createRate(perSecond)
  const order: string[] = []
  const take = (name: string, priority: CallContext['priority'], inMs = 60_000) =>
    rate
      .take({ priority, deadline: new Date(Date.now() + inMs), record: () => {} })
      .then((refused) =>
        order.push(refused ? `${name} ${refused.kind === 'not_sent' && refused.cause}` : name),
      )
  return { take, order, pass: (ms: number) => vi.advanceTimersByTimeAsync(ms) }
}

test('a call that a customer waits for goes before all background work that came earlier', async () => {
  const { take, order, pass } = takers(10)
  for (let n = 0; n < 40; n += 1) void take(`b${n}`, 'background')
  for (let n = 0; n < 12; n += 1) void take(`i${n}`, 'interactive')
  await pass(0)
  // A second's worth for background work, the other second's for those; then each in its turn.
  const burst = [...Array(10).keys()]
  expect(order).toEqual([...burst.map((n) => `b${n}`), ...burst.map((n) => `i${n}`)])
  await pass(200)
  expect(order.slice(20)).toEqual(['i10', 'i11'])
  await pass(1_100)
  expect(order.slice(22)).toEqual(['b10'])
  await pass(200)
  expect(order.slice(22)).toEqual(['b10', 'b11', 'b12'])
})

test('a call too late for a turn is refused at once, an overtaken one when its time is over', async () => {
  const { take, order, pass } = takers(10)
  for (let n = 0; n < 10; n += 1) void take('', 'background')
  void take('soon', 'background', 700)
  void take('too late', 'background', 650)
  await pass(0)
  expect(order.slice(10)).toEqual(['too late rate_limited'])
  for (let n = 0; n < 20; n += 1) void take('', 'interactive')
  await pass(250)
  expect(order.slice(11)).toContain('soon deadline_before_send')
})
