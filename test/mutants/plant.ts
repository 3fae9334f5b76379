import { cpSync, globSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Edit, Mutant } from './mutant.ts'

/** Copies some parts of the repository, with a link to its packages, until `remove`. */
export function copyTree(root: string, parts: readonly string[]): { tree: string; remove: () => void } {
  const tree = mkdtempSync(join(tmpdir(), 'merchant-payments-planted-'))
  for (const part of parts) cpSync(join(root, part), join(tree, part), { recursive: true })
  symlinkSync(join(root, 'node_modules'), join(tree, 'node_modules'))
  return { tree, remove: () => rmSync(tree, { recursive: true, force: true }) }
}

/**
 * Plants a bug in a copy of the sources.
 * @returns a function that puts the files back
 * @throws Error where an edit no longer fits; nothing is changed then
 */
export function plant(tree: string, mutant: Mutant): () => void {
  const changes = changesOf(tree, mutant)
  for (const [path, { changed }] of changes) writeFileSync(path, changed)
  return () => {
    for (const [path, { text }] of changes) writeFileSync(path, text)
  }
}

/**
 * Reads the files that a bug changes, before and after all of its edits.
 * @throws Error where an edit no longer fits
 */
export function changesOf(tree: string, { name, edits }: Mutant) {
  const changes = new Map<string, { text: string; changed: string }>()
  for (const edit of edits) {
    const path = placeOf(tree, edit.file)
    const text = changes.get(path)?.text ?? readFileSync(path, 'utf8')
    changes.set(path, { text, changed: applyEdit(changes.get(path)?.changed ?? text, name, edit) })
  }
  return changes
}

/** Line breaks and indentation may differ from those of the edit, because the formatter changes them. */
function applyEdit(text: string, name: string, { file, find, replace }: Edit): string {
  const words = find
    .trim()
    .split(/\s+/)
    .map((word) => word.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&'))
  const found = [...text.matchAll(new RegExp(words.join('\\s+'), 'g'))]
  const [place] = found
  if (found.length !== 1 || !place)
    throw new Error(`${name}: stands ${found.length} times in ${file}, and must once: ${find}`)
  return text.slice(0, place.index) + replace + text.slice(place.index + place[0].length)
}

/** Finds the file of an edit: a path from the root, or the file of a SQL function. */
function placeOf(tree: string, file: string): string {
  if (!file.endsWith('()')) return join(tree, file)
  const paths = globSync(`src/**/${file.slice(0, -2)}.sql`, { cwd: tree })
  if (paths.length !== 1) throw new Error(`${paths.length} files define ${file}`)
  return join(tree, paths[0] ?? '')
}
