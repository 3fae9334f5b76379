import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { eventually } from '../kit/eventually.ts'
import { seed } from '../kit/seeds.ts'
import { isSoak, strength } from '../kit/strength.ts'

// The harness is a program of its own (`npm run crash`). Its output names the seed, which plans the same
// kills again. In `npm test` a run that got stuck fails only where the books are wrong.

const main = join(import.meta.dirname, 'main.ts')

async function crash(...args: string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(process.execPath, [main, '--quiet', ...args]).catch(
    // The output names the violation and the seed.
    (error: { stdout: string; stderr: string }) => ({ stdout: `${error.stdout}${error.stderr}` }),
  )
  process.stdout.write(stdout)
  return stdout
}

// The one seed of `npm test` runs two processes of the service: see `processesOf`.
const seeds = strength(1, 4)
const cycles = strength(6, 10)
const seedArgs = ['--seed', `${seed}`]

test(`no franc is lost or made in ${seeds * cycles} kills of the service and of its database`, async () => {
  const counts = ['--seeds', `${seeds}`, '--cycles', `${cycles}`, '--parallel', '4']
  const said = await crash(...counts, ...seedArgs, ...(isSoak ? ['--strict'] : []))
  const violated = said.match(/^ +VIOLATED: .*|^seed \d+: [1-9]\d* violations/gm) ?? []
  // A report shows only the first line of a failure.
  if (violated.length > 0) throw new Error(violated.join('; '))
  const ran = /^ +INCONCLUSIVE: /m.test(said) ? '\\d+' : seeds * cycles
  expect(said).toMatch(new RegExp(`^0 violations: ${ran} cycles over ${seeds} seeds`, 'm'))
  // A run proves nothing if it was stuck from its start on, or if its books were not read.
  expect(said).not.toContain('its books were not read')
  expect(said).toMatch(/, [1-9]\d* acknowledged, \d+ s$/m)
}, 900_000)

test('SIGTERM ends a run and all that it started', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'merchant-payments-crash-'))
  // PostgreSQL runs under another account when the tests run as root.
  chmodSync(dir, 0o755)
  const run = spawn(process.execPath, [main, '--seeds', '1', '--cycles', '1000', ...seedArgs], {
    env: { ...process.env, TMPDIR: dir },
    stdio: ['ignore', 'pipe', 'inherit'],
    // The run gets a process group of its own, which includes the service; PostgreSQL's commands name the
    // folder.
    detached: true,
  })
  /** Lists the processes beside the program itself. */
  const others = async () => {
    const { stdout } = await promisify(execFile)('ps', ['-eo', 'pid=,pgid=,args='])
    return stdout
      .split('\n')
      .filter((line) => line.includes(dir) || line.trim().split(/ +/)[1] === String(run.pid))
      .filter((line) => line.trim().split(/ +/)[0] !== String(run.pid))
  }
  try {
    const exit = once(run, 'exit')
    let said = ''
    run.stdout.on('data', (chunk) => (said += String(chunk)))
    await once(run.stdout, 'data')
    // Both are killed and started again all the time.
    await eventually(async () => {
      const before = (await others()).join('\n')
      expect(before).toMatch(/bin\/postgres -D/)
      expect(before).toMatch(/src\/main\.ts/)
    })
    run.kill('SIGTERM')
    expect(await exit).toEqual([143, null])
    expect(said).toMatch(/^ended by SIGTERM$/m)
    expect(await others()).toEqual([])
    expect(readdirSync(dir)).toEqual([])
  } finally {
    if (run.exitCode === null) process.kill(-(run.pid ?? 0), 'SIGKILL')
    rmSync(dir, { recursive: true, force: true })
  }
})
