import { globSync, readdirSync } from 'node:fs'
import { basename, dirname, relative } from 'node:path'
import { describe, expect, test } from 'vitest'
import { boundedTimes } from './kit/bounded-times.ts'
import { deadCitations } from './kit/documents.ts'
import { importsOf, readSources, root, type Source, specifiersOf, withoutComments } from './kit/sources.ts'

// The rules of style, over every source file. `rules` is the list; below it each one is shown to be able
// to fail.

/** Each SQL function has a file of its name; where one is called in a text of TypeScript, with `$1`. */
const sqlCalls = new RegExp(
  `\\b(?:${globSync('src/**/*.sql', { cwd: root })
    .map((path) => basename(path, '.sql'))
    .join('|')})\\([^()]*\\$\\d`,
  'g',
)

/** The files that write rows without an SQL function: they run before the functions exist. */
const inlineWriters: ReadonlySet<string> = new Set(
  ['before-first-release', 'figures-fill', 'functions', 'migrate'].map((name) => `src/database/${name}.ts`),
)

/** From the lowest layer up; modules of one layer do not import each other. */
const layers: readonly (readonly string[])[] = [
  ['shared'],
  ['config'],
  ['telemetry'],
  ['database'],
  ['limits', 'ledger', 'operators', 'jobs', 'mail'],
  ['identity'],
  ['audit', 'idempotency'],
  ['events'],
  ['requests'],
  ['context.ts'],
  ['enter.ts'],
  ['graphql'],
  ['resources'],
  ['http'],
  ['app.ts'],
  ['terminal'],
  ['main.ts', 'cli.ts'],
]

/** Programs of their own, which share nothing with the server but what goes over the wire. */
const isolated = ['src/simulator/', 'src/dashboard/']

/** The resources that call a verb of another resource. */
const resourceCalls: ReadonlySet<string> = new Set([
  'audit-log → team',
  'batches → disbursements',
  'payment-links → transactions',
  'payouts → disbursements',
  'sandbox → merchants',
  'stats → transactions',
  'transactions → disbursements',
])

/** The files beside config.ts that read the environment, each with its reason. */
const environmentReaders: ReadonlySet<string> = new Set([
  'src/config/config.ts',
  // Hands it on to `pg_dump` and `pg_restore`, which are found by it.
  'src/database/backup-external.ts',
  // Hands it on to `prisma generate`.
  'src/database/ensure-generated.ts',
  // A program of its own.
  'src/simulator/main.ts',
])

const topLevel: ReadonlySet<string> = new Set(
  // `npm run soak` writes its findings into soak.jsonl.
  `package.json package-lock.json tsconfig.json schema.graphql README.md LICENSE src prisma test node_modules
  soak.jsonl`.split(/\s+/),
)

const linesMax = 400
const functionLinesMax = 60
const columnsMax = 110

type Rule = (source: Source) => string[]

