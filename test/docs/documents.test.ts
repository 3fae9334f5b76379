import { readFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import { buildSchema, parse, validate } from 'graphql'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { payoutScheduleMaxMs } from '../../src/resources/payouts/create.ts'
import { limits } from '../../src/shared/limits.ts'
import { scenarios } from '../../src/simulator/scenarios.ts'
import { commands } from '../../src/terminal/commands.ts'
import { printedFiles, settingRows } from '../../src/terminal/reference.ts'
import { adminCommands } from '../../src/terminal/usage.ts'
import { anchorsOf, blocksOf, type Document, readDocument, readDocuments } from '../kit/documents.ts'
import { readSources, root, withoutComments } from '../kit/sources.ts'

// The statements of the pages are compared with the code. `examples.test.ts` runs the examples.

const documents = readDocuments()
const schema = buildSchema(readFileSync(join(root, 'schema.graphql'), 'utf8'))

/** The links of a page that lead nowhere. */
function deadLinks(page: Document): string[] {
  const links = Array.from(page.text.matchAll(/\]\((?!https?:)([^)\s]+)\)/g), ([, link = '']) => link)
  return links.filter((link) => {
    const [file = '', anchor] = link.split('#')
    try {
      const target = file === '' ? page : readDocument(posix.join(posix.dirname(page.path), file))
      return anchor !== undefined && !anchorsOf(target).has(anchor)
    } catch {
      return true
    }
  })
}

/** The problems of the GraphQL blocks of a page. */
function invalidGraphql(page: Document): string[] {
  return blocksOf(page, 'graphql').flatMap((block) =>
    validate(schema, parse(block)).map(({ message }) => message),
  )
}

