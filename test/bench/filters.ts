import { bearer, compare, latency } from './compare.ts'
import type { BenchFixture } from './fixture.ts'
import { addUp } from './list.ts'
import { type FilledTable, filledTables, fillTable, middleOf, rareEvery } from './filters-rows.ts'
import type { Product } from './product.ts'
import type { Section } from './rounds.ts'

/** The rows of the merchant whose lists are the measure. */
const smallRows = 10_000
/** Links are made by people: a merchant has fewer of them. */
const linksMax = 100_000

/** A row of a list, as its filters name it. */
interface Row {
  id: number
  amount: number
  /** The title of a link. */
  reference: string
  /** Empty for a link. */
  phone: string
  /** A full day of the list has this date. */
  day: string
}

/** A question to a list, for the row in the middle of that list. */
interface Question {
  name: string
  filter?: (row: Row) => string
  /** Arguments beside the filter. */
  args?: (row: Row) => string
  /** Whether no row answers. */
  isEmpty?: boolean
}

/** A list of one merchant. */
interface List {
  rows: number
  token: string
  middle: Row
}

/** Each filter, order and search in a long list, against the same in a short one. */
export const filters = compare({ merchants: 2 }, async ({ fixture, product }, { rows }) => {
  const lists = new Map<FilledTable['name'], List[]>()
  for (const table of filledTables) {
    const sizes = [smallRows, table.name === 'payment_link' ? Math.min(rows, linksMax) : rows]
    const filled: List[] = []
    for (const [place, size] of sizes.entries()) {
      const { merchantId, token } = merchantAt(product, place)
      await fillTable(fixture.owner, table, merchantId, size)
      filled.push({ rows: size, token, middle: await readMiddle(fixture, table, merchantId, size) })
    }
    lists.set(table.name, filled)
  }
  await addUp(fixture)
  // The counts of transactions too: their filling leaves dead rows.
  await fixture.owner.query('VACUUM ANALYZE')

  const sections = (name: FilledTable['name'], field: string, questions: readonly Question[], what: string) =>
    questions.map((question) => section(product, lists.get(name) ?? [], { field, question, what }))
  return {
    sections: [
      ...sections('transaction', 'transactions', transactionQuestions, page),
      ...sections('payout', 'payouts', payoutQuestions, page),
      ...sections('payment_link', 'paymentLinks', searches, page),
      ...sections('transaction', 'transactions', transactionSearches, total),
      ...sections('payout', 'payouts', payoutSearches, total),
      ...sections('payment_link', 'paymentLinks', searches, total),
    ],
    notes: [
      'Every entry is the service itself, over GraphQL, one request at a time; x limit compares times.',
      'A total that takes too long is answered with OVERLOADED: its time is that until then.',
      `One row in ${rareEvery.toLocaleString('en')} is of a rare status, author and amount.`,
    ],
  }
})

const page = 'nodes { id }'
const total = 'totalCount'

interface Answered {
  field: string
  question: Question
  /** The fields of the list that are asked for. */
  what: string
}

/** The same question to the lists of both merchants. Totals count the rows that are found, so they grow. */
function section(product: Product, lists: readonly List[], { field, question, what }: Answered): Section {
  const { name, filter, args, isEmpty = false } = question
  const entry = ({ rows, token, middle }: List, isMeasure: boolean) => {
    const given = [...(filter ? [`filter: {${filter(middle)}}`] : []), ...(args ? [args(middle)] : [])]
    const list = given.length > 0 ? `${field}(${given.join(', ')})` : field
    const body = JSON.stringify({ query: `{ ${list} { ${what} } }` })
    const request = { method: 'POST', path: '/graphql', headers: bearer({ token }), body }
    const found = isEmpty ? '"nodes":[]' : '"id":'
    const asked = { status: 200, words: what === page ? found : '', request }
    const goal = isMeasure || what === total ? undefined : { ratioMax: 3 }
    return latency(`${rows.toLocaleString('en')} rows`, product, asked, goal)
  }
  const [small, large] = lists
  if (!small || !large) throw new Error('No lists.')
  return {
    title: `${field}${what === total ? ', total' : ''}: ${name}`,
    unit: 'ms (median)',
    entries: [entry(small, true), entry(large, false)],
  }
}

