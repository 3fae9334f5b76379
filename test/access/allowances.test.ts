import { expect, test } from 'vitest'
import { Allowances } from '../../src/access/allowances.ts'
import { limits } from '../../src/shared/limits.ts'

const tenPerSecond = { max: 10, refillMs: 1_000 }

test('an allowance is used up, says when more is there, and comes back with time', () => {
  const allowances = new Allowances()
  expect(allowances.take('shop', 4, tenPerSecond, 0)).toEqual({ remaining: 6, retryAfterS: 0 })
  expect(allowances.take('shop', 6, tenPerSecond, 0)).toEqual({ remaining: 0, retryAfterS: 0 })
  expect(allowances.take('shop', 1, tenPerSecond, 0)).toEqual({ remaining: 0, retryAfterS: 1 })
  expect(allowances.take('shop', 5, tenPerSecond, 499)).toMatchObject({ retryAfterS: 1 })
  expect(allowances.take('shop', 5, tenPerSecond, 500)).toEqual({ remaining: 0, retryAfterS: 0 })
  expect(allowances.take('shop', 10, tenPerSecond, 60_000)).toEqual({ remaining: 0, retryAfterS: 0 })
})

test('a refused use uses nothing, and names do not share', () => {
  const allowances = new Allowances()
  allowances.take('shop', 8, tenPerSecond, 0)
  expect(allowances.take('shop', 3, { ...tenPerSecond, refillMs: 60_000 }, 0).retryAfterS).toBe(6)
  expect(allowances.take('shop', 2, tenPerSecond, 0).retryAfterS).toBe(0)
  expect(allowances.take('other', 10, tenPerSecond, 0).retryAfterS).toBe(0)
})

test('a bounded number of names is remembered', () => {
  const allowances = new Allowances()
  allowances.take('first', 10, tenPerSecond, 0)
  for (let count = 0; count < limits.allowanceNamesMax; count += 1) {
    allowances.take(`${count}`, 1, tenPerSecond, 0)
  }
  expect(allowances.take('first', 10, tenPerSecond, 0).retryAfterS).toBe(0)
})
