import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify, stripVTControlCharacters } from 'node:util'
import { expect, test } from 'vitest'
import { table } from '../bench/table.ts'

const root = join(import.meta.dirname, '../..')

/** Only that the benches can measure is tested, not how fast they are. */
async function bench(...args: string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ['test/bench/main.ts', ...args, '--rounds', '1', '--seconds', '0.1', '--rows', '2000'],
    { cwd: root, timeout: 110_000 },
  )
  return stdout
}

test('a workload is reported beside its limit, for machines and for people', async () => {
  const { sections } = JSON.parse(await bench('collect', '--only', 'one client', '--json'))
  expect(sections).toHaveLength(1)
  expect(sections[0].entries).toHaveLength(4)
  for (const { value, ratio } of sections[0].entries) {
    expect(value.median).toBeGreaterThan(0)
    expect(ratio.median).toBeGreaterThan(0)
  }
  expect(stripVTControlCharacters(table(sections[0]))).toMatch(/x limit \(range\)[^]*with the operator/)
})

test('whole lives are measured with their costs on full tables, whose books are proven', async () => {
  const { parts } = JSON.parse(await bench('life', '--only', 'one client rows', '--json'))
  expect(parts).toHaveLength(1)
  const [limit, ours] = parts[0].contenders
  expect(limit.turns[0].figures['lives/s']).toBeGreaterThan(0)
  const { figures } = ours.turns[0]
  const costs = ['lives/s', 'p99 ms', 'service ms', 'simulator ms', 'postgres ms', 'WAL kB', 'commits', 'MB']
  for (const cost of costs) expect(figures[cost]).toBeGreaterThan(0)
  // A collection is at least a transaction, a request, a ledger entry and two events.
  expect(figures.versions).toBeGreaterThan(5)
})

test('a call without a workload lists the workloads', async () => {
  await expect(bench()).rejects.toMatchObject({
    code: 2,
    stdout: expect.stringContaining('collect | deposit | settle'),
  })
})

test.concurrent.each([
  ['bench/main.ts', ['colect'], /^colect: no such workload; there are: life, collect, deposit/],
  ['bench/main.ts', ['collect', '--rounds', '0'], /^--rounds 0: a whole number above 0 is needed$/m],
  ['bench/overload.ts', ['--times', 'x'], /^--times x: a number above 0 is needed$/m],
  ['crash/main.ts', ['--seeds', 'x'], /^--seeds x: a whole number above 0 is needed$/m],
])('the wrong option %s %s is named in a sentence, with exit code 2', async (program, args, words) => {
  const run = promisify(execFile)(process.execPath, [join(root, 'test', program), ...args], {
    timeout: 15_000,
  })
  const { code, stdout, stderr } = await run.then(
    () => ({ code: 0, stdout: '', stderr: '' }),
    (error: { code: number; stdout: string; stderr: string }) => error,
  )
  expect({ code, stdout, stderr }).toEqual({ code: 2, stdout: '', stderr: expect.stringMatching(words) })
  expect(stderr.trim().split('\n')).toHaveLength(1)
})
