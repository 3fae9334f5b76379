import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify, stripVTControlCharacters } from 'node:util'
import { expect, test } from 'vitest'
import { table } from '../bench/table.ts'

const root = join(import.meta.dirname, '../..')

/** How fast something is, is no matter of a test; that it can be measured is. */
async function bench(...args: string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ['test/bench/main.ts', ...args, '--rounds', '1', '--seconds', '0.1', '--rows', '2000'],
    { cwd: root, timeout: 60_000 },
  )
  return stdout
}

test('a workload is measured beside its limit, for machines and for people', async () => {
  const { sections } = JSON.parse(await bench('collect', '--only', 'one client', '--json'))
  expect(sections).toHaveLength(1)
  expect(sections[0].entries).toHaveLength(4)
  for (const { value, ratio } of sections[0].entries) {
    expect(value.median).toBeGreaterThan(0)
    expect(ratio.median).toBeGreaterThan(0)
  }
  expect(stripVTControlCharacters(table(sections[0]))).toMatch(/x limit \(range\)[^]*REST to the commit/)
}, 60_000)

test('without a workload it lists what there is', async () => {
  await expect(bench()).rejects.toMatchObject({
    code: 2,
    stdout: expect.stringContaining('collect | settle | list'),
  })
})
