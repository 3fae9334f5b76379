import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { root, withoutComments } from './kit/sources.ts'

/** A comment opens so where it begins with a clause that has no noun to say what it is about. */
const opening = /^(?:What|Who|Whom|Whose|Of|Those|Whoever|Whomever|Whatever|Whichever|Nobody|Somebody)\b/

/** Words that stand for a noun that the reader needs: the caller, the request, the row, the merchant. */
const nounless = /\b(?:nobody|somebody|whoever|whomever|whosever|whatever|whichever)\b/i

/** A piece of prose, and the line where it begins. */
interface Prose {
  line: number
  words: string
}

/** Finds the texts that a stranger must read twice. */
function riddlesAmong(texts: readonly Prose[]): string[] {
  return texts
    .filter(({ words }) => opening.test(words) || nounless.test(words.replaceAll(/`[^`]*`/g, '')))
    .map(({ line, words }) => `${line}: ${words.slice(0, 80)}`)
}

function riddlesOf(text: string): string[] {
  return riddlesAmong(commentsOf(text))
}

/** The comments of a file, each as one text: a block, or the lines of `//` or `--` that follow each other. */
function commentsOf(text: string): Prose[] {
  const comments: Prose[] = []
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

/** The descriptions of a GraphQL schema. */
function descriptionsOf(text: string): Prose[] {
  return proseOf(text, /"""([^]*?)"""/g)
}

/**
 * The paragraphs, list items, headings and table cells of a Markdown page, without its code. A heading or a
 * cell without a full stop is no sentence, and may open with a question word.
 */
function paragraphsOf(text: string): Prose[] {
  const prose = text.replaceAll(/^ *(```+)[^]*?^ *\1 *$/gm, (code) => code.replaceAll(/[^\n]/g, ''))
  return proseOf(prose, /((?:^[^\n]*\S[^\n]*\n?)+)/gm).flatMap(({ line, words }) =>
    words
      .split(/\s*\|\s*|(?:^|\s)(?:[-*]|\d+\.|#+|>)\s+/)
      .map((part) => ({ line, words: /[.:]$/.test(part.trim()) ? part.trim() : `# ${part.trim()}` })),
  )
}

/**
 * The texts in the quotes of TypeScript or SQL: refusals, log lines, descriptions, e-mails, pages and
 * commands are among them. A text without a space is a name.
 */
function textsOf(text: string): Prose[] {
  const code = withoutComments(text).replaceAll(/(?:^|\s)--\s.*$/gm, '')
  const quoted = /'((?:[^'\\\n]|\\.)*)'|"((?:[^"\\\n]|\\.)*)"|`((?:[^`\\]|\\.)*)`/g
  return proseOf(code, quoted).filter(({ words }) => words.includes(' '))
}

/** The titles of tests and of groups of tests that open without a noun. */
function nounlessTitlesOf(text: string): string[] {
  const title =
    /(?:(?<!\.)\b(?:test|describe)(?:\.\w+)*|\))\(\s*(?:'((?:[^'\\\n]|\\.)*)'|`((?:[^`\\]|\\.)*)`)/g
  return proseOf(text, title)
    .filter(({ words }) => /^(?:what|who|whom|those)\b/i.test(words))
    .map(({ line, words }) => `${line}: ${words}`)
}

function proseOf(text: string, pattern: RegExp): Prose[] {
  return Array.from(text.matchAll(pattern), ({ index, ...groups }) => ({
    line: text.slice(0, index).split('\n').length,
    words: (groups[1] ?? groups[2] ?? groups[3] ?? '').replaceAll(/\s+/g, ' ').trim(),
  }))
}

function complaintsOf(
  globs: readonly string[],
  read: (text: string) => Prose[],
  exempt: readonly string[] = [],
): string[] {
  return globSync(globs, { cwd: root, exclude: ['src/dashboard/built/**'] })
    .filter((path) => !exempt.includes(path))
    .flatMap((path) =>
      riddlesAmong(read(readFileSync(join(root, path), 'utf8'))).map((riddle) => `${path}:${riddle}`),
    )
}

