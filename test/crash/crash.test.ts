import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { plants, plantTree } from './plants.ts'

// The harness is a program of its own (`npm run crash`). What it prints names the seed that plans the same
// kills.

const main = join(import.meta.dirname, 'main.ts')
const root = join(import.meta.dirname, '../..')

async function crash(...args: string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(process.execPath, [main, '--quiet', ...args])
  process.stdout.write(stdout)
  return stdout
}

test('no franc is lost or made in 40 kills of the service and of its database', async () => {
  const said = await crash('--seeds', '4', '--cycles', '10', '--parallel', '4')
  expect(said).toMatch(/^0 violations: 40 cycles over 4 seeds/m)
}, 480_000)

test.each(plants)('the planted bug "$name" fits the sources of today', (plant) => {
  expect(() => plantTree(root, plant).remove()).not.toThrow()
})

test('a planted bug is found', async () => {
  expect(await crash('--planted', 'event after commit')).toMatch(/^ok {2}event after commit: seen in cycle/m)
}, 120_000)
