import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openLimits, startTestApp, type TestMerchant } from '../../kit/app.ts'
import { type ListRequest, checkPages, checkRest, exportedIds, reading } from '../../kit/list-walks.ts'
import {
  inOrder,
  insertRows,
  isFound,
  type ListedRow,
  listKinds,
  type ListName,
  type NewRow,
  type Order,
} from '../../kit/listed-rows.ts'
import { randomFrom } from '../../kit/random.ts'
import { seed } from '../../kit/seeds.ts'
import { strength } from '../../kit/strength.ts'

// A search of each list gives exactly the rows that a model in JavaScript finds: page by page in each
// direction, in both doors, in the totals and in the exports.

// The rows of the lists have no money behind them, so the ledger is not proved here.
const app = await startTestApp(openLimits)
afterAll(() => app.close())
const { owner } = app.database
const random = randomFrom(seed)
const chance = (n: number) => Math.floor(random() * n)
function pick<T>(all: readonly T[]): T {
  const one = all[chance(all.length)]
  if (one === undefined) throw new Error('A choice needs something to choose from.')
  return one
}

const lists = Object.keys(listKinds) as ListName[]
const pieces = [
  'Café Bè',
  'Cafe\u0301 Be\u0300',
  'CAFÉ DE SÉGOU',
  'Ɛlɛmɛnti Ɔrɔ',
  'ɛLƐMƐnti ɔRƆ',
  'Ŋana Ɲɔgɔn',
  'ŋANA ɲƆGƆN',
  'Œuvre ẹ̀kọ́',
  'œUVRE E\u0323\u0300KO\u0323\u0301',
  '50% remise',
  '50 remises',
  String.raw`a_b\c%d`,
  String.raw`aXb\cYd`,
  `l'été "Awa"`,
  'Awa  Traoré',
  'AWA TRAORE',
  '70 00 00 01',
  '+223 7000',
  '7000001',
  '🎉 fête 🎊',
]

/** A hundred rows: texts and amounts occur many times. */
const newRows: NewRow[] = Array.from({ length: 100 }, (_none, nth) => ({
  title: `${pick(pieces)} ${pick(pieces)} ${nth}`,
  phone: `+223700000${String(chance(12)).padStart(2, '0')}`,
  code: pick([null, `OMxA${chance(20)}`, `omXb${chance(20)}`]),
  beneficiary: pick([null, pick(pieces), pick(pieces)]),
  amount: 1_000 + chance(6) * 500,
  state: chance(3),
  day: Math.floor(nth / 7),
}))

let shop: TestMerchant
/** Another merchant, whose rows have the same texts. */
let other: TestMerchant
let batch: number | undefined
const rowsOf = new Map<ListName, ListedRow[]>()

beforeAll(async () => {
  ;[shop, other] = [await app.merchant(), await app.merchant()]
  for (const list of lists) {
    await insertRows(owner, list, other.merchantId, newRows)
    rowsOf.set(list, await insertRows(owner, list, shop.merchantId, newRows))
  }
  const { rows } = await owner.query('SELECT id FROM batch WHERE merchant_id = $1', [shop.merchantId])
  batch = rows[0].id
})

const read = (list: ListName, asked: ListRequest) => reading(app, shop, list, asked, batch)

/** A filter beside the search, and the rows that it keeps. */
interface Beside {
  filter: Record<string, unknown>
  keeps: (row: ListedRow) => boolean
}

function besides(list: ListName): Beside[] {
  const status = pick(listKinds[list].statuses)
  const isLink = list === 'paymentLinks'
  const byStatus: Beside = {
    filter: isLink ? { activeOnly: true } : { status: [status.toUpperCase()] },
    keeps: (row) => row.status === (isLink ? 'active' : status),
  }
  const every: Beside = { filter: isLink ? { activeOnly: false } : {}, keeps: () => true }
  const byAmount: Beside = {
    filter: { ...every.filter, amountMin: 1_500, amountMax: 2_500 },
    keeps: ({ amount }) => amount >= 1_500 && amount <= 2_500,
  }
  const [from, to] = [new Date(Date.UTC(2026, 0, 4, 12)), new Date(Date.UTC(2026, 0, 11, 11))]
  const byDate: Beside = {
    filter: { ...every.filter, createdFrom: from.toISOString(), createdTo: to.toISOString() },
    keeps: ({ createdAt }) => createdAt >= from && createdAt <= to,
  }
  const all = list === 'recipients' ? [byAmount, byStatus] : [byAmount, byDate, byStatus]
  const together: Beside = {
    filter: Object.assign({}, ...all.map(({ filter }) => filter)),
    keeps: (row) => all.every(({ keeps }) => keeps(row)),
  }
  return [every, every, ...all, together]
}

