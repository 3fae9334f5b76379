import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

// The table of planted bugs (`npm run mutants`): the tests stay as sharp as they were.

test('each planted bug is found by its test', async () => {
  const { stdout } = await promisify(execFile)(process.execPath, [
    join(import.meta.dirname, 'main.ts'),
  ]).catch((error: { stdout: string }) => error)
  const missed = stdout.split('\n').filter((line) => /^(?:survived|broken|WITHOUT A BUG) /.test(line))
  expect(missed).toEqual([])
  expect(stdout).toMatch(/^(\d+) of \1 bugs are found/m)
}, 3_600_000)
