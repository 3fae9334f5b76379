import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import type { Mutant } from './mutant.ts'
import { mutants } from './mutants.ts'
import { copyTree, plant } from './plant.ts'

// The planted bugs that a named test finds (`npm run mutants`): the tests stay as sharp as they were.

const root = join(import.meta.dirname, '../..')

/** Groups of bugs that one tree can hold together: no two of a group change the same file. */
function groupsOf(all: readonly Mutant[]): Mutant[][] {
  const groups: Mutant[][] = []
  for (const mutant of all) {
    const files = new Set(mutant.edits.map(({ file }) => file))
    const group = groups.find(
      (others) => !others.some(({ edits }) => edits.some(({ file }) => files.has(file))),
    )
    if (group) group.push(mutant)
    else groups.push([mutant])
  }
  return groups
}

// A bug that breaks its program is no bug: the service fails at each call, and no money moves wrongly.
test('the planted bugs pass the type check', async () => {
  for (const group of groupsOf(mutants)) {
    const { tree, remove } = copyTree(root, ['src', 'prisma', 'package.json', 'tsconfig.json'])
    try {
      for (const mutant of group) plant(tree, mutant)
      const tsc = [join(root, 'node_modules/typescript/bin/tsc'), '--noEmit', '-p', tree]
      // An edit may leave something unused.
      const unused = ['--noUnusedLocals', 'false', '--noUnusedParameters', 'false']
      const found = await promisify(execFile)(process.execPath, [...tsc, ...unused], { cwd: tree }).then(
        () => '',
        (error: { stdout: string }) => error.stdout,
      )
      expect(found.split('\n').filter((line) => line.startsWith('src/'))).toEqual([])
    } finally {
      remove()
    }
  }
}, 600_000)

test('each planted bug is found by its test', async () => {
  const { stdout } = await promisify(execFile)(process.execPath, [
    join(import.meta.dirname, 'main.ts'),
  ]).catch((error: { stdout: string }) => error)
  const missed = stdout.split('\n').filter((line) => /^(?:survived|broken|WITHOUT A BUG) /.test(line))
  expect(missed).toEqual([])
  expect(stdout).toMatch(/^(\d+) of \1 bugs are found/m)
}, 3_600_000)
