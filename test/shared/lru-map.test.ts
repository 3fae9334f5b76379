import { expect, test } from 'vitest'
import { LruMap } from '../../src/shared/lru-map.ts'

test('the map keeps the entries used last, and reading counts as use', () => {
  const map = new LruMap<string, number>(2)
  map.set('a', 1)
  map.set('b', 2)
  map.get('a')
  map.set('c', 3)
  expect([map.get('a'), map.get('b'), map.get('c'), map.size]).toEqual([1, undefined, 3, 2])
})

test('a value set again counts once, and a deleted one is gone', () => {
  const map = new LruMap<string, number>(2)
  map.set('a', 1)
  map.set('a', 2)
  map.set('b', 3)
  expect([map.get('a'), map.size]).toEqual([2, 2])
  map.delete('a')
  expect([map.get('a'), map.size]).toEqual([undefined, 1])
})

test('ten thousand entries leave the last hundred', () => {
  const map = new LruMap<number, number>(100)
  for (let at = 0; at < 10_000; at += 1) map.set(at, at)
  expect([map.size, map.get(9_900), map.get(9_899)]).toEqual([100, 9_900, undefined])
})