test('each comment names the noun that it is about', () => {
  expect(complaintsOf(['src/**/*.{ts,tsx,sql,js}', 'test/**/*.ts'], commentsOf)).toEqual([])
})

test('each comment of the read model names its noun', () => {
  const comments = (text: string) => commentsOf(text.replaceAll('///', '//'))
  expect(complaintsOf(['prisma/schema.prisma'], comments)).toEqual([])
  const planted = 'model A {\n  /// Whole francs.\n  a Int\n  /// Of a batch.\n  b Int\n}\n'
  expect(riddlesAmong(comments(planted))).toEqual(['4: Of a batch.'])
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

test('each description of the schema names its noun', () => {
  expect(complaintsOf(['schema.graphql'], descriptionsOf)).toEqual([])
  const planted = '"""The caller."""\ntype A {\n  """\n  Whoever asks.\n  """\n  a: Int\n}\n'
  expect(riddlesAmong(descriptionsOf(planted))).toEqual(['3: Whoever asks.'])
})

test('each page of the documents names its nouns', () => {
  expect(complaintsOf(['README.md', 'src/docs/**/*.md'], paragraphsOf)).toEqual([])
  const planted = [
    '# Keys\n\nA key that\nnobody holds.\n',
    '- The merchant.\n- Whoever asks.\n',
    '| Code | Meaning |\n|---|---|\n| `A` | Of a caller. |\n',
  ]
  for (const text of planted) expect(riddlesAmong(paragraphsOf(text))).toHaveLength(1)
  const lawful = '```sh\n# Whoever\n```\n\nThe account `nobody` owns it.\n'
  expect(riddlesAmong(paragraphsOf(lawful))).toEqual([])
})

/** Files that hold these words as data: passwords that people choose, forbidden words, and planted texts. */
const wordLists = [
  'src/identity/members/guessable-passwords.ts',
  'test/names.check.ts',
  'test/sentences.check.ts',
]

test('each text in quotes names its nouns', () => {
  expect(complaintsOf(['src/**/*.{ts,tsx,sql}', 'test/**/*.ts'], textsOf, wordLists)).toEqual([])
})

test('each planted bug names its nouns', () => {
  const namesOf = (text: string) => proseOf(text, /^(?:bug|found by): (.*(?:\n .*)*)|^# (.*)$/gm)
  expect(complaintsOf(['test/mutants/table/*.diff'], namesOf)).toEqual([])
  expect(riddlesAmong(namesOf('# Locks.\n\nbug: a lock that\n  nobody holds\n'))).toHaveLength(1)
})

test('each title of a test opens with its noun', () => {
  const riddles = globSync('test/**/*.{test,soak,check}.ts', { cwd: root })
    .filter((path) => !wordLists.includes(path))
    .flatMap((path) =>
      nounlessTitlesOf(readFileSync(join(root, path), 'utf8')).map((riddle) => `${path}:${riddle}`),
    )
  expect(riddles).toEqual([])
  const planted = [
    "test('what failed is asked about', () => {})",
    "describe('those who failed', () => {})",
    "test.each([\n  ['a', 1],\n] as const)(\n  'who waits for %s leaves', () => {})",
    'test(`what ${name} takes`, () => {})',
  ]
  for (const text of planted) expect(nounlessTitlesOf(text)).toHaveLength(1)
  const lawful = ["/a/.test('what is')", "test('a caller who waits leaves', () => {})"]
  for (const text of lawful) expect(nounlessTitlesOf(text)).toEqual([])
})

test.each([
  "throw new DomainError('FORBIDDEN', 'Nobody can approve it.')",
  "log.warn({ err }, 'a callback that nobody waits for')",
  'description: `What was asked for.`,',
  "RAISE EXCEPTION 'the row of somebody else';",
])('a text such as %j is found', (text) => {
  expect(riddlesAmong(textsOf(`a()\n${text}\n`))).toHaveLength(1)
})

test('names in quotes and comments are no texts', () => {
  expect(riddlesAmong(textsOf("const a = 'nobody'\n// 'nobody here'\n-- 'nobody here'\n"))).toEqual([])
})
