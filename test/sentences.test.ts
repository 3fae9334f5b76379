import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { root } from './kit/sources.ts'

/** A comment opens so where it begins with a clause that has no noun to say what it is about. */
const opening = /^(?:What|Who|Whom|Whose|Of|Those|Whoever|Whomever|Whatever|Whichever|Nobody|Somebody)\b/

/** Words that stand for a noun that the reader needs: the caller, the request, the row, the merchant. */
const nounless = /\b(?:nobody|somebody|whoever|whomever|whosever|whatever|whichever)\b/i

/** Finds the comments that a stranger must read twice. */
function riddlesOf(text: string): string[] {
  return commentsOf(text)
    .filter(({ words }) => opening.test(words) || nounless.test(words.replaceAll(/`[^`]*`/g, '')))
    .map(({ line, words }) => `${line}: ${words.slice(0, 80)}`)
}

/** The comments of a file, each as one text: a block, or the lines of `//` or `--` that follow each other. */
function commentsOf(text: string): { line: number; words: string }[] {
  const comments: { line: number; words: string }[] = []
  let isInBlock = false
  let isOpen = false
  for (const [index, raw] of text.split('\n').entries()) {
    const line = raw.trim()
    const begins = line.startsWith('/*')
    const isSingle = line.startsWith('//') || line.startsWith('--')
    if (!begins && !isSingle && !isInBlock) {
      isOpen = false
      continue
    }
    const words = line
      .replace(/^(?:\/\*+|\*+\/?|\/\/|--)\s?/, '')
      .replace(/\s*\*\/$/, '')
      .trim()
    const last = comments.at(-1)
    if (isOpen && !begins && last) last.words = `${last.words} ${words}`.trim()
    else comments.push({ line: index + 1, words })
    isOpen = true
    isInBlock = (begins || isInBlock) && !line.endsWith('*/')
    if (line.endsWith('*/')) isOpen = false
  }
  return comments
}

test('each comment names the noun that it is about', () => {
  const complaints = globSync('src/**/*.{ts,sql}', { cwd: root }).flatMap((path) =>
    riddlesOf(readFileSync(join(root, path), 'utf8')).map((riddle) => `${path}:${riddle}`),
  )
  expect(complaints).toEqual([])
})

test.each([
  '/** What a caller asked for. */',
  '/**\n * Of a batch: the sum.\n */',
  '// Whoever waits holds no other lock.',
  '-- Locks the row. A merchant that nobody\n-- knows is refused.',
  '/** The answer.\n * @throws DomainError whatever the operator said */',
])('a comment such as %j is found', (text) => {
  expect(riddlesOf(`const a = 1\n${text}\nconst b = 2\n`)).toHaveLength(1)
})

test('plain sentences pass', () => {
  const lawful = [
    '/** Refuses a caller whose key is revoked. */',
    '// Lock one request at a time: two callers that wait for each other would deadlock.',
    '-- The rows of the merchant, newest first.',
    "const text = 'Whoever'",
    '// The account `nobody` owns the folder.',
  ]
  for (const text of lawful) expect(riddlesOf(`${text}\n`)).toEqual([])
})