/** The settings that code reads by their names. */
function settingsReadIn(text: string): string[] {
  const code = withoutComments(text)
  const keys = Array.from(code.matchAll(/^\s{2}([A-Z][A-Z_]+): /gm), ([, name = '']) => name)
  const direct = code.matchAll(/process\.env(?:\.|\[')([A-Z][A-Z_]+)/g)
  return [...keys, ...Array.from(direct, ([, name = '']) => name)]
}

const hour = 3_600_000
const francs = (amount: number) => `${amount.toLocaleString('en')} F`
const count = (number: number) => number.toLocaleString('en')
const words = ['zero', 'one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight', 'nine', 'ten']
const days = `${words[limits.approvalLifetimeMs / (24 * hour)]} days`
const collection = `${francs(limits.collectAmountMinXof)} to ${francs(limits.amountMaxXof)}`
const payout = `${francs(limits.disburseAmountMinXof)} to ${francs(limits.payoutAmountMaxXof)}`

/** Bounds that pages name in their sentences, as the code has them. */
const boundsInSentences: readonly (readonly [page: string, words: string])[] = [
  ['design/rules.md', `A collection expires after ${limits.collectionLifetimeMs / hour} hours`],
  ['design/rules.md', `The answer comes within ${limits.depositWaitMs / 1_000} seconds`],
  ['design/rules.md', `at most ${payoutScheduleMaxMs / (24 * hour)} days ahead`],
  ['design/rules.md', `At most ${words[limits.batchInFlightMax]} recipients of one batch`],
  ['design/rules.md', `cancelled after ${days}`],
  ['design/rules.md', `at most ${words[limits.webhooksPerMerchantMax]} endpoints`],
  ['guide/payments.md', `One payment is ${collection}`],
  ['guide/links.md', `${collection}. Without it`],
  [
    'guide/paying-out.md',
    `A deposit is ${francs(limits.disburseAmountMinXof)} to ${francs(limits.amountMaxXof)}`,
  ],
  ['guide/paying-out.md', `A payout is ${payout}`],
  ['guide/paying-out.md', `at most ${payoutScheduleMaxMs / (24 * hour)} days ahead`],
  ['guide/paying-out.md', `service tries for ${limits.payoutUnsentForMs / hour} hours`],
  ['guide/approvals.md', `after ${days} is cancelled`],
  ['guide/bulk.md', `A recipient gets ${payout}`],
  ['guide/bulk.md', `at most ${count(limits.batchRecipientsMax)} recipients`],
  ['guide/bulk.md', `at most ${words[limits.batchInFlightMax]} of one batch`],
]

/** The sentences that a page lacks. Line breaks do not count. */
function missingIn(page: Document, sentences: readonly string[]): string[] {
  const text = page.text.replaceAll(/\s+/g, ' ')
  return sentences.filter((sentence) => !text.includes(sentence))
}

/** Variables that the system sets, not the owner of the service. */
const systemVariables: ReadonlySet<string> = new Set(['PATH', 'HOME'])

describe('the pages', () => {
  for (const page of documents) {
    test(`${page.path}: each link leads to a page and a heading that exist`, () => {
      expect(deadLinks(page)).toEqual([])
    })
  }

  test('each graphql block is valid', () => {
    expect(documents.flatMap((page) => invalidGraphql(page))).toEqual([])
    expect(documents.flatMap((page) => blocksOf(page, 'graphql')).length).toBeGreaterThan(15)
  })

  test('the README has at most 150 lines and leads to every other page', () => {
    const readme = readDocument('README.md')
    expect(readme.text.trimEnd().split('\n').length).toBeLessThanOrEqual(150)
    const pages = documents.filter(({ path }) => path !== 'README.md').map(({ path }) => path)
    const others = new Set(['src/docs/contributing.md'])
    expect(pages.filter((path) => !others.has(path) && !readme.text.includes(`(${path})`))).toEqual([])
  })

  test.each(Object.entries(printedFiles()))('the file %s is the output of npm run docs', (path, text) => {
    expect(readDocument(path).text).toBe(text)
  })

  test.each(boundsInSentences)('the page %s has the bound: %s', (name, sentence) => {
    expect(missingIn(readDocument(`src/docs/${name}`), [sentence])).toEqual([])
  })

  test('the configuration page lists every setting that the code reads', () => {
    const { text } = readDocument('src/docs/reference/configuration.md')
    const sources = readSources().filter(({ path }) => path.startsWith('src/'))
    const names = sources
      .filter(({ path, text: code }) => path.startsWith('src/config/') || code.includes('process.env'))
      .flatMap(({ text: code }) => settingsReadIn(code))
    expect(new Set(names).size).toBeGreaterThan(40)
    const isThere = (name: string) => text.includes(`\`${name}\``) || text.includes(`\`OPERATOR_X_${name}\``)
    expect(names.filter((name) => !systemVariables.has(name) && !isThere(name))).toEqual([])
  })

  test('every command of administration is documented, and no other one', () => {
    const cli = readFileSync(join(root, 'src/terminal/command-line.ts'), 'utf8')
    const own = Array.from(cli.matchAll(/name === '(\w+)'/g), ([, name = '']) => name)
    const [, alone = ''] = /const alone = \{ (.*) \}/.exec(cli) ?? []
    const names = [
      ...Object.keys(commands),
      ...own,
      ...alone.split(', ').map((entry) => entry.split(':')[0] ?? ''),
    ]
    const documented = adminCommands.map(({ call }) => call.replace(/ [-[].*$/, ''))
    expect(documented.toSorted()).toEqual(names.toSorted())
  })

  test('contributing.md names every command of package.json that people run', () => {
    const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { scripts: object }
    const all = documents.map(({ text }) => text).join('\n')
    const names = Object.keys(scripts).filter((name) => !['postinstall', 'generate'].includes(name))
    expect(names.filter((name) => !new RegExp(`npm (run (-s )?)?${name}\\b`).test(all))).toEqual([])
  })

  test('the test numbers are explained by the table that the simulator plays', () => {
    const { text } = readDocument('src/docs/guide/test-numbers.md')
    const known = scenarios.filter(({ since }) => since === 'now')
    const row = ({ code, en, ends }: (typeof known)[number]) => `| ${code} | ${en} | ${ends} |`
    expect(text).toContain(known.map(row).join('\n'))
  })
})

describe('each check finds its planted fault', () => {
  const page = (text: string): Document => ({ path: 'README.md', text })

  test('a link to a page or a heading that does not exist', () => {
    const text = '[a](src/docs/none.md) [b](#none) [c](LICENSE) [d](#here) [e](https://a.b)\n# Here\n'
    expect(deadLinks(page(text))).toEqual(['src/docs/none.md', '#none'])
  })

  test('a graphql block with a field that does not exist', () => {
    expect(invalidGraphql(page('```graphql\nquery { balance { wealth } }\n```\n'))).toHaveLength(1)
  })

  test('a bound in a sentence that is not that of the code', () => {
    expect(missingIn(page('It expires after\n23 hours.'), ['after 23 hours', 'after 24 hours'])).toEqual([
      'after 24 hours',
    ])
  })

  test('a setting without a description', () => {
    expect(() => settingRows(z.object({ NEW_SETTING: z.string().default('x') }))).toThrow(/NEW_SETTING/)
  })

  test('a setting that code reads without the schema of settings', () => {
    expect(settingsReadIn("const a = process.env['SECRET_DOOR']\nconst b = process.env.OTHER")).toEqual([
      'SECRET_DOOR',
      'OTHER',
    ])
  })
})
