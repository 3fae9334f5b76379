import { readdirSync, readFileSync } from 'node:fs'
import { join, posix } from 'node:path'

export const root = join(import.meta.dirname, '../..')

/** A source file of the repository. */
export interface Source {
  /** From the top of the repository, with slashes. */
  path: string
  text: string
}

/** Files that a program prints, which follow its rules. */
const printed = /^(?:prisma\/generated|src\/dashboard\/built)\/|^src\/dashboard\/operations\.ts$/

/** Every TypeScript file of the repository that people write. */
export function readSources(): Source[] {
  return ['src', 'test', 'prisma', '.config'].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .map((name) => posix.join(folder, name.replaceAll('\\', '/')))
      .filter((path) => /\.tsx?$/.test(path) && !printed.test(path))
      .map((path) => ({ path, text: readFileSync(join(root, path), 'utf8') })),
  )
}

/** The files of this repository that a file imports. */
export function importsOf(path: string, text: string): string[] {
  return specifiersOf(text)
    .filter((specifier) => specifier.startsWith('.'))
    .map((specifier) => posix.join(posix.dirname(path), specifier))
}

/**
 * The modules that the import and export statements of a file name, type imports and dynamic ones included.
 */
export function specifiersOf(text: string): string[] {
  const statement =
    /^(?:import|export)\b[^'"`]*?\bfrom\s*(['"])(.+?)\1|^import\s*(['"])(.+?)\3|\bimport\(\s*(['"])(.+?)\5/gm
  return Array.from(
    withoutComments(text).matchAll(statement),
    ([, , from, , bare, , dynamic]) => from ?? bare ?? dynamic ?? '',
  )
}

/** A text without its comments. */
export function withoutComments(text: string): string {
  return text.replaceAll(/\/\*[\s\S]*?\*\//g, '').replaceAll(/^\s*\/\/.*$/gm, '')
}
