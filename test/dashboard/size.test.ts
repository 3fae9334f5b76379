import { mkdtempSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { type FirstFile, firstFiles } from '../kit/dashboard-build.ts'

/** Choice: at 400 kbit/s these bytes take 1.2 seconds. */
const firstLoadMaxBytes = 60 * 1_024

/** The files of the first load, if they are too many bytes together. */
function excess(files: readonly FirstFile[]): string[] {
  const sum = files.reduce((bytes, file) => bytes + file.bytes, 0)
  if (sum <= firstLoadMaxBytes) return []
  return [...files.map(({ name, bytes }) => `${name}: ${bytes}`), `together: ${sum} of ${firstLoadMaxBytes}`]
}

test('the first load of the dashboard has at most 60 KiB, compressed', () => {
  const files = firstFiles()
  expect(files.map(({ name }) => name)).toContainEqual(expect.stringMatching(/^assets\/person-/))
  expect(excess(files)).toEqual([])
})

test('scripts that a script of the first load imports count, and others do not', () => {
  const folder = mkdtempSync(join(tmpdir(), 'dashboard-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  mkdirSync(join(folder, 'assets'))
  writeFileSync(join(folder, 'index.html'), '<script src="./assets/a.js"></script>')
  writeFileSync(join(folder, 'assets/a.js'), 'import{x}from"./b.js";import"./c.js";import(`./later.js`)')
  for (const name of ['b.js', 'c.js']) writeFileSync(join(folder, 'assets', name), '')
  for (const name of ['a.js', 'b.js', 'c.js'])
    writeFileSync(join(folder, `assets/${name}.br`), 'x'.repeat(30 * 1_024))
  const files = firstFiles(folder)
  expect(files.map(({ name }) => name)).toEqual(['index.html', 'assets/a.js', 'assets/b.js', 'assets/c.js'])
  expect(excess(files)).toContain('assets/b.js: 30720')
})
