import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { applyEdit, copyTree, type CrashMutant, type Edit, mutants } from './mutants.ts'

const root = join(import.meta.dirname, '../..')

/** Edits of source texts that one tree can hold together, with the names of their bugs. */
function groupsOfEdits(): Map<Edit, CrashMutant>[] {
  const groups: Map<Edit, CrashMutant>[] = []
  const seen = new Set<string>()
  for (const mutant of mutants) {
    const edits = mutant.edits.filter(({ file, replace }) => file.endsWith('.ts') && !seen.has(replace))
    for (const edit of edits) seen.add(edit.replace)
    const fits = (group: Map<Edit, CrashMutant>) =>
      !edits.some(({ file }) => [...group.keys()].some((other) => other.file === file))
    const group = groups.find(fits) ?? groups[groups.push(new Map()) - 1]
    for (const edit of edits) group?.set(edit, mutant)
  }
  return groups
}

// A bug that breaks its program is no bug: the service fails at each call, and no money moves wrongly.
test('the planted bugs pass the type check', async () => {
  for (const group of groupsOfEdits()) {
    const { tree, remove } = copyTree(root, ['src', 'prisma', 'package.json', 'tsconfig.json'])
    try {
      for (const [edit, { name }] of group) applyEdit(tree, name, edit)
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
}, 300_000)
