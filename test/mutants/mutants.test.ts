import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { readEdit } from '../crash/mutants.ts'
import { editsOf } from './mutant.ts'
import { mutants } from './mutants.ts'

// `npm run mutants` plants the bugs. Here each must fit the sources and name a test of today.

const root = join(import.meta.dirname, '../..')

test('there are at least 48 bugs, each with a name of its own', () => {
  expect(mutants.length).toBeGreaterThanOrEqual(48)
  expect(new Set(mutants.map(({ name }) => name)).size).toBe(mutants.length)
})

test.each(mutants)('the planted bug "$name" fits the sources of today', (mutant) => {
  for (const edit of editsOf(mutant)) expect(() => readEdit(root, mutant.name, edit)).not.toThrow()
})

test.each(mutants)('the test that finds "$name" exists', ({ test: file, finds }) => {
  const path = join(root, 'test', file)
  expect(existsSync(path)).toBe(true)
  expect(finds).not.toBe('')
  // `finds` is a part of the name that stands in the file as it is: `test.each` fills in the rest.
  expect(readFileSync(path, 'utf8').includes(finds), `${file} has no test "${finds}"`).toBe(true)
})
