import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { isTested } from './mutant.ts'
import { mutants } from './mutants.ts'
import { changesOf } from './plant.ts'
import { readTable } from './read-table.ts'

// `npm run mutants` and `npm run crash -- --planted` plant the bugs. Here each must fit the sources and name
// a test of today.

const root = join(import.meta.dirname, '../..')

test('there are at least 112 bugs, each with a name of its own and a way to be found', () => {
  expect(mutants.length).toBeGreaterThanOrEqual(112)
  expect(new Set(mutants.map(({ name }) => name)).size).toBe(mutants.length)
  expect(mutants.filter((mutant) => !isTested(mutant) && !mutant.isFoundByCrashes)).toEqual([])
  expect(mutants.filter(({ isFoundByCrashes }) => isFoundByCrashes).length).toBeGreaterThanOrEqual(13)
})

test.each(mutants)('the planted bug "$name" fits the sources of today', (mutant) => {
  const changes = [...changesOf(root, mutant).values()]
  expect(changes).not.toHaveLength(0)
  for (const { text, changed } of changes) expect(changed).not.toBe(text)
})

test.each(mutants.filter(isTested))('the test that finds "$name" exists', ({ test: { file, name } }) => {
  const path = join(root, 'test', file)
  expect(existsSync(path)).toBe(true)
  // The name is a part of a name that stands in the file as it is: `test.each` fills in the rest.
  expect(readFileSync(path, 'utf8').includes(name), `${file} has no test "${name}"`).toBe(true)
})

test('a row is read with all of its edits', () => {
  const table = `# Comment.

bug: first
found by: the crash harness
in: a.ts
- one
- two
+ three
+   four
- five

bug: second,
  of two lines
found by: b.test.ts: fails
# Comment.
as in: first
in: c()
- six
+
`
  const [first, second] = readTable(table)
  expect(first?.edits).toEqual([
    { file: 'a.ts', find: 'one\ntwo', replace: 'three\n  four' },
    { file: 'a.ts', find: 'five', replace: '' },
  ])
  expect(second).toEqual({
    name: 'second, of two lines',
    edits: [...(first?.edits ?? []), { file: 'c()', find: 'six', replace: '' }],
    test: { file: 'b.test.ts', name: 'fails' },
    isFoundByCrashes: false,
  })
})

test.each([
  'bug: two',
  'found by: chance',
  'found by: b.ts',
  'in a.ts',
  '+ no text that it replaces',
  'as in: no bug above',
])('a row with the line "%s" is refused', (line) => {
  expect(() => readTable(`bug: one\n${line}\n`)).toThrow(
    /^a planted bug is not written as a row is: bug: one/,
  )
})
