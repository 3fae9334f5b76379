import { expect, test } from 'vitest'
import type { RunReport } from '../kit/run-vitest.ts'
import { type Failure, failuresOf, filesToRepeat } from './judge.ts'

const green: RunReport = { code: 0, files: [], unfinished: [], unhandled: [], printed: '', ms: 1 }
const inA: Failure = { path: 'test/a.test.ts', title: 'it waits', message: 'expected 1 to be 2' }

test('a failed test, a failed hook, an unhandled error and a file without an end are faults', () => {
  const file = {
    path: 'test/a.test.ts',
    ms: 1,
    tests: [
      { name: 'it waits', state: 'failed', message: 'expected 1 to be 2' },
      { name: 'it goes', state: 'passed', message: '' },
    ],
    errors: ['hook timed out'],
  } as const
  const unhandled = [{ path: null, message: 'socket hang up' }]
  const run = { ...green, code: 1, files: [file], unfinished: ['test/b.test.ts'], unhandled }
  expect(failuresOf(run)).toEqual([
    inA,
    { path: 'test/a.test.ts', title: null, message: 'hook timed out' },
    { path: null, title: null, message: 'unhandled: socket hang up' },
    { path: 'test/b.test.ts', title: null, message: 'it did not end' },
  ])
  expect(failuresOf(green)).toEqual([])
})

test('a run that failed without a word is a fault', () => {
  expect(failuresOf({ ...green, code: null })).toHaveLength(1)
  expect(filesToRepeat(failuresOf({ ...green, code: 7 }))).toBeNull()
})

test('one or two files may be run again, three may not', () => {
  const inB = { ...inA, path: 'test/b.test.ts' }
  expect(filesToRepeat([inA, inA, inB])).toEqual(['test/a.test.ts', 'test/b.test.ts'])
  expect(filesToRepeat([inA, inB, { ...inA, path: 'test/c.test.ts' }])).toBeNull()
})

test.each([
  { message: 'VIOLATED: each payment has one execution' },
  { message: 'expected [ { …(2) } ] to deeply equal []\n+     "invariant": \'entries_sum_up\',' },
  { message: 'deadlock detected' },
  { message: 'it was carried out twice' },
  { title: 'the ledger adds up' },
  { path: null },
])('nothing excuses %o', (more) => {
  expect(filesToRepeat([inA, { ...inA, ...more }])).toBeNull()
})
