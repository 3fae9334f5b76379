import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'

const root = join(import.meta.dirname, '../..')

/** A repository with the sources of this one and one commit. */
function openRepository() {
  const tree = mkdtempSync(join(tmpdir(), 'merchant-payments-repository-'))
  onTestFinished(() => rmSync(tree, { recursive: true, force: true }))
  for (const name of ['src', 'prisma', 'package.json', 'schema.graphql', 'test/release', 'test/kit'])
    cpSync(join(root, name), join(tree, name), { recursive: true })
  symlinkSync(join(root, 'node_modules'), join(tree, 'node_modules'))
  const git = (...args: readonly string[]) =>
    execFileSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@t', ...args], { cwd: tree, stdio: 'pipe' })
  git('init', '-q')
  git('add', 'src', 'prisma', 'package.json', 'schema.graphql')
  git('commit', '-q', '-m', 'all')
  const edit = (path: string, from: string, to: string) => {
    const text = readFileSync(join(tree, path), 'utf8')
    expect(text).toContain(from)
    writeFileSync(join(tree, path), text.replace(from, to))
  }
  const add = (path: string, text: string) => {
    mkdirSync(dirname(join(tree, path)))
    writeFileSync(join(tree, path), text)
  }
  const check = () => {
    const { status, stdout } = spawnSync(process.execPath, ['test/release/main.ts'], { cwd: tree })
    return { code: status, said: stdout.toString().trim() }
  }
  return { git, edit, add, check }
}

test('a tree is compared with the last release of its history', () => {
  const { git, edit, add, check } = openRepository()
  expect(check()).toEqual({ code: 0, said: 'No release yet: nothing to be compatible with.' })
  git('tag', 'v1.0.0')
  expect(check()).toEqual({ code: 0, said: '0 changes break what v1.0.0 promised' })

  edit('schema.graphql', '  receivable: Amount!', '  owed: Amount!')
  add('prisma/migrations/0002_less/migration.sql', 'REVOKE SELECT ON "merchant" FROM payments_service;')
  const { code, said } = check()
  expect(code).toBe(1)
  expect(said).toMatch(/^BROKEN {2}Field Balance.receivable was removed/m)
  expect(said).toMatch(/^BROKEN {2}merchant: permission denied/m)
  expect(said).toMatch(/^\d+ changes break what v1.0.0 promised$/m)
}, 120_000)
