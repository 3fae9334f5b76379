import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { seed } from '../kit/seeds.ts'

test('the kills find a planted bug', async () => {
  const args = ['--quiet', '--planted', 'event after commit', '--seed', `${seed}`]
  const { stdout } = await promisify(execFile)(process.execPath, [
    join(import.meta.dirname, 'main.ts'),
    ...args,
  ]).catch((error: { stdout: string }) => error)
  expect(stdout).toMatch(/^ok {2}event after commit: seen in cycle/m)
}, 900_000)
