import { execFileSync } from 'node:child_process'
import { existsSync, globSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { brotliCompressSync } from 'node:zlib'
import { root } from './sources.ts'

/** The folder from which the service serves the dashboard. */
export const builtFolder = join(root, 'src/dashboard/built')

/** Builds the dashboard if it was never built, or its sources are newer than its build. */
export function ensureBuilt(): void {
  const page = join(builtFolder, 'index.html')
  const files = [
    'src/dashboard/**',
    'src/http/pages/assets/house.css',
    '.config/vite.ts',
    'package-lock.json',
  ]
  const sources = globSync(files, { cwd: root, exclude: ['src/dashboard/built'] })
  const newest = Math.max(...sources.map((path) => statSync(join(root, path)).mtimeMs))
  if (existsSync(page) && statSync(page).mtimeMs > newest) return
  const vite = join(root, 'node_modules/vite/bin/vite.js')
  const { NODE_ENV: _test, VITEST: _run, ...env } = process.env
  execFileSync(process.execPath, [vite, 'build', '--config', '.config/vite.ts', '--logLevel', 'error'], {
    cwd: root,
    env,
  })
}

/** A file that the page loads before it shows anything, with the bytes that a browser receives. */
export interface FirstFile {
  name: string
  bytes: number
}

/**
 * The page, and the files that it and the scripts among them name without waiting for the visitor: those of a
 * signed-in person, which are more than those of a stranger.
 */
export function firstFiles(folder = builtFolder): FirstFile[] {
  const page = readFileSync(join(folder, 'index.html'), 'utf8')
  const named = Array.from(page.matchAll(/(?:src|href)="\.\/(assets\/[^"]+)"/g), ([, name = '']) => name)
  const all = new Set(named)
  for (const name of all) {
    if (!name.endsWith('.js')) continue
    const script = readFileSync(join(folder, name), 'utf8')
    const imports = /(?:\bfrom|\bimport)\s*"\.\/([^"]+)"|\bimport\(\s*[`"']\.\/(person-[^`"']+)/g
    for (const [, file, screens] of script.matchAll(imports)) all.add(`assets/${file ?? screens}`)
  }
  const bytesOf = (name: string) => statSync(join(folder, `${name}.br`)).size
  return [
    { name: 'index.html', bytes: brotliCompressSync(page).length },
    ...Array.from(all, (name) => ({ name, bytes: bytesOf(name) })),
  ]
}
