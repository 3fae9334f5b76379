import { existsSync, globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './sources.ts'

/** A Markdown page of the repository. */
export interface Document {
  /** From the top of the repository, with slashes. */
  path: string
  text: string
}

/** The README and every page of `src/docs`. */
export function readDocuments(): Document[] {
  const paths = [
    'README.md',
    ...globSync('src/docs/**/*.md', { cwd: root }).map((path) => path.replaceAll('\\', '/')),
  ]
  return paths.map(readDocument)
}

export function readDocument(path: string): Document {
  return { path, text: readFileSync(join(root, path), 'utf8') }
}

/** The blocks of a page that are fenced with a language, in their order. */
export function blocksOf({ text }: Document, language: string): string[] {
  return Array.from(text.matchAll(/^```(\w+)\n([\s\S]*?)^```/gm))
    .filter(([, name]) => name === language)
    .map(([, , block = '']) => block)
}

/** The anchors of the headings of a page, as GitHub makes them. */
export function anchorsOf({ text }: Document): Set<string> {
  const prose = text.replaceAll(/^```[\s\S]*?^```/gm, '')
  return new Set(
    Array.from(prose.matchAll(/^#{1,6} (.+)$/gm), ([, heading = '']) =>
      heading
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
        .trim()
        .replaceAll(/\s/g, '-'),
    ),
  )
}

/** Citations of documents that are not in this repository. */
const elsewhere = /\b(?:specification|decisions|design|edges): \w+|\bspecification \(|\bissues? \d+/gi

/**
 * Finds citations in comments that lead nowhere: a page of `src/docs`, or a heading of it, that does not
 * exist, or a document outside of the repository.
 */
export function deadCitations(source: string): string[] {
  const comments = (source.match(/\/\*[\s\S]*?\*\/|(?<=^|\s)\/\/ .*$/gm) ?? []).join('\n')
  const cited = comments.match(/\bdocs\/[\w/-]+\.md(?:#[\w-]+)?/g) ?? []
  return [...cited.filter((citation) => !exists(citation)), ...(comments.match(elsewhere) ?? [])]
}

function exists(citation: string): boolean {
  const [path = '', anchor] = citation.split('#')
  if (!existsSync(join(root, 'src', path))) return false
  return anchor === undefined || anchorsOf(readDocument(`src/${path}`)).has(anchor)
}