const rules: Record<string, Rule> = {
  'a module imports only from modules below it': ({ path, text }) =>
    importsOf(path, text).flatMap((target) => {
      const [from, to] = [moduleOf(path), moduleOf(target)]
      if (!from || !to || from === to || isIsolated(path) || isIsolated(target)) return []
      const [high, low] = [layerOf(from), layerOf(to)]
      if (high < 0 || low < 0) return [`${high < 0 ? from : to} is in no layer`]
      return low < high ? [] : [`imports ${target}, which is not below it`]
    }),

  'a program of its own shares no code with the server': ({ path, text }) =>
    isolated.flatMap((home) =>
      importsOf(path, text)
        .filter((target) => target.startsWith('src/') && path.startsWith('src/'))
        .filter((target) => path.startsWith(home) !== target.startsWith(home))
        .map((target) => `imports ${target}`),
    ),

  'a verb knows no GraphQL and no schema, and another resource only where it is listed': ({ path, text }) =>
    importsOf(path, text).flatMap((target) => {
      const [from, to] = [resourceOf(path), resourceOf(target)]
      if (from && moduleOf(target) === 'graphql' && !/(schema|-type)\.ts$/.test(path))
        return [`imports ${target}: ids and lists are read in the schema`]
      if (!from || !to || from === to) return []
      if (basename(target) === 'schema.ts') return [`imports ${target}: types are named by string`]
      return resourceCalls.has(`${from} → ${to}`) ? [] : [`imports ${target}, which is not listed`]
    }),

  'only the terminal and tests build the app': ({ path, text }) =>
    /^test\/|^src\/(?:terminal\/|main\.ts$|cli\.ts$)/.test(path)
      ? []
      : importsOf(path, text).filter((target) => target === 'src/app.ts'),

  'only config.ts reads the environment': ({ path, text }) =>
    path.startsWith('src/') && !environmentReaders.has(path) ? found(text, /process\s*\.\s*env\b/g) : [],

  'relative imports name the file with its .ts': ({ text }) =>
    specifiersOf(text).filter((specifier) => specifier.startsWith('.') && !/\.tsx?$/.test(specifier)),

  'no default exports': ({ path, text }) =>
    path.startsWith('.config/') ? [] : found(text, /^export default\b|^export \{[^}]*\bas default\b/gm),

  'no barrels': ({ text }) => {
    const rest = withoutComments(text).replaceAll(/^export\s[^;'"]*?from\s*['"][^'"]+['"]\s*;?$/gm, '')
    return text.includes('export') && rest.trim() === '' ? ['only hands on what other files export'] : []
  },

  'no createPubSub: a stalled reader would end the process': ({ path, text }) =>
    path.startsWith('src/') ? found(text, /\bcreatePubSub\b/g) : [],

  'names are in kebab-case and say what the thing is': ({ path }) => {
    const parts = path.split('/').map((part) => part.replace(/(\.(test|soak|check))?\.tsx?$/, ''))
    return parts.filter(
      (part) =>
        !/^\.?[a-z0-9]+(-[a-z0-9]+)*$/.test(part) ||
        part.split('-').some((word) => /^(utils?|helpers?|common|managers?|services?)$/.test(word)),
    )
  },

  [`no file has more than ${linesMax} lines`]: ({ text }) => {
    const lines = text.trimEnd().split('\n').length
    return lines > linesMax ? [`${lines} lines`] : []
  },

  [`no line has more than ${columnsMax} columns`]: ({ text }) =>
    text.split('\n').flatMap((line, index) => (line.length > columnsMax ? [`line ${index + 1}`] : [])),

  [`no function has more than ${functionLinesMax} lines of its own`]: ({ path, text }) =>
    path.startsWith('src/')
      ? functionsOf(text)
          .filter(({ lines }) => lines > functionLinesMax)
          .map(({ begin, lines }) => `line ${begin + 1}: ${lines} lines`)
      : [],

  'nothing is left for later': ({ text }) => found(text, /\b(?:TO[D]O|FIX[M]E)\b/g),

  'answers to requests see all merchants only through asPlatform(ctx, reason)': ({ path, text }) =>
    /^src\/(?:graphql|http|resources)\//.test(path) ? found(withoutComments(text), poolOfAll) : [],

  'no test bounds a time of this machine, nor its memory': ({ path, text }) =>
    path.endsWith('.test.ts') ? boundedTimes(text) : [],

  'rows are written by SQL functions': ({ path, text }) =>
    path.startsWith('src/') && !inlineWriters.has(path)
      ? found(
          withoutComments(text),
          /\b(?:insert\s+into|delete\s+from|update\s+\w+(?:\s+\w+){0,2}\s+set)\b/gi,
        )
      : [],

  'Prisma only reads': ({ path, text }) =>
    path.startsWith('src/')
      ? found(text, /\bprisma\.\w+\.(?:create|update|delete|upsert)\w*\(|\$(?:executeRaw|queryRaw)\w*/g)
      : [],

  'our SQL functions are called through sqlFunction': ({ path, text }) =>
    path.startsWith('src/') ? found(withoutComments(text), sqlCalls) : [],

  'requests are let in by the steps of enter.ts': ({ path, text }) =>
    /^src\/(?:graphql|http)\//.test(path) ? found(withoutComments(text), ownSteps) : [],

  'what a comment cites is a page and a heading of src/docs': ({ text }) => deadCitations(text),

  'a test borrows its clients of the database (test/kit/client.ts): one that fails keeps none': ({
    path,
    text,
  }) => (/^test\/.*\.(?:test|soak)\.ts$/.test(path) ? found(withoutComments(text), /\.connect\(\)/g) : []),

  'a test waits with the patience of eventually': ({ path, text }) =>
    path.startsWith('test/') ? found(text, /\bexpect\s*\.poll\(|\bvi\.wait(?:For|Until)\(/g) : [],

  'a test gets its ports from freePort, or from the system': ({ path, text }) =>
    path.startsWith('test/') ? found(text, ownPorts) : [],

  'a test draws by randomFrom(seed) (test/kit/seeds.ts)': ({ path, text }) =>
    /^test\/(?!bench\/|style\.check|kit\/(?:database|plain-account)\.ts)/.test(path)
      ? found(withoutComments(text), /\bMath\s*\.random\b|\brandomInt\(/g)
      : [],
}

/** Ports that are written down, or drawn at random. */
const ownPorts = new RegExp(
  [
    String.raw`\blisten\(\s*[1-6]\d_?\d{3}\b`,
    String.raw`\b\w*(?:[pP]ort|PORT)['"]?(?: =|:) ['"]?[1-6]\d_?\d{3}\b`,
    String.raw`\b\w*[pP]ort = .*(?:Math\.random|randomInt|below)\(`,
  ].join('|'),
  'g',
)

/** Calls that only the steps make: signing in, counting a request, taking a slot. */
const ownSteps = /\bawait authenticate\(|\.(?:takeTurn|takePage|setTurnHeaders)\(|\badmission\.check\(/g

/** The pool that sees every merchant's rows, however it is taken. Reads for a merchant use `merchantPool`. */
const poolOfAll = new RegExp(
  [
    String.raw`\bdatabase\s*\.\s*pool\b`,
    String.raw`\bpool\b[^=\n]*=\s*(?:\w+\.)*database\b`,
    String.raw`\bdatabase:\s*\{[^}]*\bpool\b`,
    String.raw`\b(?:transact|dryRun)\(\s*(?:\w+\.)*database\b`,
  ].join('|'),
  'g',
)

function found(text: string, pattern: RegExp): string[] {
  return text.match(pattern) ?? []
}

/**
 * The functions of a file, each with its lines without those of the functions inside it. Goes by the layout
 * of the formatter: a function ends at the first brace that stands alone below its own beginning.
 */
function functionsOf(text: string): { begin: number; lines: number }[] {
  const lines = text.split('\n')
  const named =
    /^(\s*)(?:export |async |static |get )*(?:function\b|\*?#?(?!if|for|while|switch|catch)\w+\(.*\{$)/
  const arrow = /^(\s*).*=> \{$/
  const spans = lines.flatMap((line, begin) => {
    const indent = (named.exec(line) ?? arrow.exec(line))?.[1]
    if (indent === undefined) return []
    const closing = new RegExp(`^${indent}\\}[\\s,;)]*`)
    const end = lines.findIndex(
      (other, index) => index > begin && closing.test(other) && !other.endsWith('{'),
    )
    return end < 0 ? [] : [{ begin, end }]
  })
  return spans.map(({ begin, end }) => {
    const inner = spans.filter((span) => span.begin > begin && span.end <= end)
    const outermost = inner.filter(
      (span) => !inner.some((other) => other.begin < span.begin && other.end >= span.end),
    )
    const innerLines = outermost.reduce((sum, span) => sum + span.end - span.begin + 1, 0)
    return { begin, lines: end - begin + 1 - innerLines }
  })
}

function moduleOf(path: string): string | undefined {
  return /^src\/([^/]+)/.exec(path)?.[1]
}

function layerOf(module: string): number {
  return layers.findIndex((modules) => modules.includes(module))
}

function isIsolated(path: string): boolean {
  return isolated.some((home) => path.startsWith(home))
}

function resourceOf(path: string): string | undefined {
  return /^src\/resources\/([^/]+)\//.exec(path)?.[1]
}

describe('the style', () => {
  const sources = readSources()

  test.each(Object.entries(rules))('%s', (_name, rule) => {
    expect(sources.length).toBeGreaterThan(20)
    const complaints = sources.flatMap((source) =>
      rule(source).map((complaint) => `${source.path}: ${complaint}`),
    )
    expect(complaints).toEqual([])
  })

  test('the top level holds only what belongs there', () => {
    expect(readdirSync(root).filter((name) => !name.startsWith('.') && !topLevel.has(name))).toEqual([])
  })

  test('this file looks at itself', () => {
    const own = relative(root, import.meta.filename).replaceAll('\\', '/')
    expect(sources.map(({ path }) => path)).toContain(own)
    expect(dirname(own)).toBe('test')
  })
})

describe('each rule can fail', () => {
  const importing = (specifier: string) => `import { thing } from '${specifier}'\n`
  const ruleNames = Object.keys(rules)

  test.each<[rule: number, path: string, text: string]>([
    [0, 'src/ledger/post.ts', importing('../events/emit.ts')],
    [0, 'src/ledger/post.ts', importing('../operators/operator.ts')],
    [0, 'src/shared/money.ts', "import type {\n  Config,\n} from '../config.ts'\n"],
    [0, 'src/database/shared-statements.ts', "const late = await import('../context.ts')\n"],
    [0, 'src/database/shared-statements.ts', "export * from '../identity/scopes.ts'\n"],
    [0, 'src/attic/old.ts', importing('../shared/money.ts')],
    [1, 'src/simulator/http.ts', importing('../shared/money.ts')],
    [1, 'src/http/server.ts', importing('../simulator/http.ts')],
    [1, 'src/dashboard/app.tsx', importing('../shared/money.ts')],
    [1, 'src/http/pages/dashboard.ts', importing('../../dashboard/client.ts')],
    [2, 'src/resources/payouts/create.ts', importing('../batches/process.ts')],
    [2, 'src/resources/payment-links/schema.ts', importing('../transactions/schema.ts')],
    [2, 'src/resources/payouts/create.ts', importing('../../graphql/builder.ts')],
    [3, 'src/http/server.ts', importing('../app.ts')],
    [4, 'src/jobs/worker.ts', 'const poolMax = process.env.POOL_MAX\n'],
    [5, 'src/jobs/worker.ts', importing('./schedule')],
    [6, 'src/jobs/worker.ts', 'export default function work() {}\n'],
    [
      7,
      'src/jobs/jobs.ts',
      "/** Everything. */\nexport { work } from './worker.ts'\nexport type * from './schedule.ts'\n",
    ],
    [8, 'src/events/feed.ts', "import { createPubSub } from 'graphql-yoga'\n"],
    [9, 'src/ledger/postEntry.ts', ''],
    [9, 'src/ledger/ledger-utils.ts', ''],
    [9, 'src/services/ledger.ts', ''],
    [10, 'src/ledger/post.ts', 'const a = 1\n'.repeat(401)],
    [11, 'test/ledger/post.test.ts', `// ${'a'.repeat(108)}\n`],
    [12, 'src/ledger/post.ts', `export async function post() {\n${'  go()\n'.repeat(59)}}\n`],
    [12, 'src/ledger/post.ts', `const post = async (tx: Tx) => {\n${'  go()\n'.repeat(59)}}\n`],
    [12, 'src/ledger/post.ts', `function f(options: {\n  a: number\n}): void {\n${'  go()\n'.repeat(58)}}\n`],
    [12, 'src/ledger/post.ts', `class A {\n  async work(b: B) {\n${'    go()\n'.repeat(59)}  }\n}\n`],
    [13, 'src/ledger/post.ts', ['// TO', 'DO: settle'].join('')],
    [14, 'src/resources/payouts/list.ts', 'const { rows } = await ctx.database.pool.query(sql)\n'],
    [14, 'src/resources/payouts/list.ts', 'const { pool } = ctx.database\n'],
    [14, 'src/resources/payouts/create.ts', 'return transact(ctx.database, work)\n'],
    [14, 'src/resources/payouts/due.ts', 'export async function due({ database: { pool } }: Services) {}\n'],
    [15, 'test/a.test.ts', 'expect(performance.now() - began).toBeLessThan(60_000)\n'],
    [15, 'test/a.test.ts', 'expect(Math.abs(endsAt - Date.now())).toBeLessThanOrEqual(freshMs)\n'],
    [15, 'test/a.test.ts', 'took.push(performance.now() - at)\nexpect(Math.min(...took)).toBeLessThan(50)\n'],
    [15, 'test/a.test.ts', 'const a = performance.now() - b\nexpect(a / c).toBeLessThan(4)\n'],
    [15, 'test/a.test.ts', 'const { rss } = process.memoryUsage()\n'],
    [16, 'src/ledger/post.ts', "await tx.query('INSERT INTO ledger_entry (id) VALUES ($1)', [id])\n"],
    [16, 'src/ledger/post.ts', 'const text = `WITH made AS (\n  UPDATE payout AS p SET status = $1)`\n'],
    [16, 'src/ledger/post.ts', "await tx.query('delete from ledger_entry')\n"],
    [17, 'src/ledger/post.ts', 'await ctx.database.prisma.payout.updateMany({ data })\n'],
    [17, 'src/ledger/post.ts', 'await prisma.$executeRaw`SELECT 1`\n'],
    [18, 'src/ledger/post.ts', "await tx.query('SELECT fund_merchant($1, $2, $3)', [id, origin, amount])\n"],
    [19, 'src/http/graphql.ts', 'const actor = await authenticate(ctx.access, request)\n'],
    [19, 'src/http/downloads.ts', "ctx.admission.check('dashboard')\n"],
    [19, 'src/graphql/operation.ts', "await ctx.requestLimits.takeTurn(ctx, 'read', 'graphql')\n"],
    [20, 'src/ledger/post.ts', ['/** Books (docs/design', '/none.md). */\n'].join('')],
    [20, 'src/ledger/post.ts', ' * @see docs/design/rules.md\n// As docs/design/rules.md#no-such says.\n'],
    [20, 'src/ledger/post.ts', ['/** Smallest amount (specif', 'ication: Limits). */\n'].join('')],
    [21, 'test/a.test.ts', ['const client = await db.owner.', 'connect()\n'].join('')],
    [21, 'test/a.soak.ts', ['const client = new pg.Client(url)\nawait client.', 'connect()\n'].join('')],
    [22, 'test/a.test.ts', ['await expect\n    .', 'poll(count).toBe(1)\n'].join('')],
    [23, 'test/a.test.ts', ['createServer().listen(', "31_874, '127.0.0.1')\n"].join('')],
    [23, 'test/a.test.ts', ['await start(used, { tcpPort', ': 31_873 })\n'].join('')],
    [24, 'test/a.test.ts', 'const amount = Math.floor(Math.random() * 1_000)\n'],
    [24, 'test/kit/a.ts', 'const row = rows[randomInt(rows.length)]\n'],
    [23, 'test/kit/a.ts', ['const port', ' = 15_000 + Math.floor(Math.random() * 17_000)\n'].join('')],
  ])('%i is broken by %s', (index, path, text) => {
    const rule = rules[ruleNames[index] ?? '']
    expect(rule?.({ path, text })).toHaveLength(1)
  })

  test('lawful sources pass', () => {
    const lawful: Source[] = [
      { path: 'src/ledger/post.ts', text: importing('../database/transact.ts') },
      { path: 'src/resources/payment-links/pay.ts', text: importing('../transactions/collect.ts') },
      { path: 'src/resources/schema.ts', text: importing('./payouts/schema.ts') },
      { path: 'test/a.test.ts', text: 'expect(performance.now() - began).toBeGreaterThan(1_000)\n' },
      { path: 'test/a.soak.ts', text: 'expect(performance.now() - began).toBeLessThan(1_000)\n' },
      { path: 'src/resources/payouts/due.ts', text: "const { pool } = asPlatform(services, 'a job')\n" },
      { path: 'src/http/idempotency.ts', text: 'return transact({ pool: database.merchantPool }, work)\n' },
      {
        path: 'src/simulator/main.ts',
        text: `${importing('./http.ts')}const port = process.env.PORT\n`,
      },
      { path: 'src/terminal/run.ts', text: importing('../app.ts') },
      { path: 'test/ledger/post.test.ts', text: importing('../../src/app.ts') },
      { path: 'test/kit/session.ts', text: ['await client.', 'connect()\n'].join('') },
      { path: 'test/a.test.ts', text: "server.listen(0, '127.0.0.1')\nconst port = await freePort()\n" },
      { path: '.config/prisma.ts', text: 'export default {}\n' },
      { path: 'src/ledger/post.ts', text: `export function post() {\n${'  go()\n'.repeat(58)}}\n` },
      {
        path: 'src/ledger/post.ts',
        text: `function f() {\n  return {\n    g: () => {\n${'      go()\n'.repeat(58)}    },\n  }\n}\n`,
      },
      { path: 'src/shared/money.ts', text: `const long = '${'a'.repeat(columnsMax - 15)}'\n` },
    ]
    for (const source of lawful) expect(Object.values(rules).flatMap((rule) => rule(source))).toEqual([])
  })
})