const cut = (text: string, ...at: [number, number?]) =>
  Array.from(text)
    .slice(...at)
    .join('')

/** Takes a piece out of a text of a row, in another form. */
function searchIn(rows: readonly ListedRow[]): string {
  for (;;) {
    const points = Array.from(pick(pick(rows).texts))
    const from = chance(points.length)
    const piece = points.slice(from, from + 3 + chance(7)).join('')
    const form = pick([
      (text: string) => text,
      (text: string) => text.toUpperCase(),
      (text: string) => text.toLowerCase(),
      (text: string) => text.normalize('NFD'),
      (text: string) => ` ${text.normalize('NFC')} `,
    ])
    const search = form(piece)
    if ((search.match(/[\p{L}\p{N}]/gu) ?? []).length >= 3) return search
  }
}

const fixed = [
  'CAFE',
  'cafe\u0301 b',
  'ɔrɔ',
  'ƆRƆ Ŋ',
  'Ɲɔg',
  '50% r',
  '50_re',
  String.raw`a_b\c`,
  String.raw`B\C%D`,
  `l'ete "aw`,
  'awa  t',
  'a tra',
  'omxA1',
  '70 00 00 0',
  '+223 70 00 00 1',
  '700 0001',
  '🎉 fet',
  'Ẹko',
  'nothing like this',
].map((text) => ({ text }))

describe.each(lists)('the list %s', (list) => {
  const rows = () => rowsOf.get(list) ?? []
  const sizes = [1, 4, 7, 20, 100]

  const check = async (text: string, { filter, keeps }: Beside, size: number, order: Order) => {
    const kept = rows().filter((row) => keeps(row) && isFound(row, text))
    const asked = {
      filter: { ...filter, search: text },
      ...(['transactions', 'payouts'].includes(list) && { orderBy: order }),
    }
    const found = inOrder(kept, asked.orderBy ?? 'CREATED_AT_DESC')
    // A page of one row is read only where the walk stays short.
    const atLeast = Math.max(size, Math.ceil(found.length / 3))
    await checkPages(read(list, asked), found, atLeast, [random(), random()])
    if (list === 'recipients') return
    const ids = found.map(({ id }) => id)
    await checkRest(app, shop, list, asked, ids, atLeast)
    if (list === 'paymentLinks') return
    const exported = await exportedIds(app, shop, list, { filter: asked.filter })
    expect(exported).toEqual(inOrder(kept, 'CREATED_AT_ASC').map(({ id }) => id))
  }

  test.each(fixed)('a search for "$text" finds the rows of the model', async ({ text }) => {
    const [every] = besides(list)
    if (!every) throw new Error('A list has no filter.')
    const order = pick(['CREATED_AT_DESC', 'CREATED_AT_ASC'] as const)
    await expect(check(text, every, pick(sizes), order)).resolves.toBeUndefined()
  })

  test('searches for pieces of texts find the rows of the model, with any filter beside', async () => {
    for (let nth = 0; nth < strength(2, 40); nth += 1)
      for (const beside of besides(list)) {
        const order = pick(['CREATED_AT_DESC', 'CREATED_AT_ASC'] as const)
        await expect(check(searchIn(rows()), beside, pick(sizes), order)).resolves.toBeUndefined()
      }
  })

  test('the model finds rows for most of the fixed searches, so that the comparison says something', () => {
    const found = fixed.filter(({ text }) => rows().some((row) => isFound(row, text)))
    expect(found.length).toBeGreaterThan(list === 'paymentLinks' ? 12 : 15)
    expect(rows()).toHaveLength(newRows.length)
  })

  test('a text that ends in one field and goes on in the next is not found', async () => {
    for (const { texts } of rows().slice(-5)) {
      for (const [nth, text] of texts.slice(1).entries()) {
        const [before, after] = [cut(texts[nth] ?? '', -5).trimStart(), cut(text, 0, 5)]
        if (before.length < 2 || after.length < 2) continue
        for (const search of [`${before}${after}`, `${before} ${after}`]) {
          const { ids, total } = await read(list, { filter: { search } })({ first: 100 })
          expect({ search, ids, total }).toEqual({ search, ids: [], total: 0 })
        }
      }
    }
  })
})

describe('a search by a number', () => {
  test.each([
    ['+223 70 00 00 05', true],
    ['223 70 00 00 05', true],
    ['70\u00a000\u00a000\u00a005', true],
    ['70-00-00-05', false],
  ])('%s, as a person writes it', async (search, isNumber) => {
    const expected = inOrder((rowsOf.get('transactions') ?? []).filter((row) => isFound(row, search)))
    expect(expected.length > 0).toBe(isNumber)
    const page = await read('transactions', { filter: { search } })({ first: 100 })
    expect(page.ids).toEqual(expected.map(({ id }) => id))
  })
})