/** One search for each share of the rows that have the text. */
const searches: readonly Question[] = [
  search('a text that one row in four has', 'commande'),
  search('1 % of the rows', 'tabaski'),
  search('0.1 % of the rows', 'Ramadan'),
  search('accents, 4 %', 'echeance'),
  search('one row, in the middle', 'siecle'),
  { ...search('no row', 'introuvable'), isEmpty: true },
  search('three characters', 'a7f'),
]
const phoneSearches: readonly Question[] = [
  search('every row', '+223'),
  { name: 'search, a phone number with spaces', filter: ({ phone }) => `search: "${spaced(phone)}"` },
  search('three digits', '123'),
]
const transactionSearches: readonly Question[] = [...searches, ...phoneSearches]
const payoutSearches: readonly Question[] = [
  ...transactionSearches,
  search('a first name without its accent', 'aissata'),
  search('a whole name', 'aissata traore'),
]

const common: readonly Question[] = [
  { name: 'all' },
  { name: 'all, from the middle', args: ({ id }) => `after: "${id}"` },
  { name: 'payment method', filter: () => 'paymentMethod: [OperatorB]' },
  { name: 'reference', filter: ({ reference }) => `reference: "${reference}"` },
  { name: 'a day in the middle', filter: ({ day }) => `createdFrom: "${day}", createdTo: "${day}"` },
  { name: 'from long ago', filter: () => 'createdFrom: "2020-01-01"' },
  { name: 'up to the middle', filter: ({ day }) => `createdTo: "${day}"` },
  { name: 'amounts, 4 %', filter: () => 'amountMin: 4000, amountMax: 5900' },
  { name: 'amounts, half of the rows', filter: () => 'amountMin: 26000' },
  { name: 'amounts, rare', filter: () => 'amountMin: 4000000' },
  { name: 'amounts, none', filter: () => 'amountMin: 6000000', isEmpty: true },
  { name: 'the largest amounts', args: () => 'orderBy: AMOUNT_DESC' },
  {
    name: 'the largest amounts, from the middle',
    args: ({ amount, id }) => `orderBy: AMOUNT_DESC, after: "${amount}-${id}"`,
  },
  { name: 'the smallest amounts', args: () => 'orderBy: AMOUNT_ASC' },
  {
    name: 'the smallest amounts, from the middle',
    args: ({ amount, id }) => `orderBy: AMOUNT_ASC, after: "${amount}-${id}"`,
  },
  { name: 'the oldest', args: () => 'orderBy: CREATED_AT_ASC' },
  {
    name: 'the oldest, from the middle',
    args: ({ id }) => `orderBy: CREATED_AT_ASC, after: "${id}"`,
  },
]

const transactionQuestions: readonly Question[] = [
  ...common,
  { name: 'status, common', filter: () => 'status: [SUCCESS]' },
  { name: 'status, rare', filter: () => 'status: [EXPIRED]' },
  { name: 'status, none', filter: () => 'status: [REVERSED]', isEmpty: true },
  { name: 'type', filter: () => 'transactionType: [DEPOSIT]' },
  { name: 'customer', filter: ({ phone }) => `customerPhone: "${phone}"` },
  ...transactionSearches,
]

const payoutQuestions: readonly Question[] = [
  ...common,
  { name: 'status, common', filter: () => 'status: [COMPLETED]' },
  { name: 'status, rare', filter: () => 'status: [FAILED]' },
  { name: 'status, none', filter: () => 'status: [PROCESSING]', isEmpty: true },
  { name: 'author, common', filter: () => 'createdBy: "member:1"' },
  { name: 'author, rare', filter: () => 'createdBy: "member:2"' },
  ...payoutSearches,
]

function search(name: string, text: string): Question {
  return { name: `search, ${name}`, filter: () => `search: "${text}"` }
}

/** A phone number as people write it: +223 70 00 00 01. */
function spaced(phone: string): string {
  return `${phone.slice(0, 4)} ${phone.slice(4).replaceAll(/(..)(?=.)/g, '$1 ')}`
}

function merchantAt({ merchants }: Product, place: number) {
  const merchant = merchants[place]
  if (!merchant) throw new Error('No merchant.')
  return merchant
}

async function readMiddle(
  { owner }: BenchFixture,
  { name }: FilledTable,
  merchantId: number,
  size: number,
): Promise<Row> {
  const words = name === 'payment_link' ? ['title', "''"] : ['reference', phoneOf[name]]
  const { rows } = await owner.query<Row>(
    `SELECT id::int, amount::int, ${words[0]} AS reference, ${words[1]} AS phone,
       to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD') AS day
     FROM ${name} WHERE merchant_id = $1 ORDER BY id OFFSET $2 LIMIT 1`,
    [merchantId, middleOf(size) - 2],
  )
  if (!rows[0]) throw new Error('No rows.')
  return rows[0]
}

const phoneOf = { transaction: 'customer_phone', payout: 'destination_phone' } as const
