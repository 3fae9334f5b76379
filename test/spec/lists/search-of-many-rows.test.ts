import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openLimits, startTestApp, type TestMerchant } from '../../kit/app.ts'
import { withClient } from '../../kit/client.ts'
import { checkPages, checkRest, exportedIds, reading } from '../../kit/list-walks.ts'
import { inOrder, isFound, type ListedRow, readListed } from '../../kit/listed-rows.ts'
import { randomFrom } from '../../kit/random.ts'
import { seed } from '../../kit/seeds.ts'
import { isSoak } from '../../kit/strength.ts'

// A search looks through the newest 5,000 rows one by one, and asks an index for all others. These lists of
// 12,000 rows have texts on one side of this border, on the other, on both, and right at it.

const app = await startTestApp(openLimits)
afterAll(() => app.close())
const { owner } = app.database
const random = randomFrom(seed)
const many = 12_000
const lists = ['transactions', 'payouts'] as const

/** The title of row n: the words of each row stand at known distances from both ends of the list. */
const title = `concat_ws(' ', 'ligne', n, CASE WHEN n % 131 = 0 AND n < 6500 THEN 'Vieillé' END,
  CASE WHEN n % 131 = 0 AND n > 7500 THEN 'Nouvellé' END, CASE WHEN n % 610 = 0 THEN 'Partout' END,
  CASE WHEN n BETWEEN 4997 AND 5004 OR n BETWEEN 6997 AND 7004 THEN 'bord' END,
  CASE n WHEN 1 THEN 'première' WHEN 300 THEN '70000400'
    WHEN 500 THEN '(+223 79 99)' END, CASE n WHEN 12000 THEN 'dernière' END)`
const rows = `generate_series(1, ${many}) AS n`
const inserts = [
  `INSERT INTO transaction (merchant_id, transaction_type, payment_method, customer_phone, amount, status,
     reference, request_data, created_at)
   SELECT $1, 'pay', 'OperatorA', '+22370' || lpad(n::text, 6, '0'), 1000 + n % 5 * 1000,
     (CASE n WHEN 400 THEN 'pending' ELSE (ARRAY['failed', 'expired', 'cancelled'])[1 + n % 3] END
     )::transaction_status, ${title}, '{}',
     timestamptz '2026-01-01Z' + n * interval '1 minute' FROM ${rows} ORDER BY n`,
  `INSERT INTO payout (merchant_id, payment_method, destination_phone, amount, status, reference,
     beneficiary_name, send_at, approval, maker, request_data, created_at)
   SELECT $1, 'OperatorA', '+22370' || lpad(n::text, 6, '0'), 1000 + n % 5 * 1000,
     (CASE n WHEN 400 THEN 'pending' ELSE (ARRAY['failed', 'cancelled'])[1 + n % 2] END
     )::payout_status, 'p-' || n, ${title}, now() + interval '1 year', 'not_required',
     'member:1', '{}', timestamptz '2026-01-01Z' + n * interval '1 minute' FROM ${rows} ORDER BY n`,
]

let shop: TestMerchant
let other: TestMerchant
const rowsOf = new Map<string, ListedRow[]>()
beforeAll(async () => {
  ;[shop, other] = [await app.merchant(), await app.merchant()]
  await withClient(owner, async (client) => {
    await client.query('SET session_replication_role = replica; SET statement_timeout = 0')
    for (const { merchantId } of [other, shop])
      for (const text of inserts) await client.query({ text, values: [merchantId] })
    await client.query('ANALYZE transaction; ANALYZE payout')
  })
  for (const list of lists) rowsOf.set(list, await readListed(owner, list, shop.merchantId))
}, 120_000)

interface Case {
  search: string
  filter?: Record<string, unknown>
  keeps?: (row: ListedRow) => boolean
  size: number
  /** How many rows the model must find, so that the case is what its name says. */
  rows: number
}

const amounts = {
  filter: { amountMin: 2_000, amountMax: 3_000 },
  keeps: ({ amount }: ListedRow) => amount >= 2_000 && amount <= 3_000,
}
const pending = { filter: { status: ['PENDING'] }, keeps: ({ status }: ListedRow) => status === 'pending' }
const failed = { filter: { status: ['FAILED'] }, keeps: ({ status }: ListedRow) => status === 'failed' }
const [from, to] = [new Date('2026-01-04T12:00:00Z'), new Date('2026-01-06T12:00:00Z')]
const period = {
  filter: { createdFrom: from.toISOString(), createdTo: to.toISOString() },
  keeps: ({ createdAt }: ListedRow) => createdAt >= from && createdAt <= to,
}

describe.each(lists)('%s', (list) => {
  describe.each(['CREATED_AT_DESC', 'CREATED_AT_ASC'] as const)('in the order %s', (orderBy) => {
    // Each list reads every second case in this order; a soak reads all.
    const isOfOrder = (nth: number) =>
      isSoak || (nth % 2 === 0) === ((list === 'payouts') === (orderBy === 'CREATED_AT_ASC'))
    const cases: Case[] = [
      { search: 'vieille', size: 20, rows: 49 },
      { search: 'NOUVELLE', size: 20, rows: 34 },
      { search: 'partout', size: 3, rows: 19 },
      { search: 'partout', size: 8, rows: 19 },
      { search: 'bord', size: 2, rows: 16 },
      { search: 'bord', size: 5, rows: 16 },
      { search: 'premiere', size: 1, rows: 1 },
      { search: 'derniere', size: 1, rows: 1 },
      { search: 'ligne 77', size: 40, rows: 111 },
      { search: 'nulle part', size: 5, rows: 0 },
      { search: '70 00 50 0', size: 4, rows: 10 },
      { search: '+223 79 99', size: 3, rows: 1 },
      { search: 'ligne', size: 5, rows: 1, ...pending },
      { search: 'vieille', size: 8, rows: 20, ...amounts },
      { search: 'partout', size: 3, rows: list === 'transactions' ? 6 : 19, ...failed },
      { search: 'partout', size: 2, rows: 4, ...period },
    ]
    test.each(cases.filter((_case, nth) => isOfOrder(nth)))(
      'a search for "$search" with $filter, $size rows a page',
      async (asked) => {
        const { search, filter = {}, keeps = () => true, size } = asked
        const found = (rowsOf.get(list) ?? []).filter((row) => keeps(row) && isFound(row, search))
        expect(found).toHaveLength(asked.rows)
        const whole = { filter: { ...filter, search }, orderBy }
        const ordered = inOrder(found, orderBy)
        await checkPages(reading(app, shop, list, whole), ordered, size, [random(), random()])
        const ids = ordered.map(({ id }) => id)
        await checkRest(app, shop, list, whole, ids, size)
        const oldestFirst = found.map(({ id }) => id)
        expect(await exportedIds(app, shop, list, { filter: whole.filter })).toEqual(oldestFirst)
      },
    )
  })

  test('an export of several pages has every row of the search once, oldest first', async () => {
    for (const [search, { filter, keeps }] of [
      ['ligne', failed],
      ['ligne 1', amounts],
      ['+22370', period],
    ] as const) {
      const found = (rowsOf.get(list) ?? []).filter((row) => keeps(row) && isFound(row, search))
      expect(found.length).toBeGreaterThan(1_000)
      const exported = await exportedIds(app, shop, list, { filter: { ...filter, search } })
      expect(exported).toEqual(found.map(({ id }) => id))
    }
  })

  test('a number with its country code is found in the phone alone', async () => {
    for (const [search, sizes] of [
      ['+223 70 00 04 00', 1],
      ['70 00 04 00', 2],
    ] as const) {
      const found = (rowsOf.get(list) ?? []).filter((row) => isFound(row, search))
      expect(found).toHaveLength(sizes)
      const whole = { filter: { search }, orderBy: 'CREATED_AT_ASC' } as const
      await checkPages(reading(app, shop, list, whole), found, 5, [random(), random()])
    }
  })

  test('the index of words gives a merchant the ids of its own rows alone', async () => {
    const table = list === 'transactions' ? 'transaction' : 'payout'
    const idsFor = (bound: TestMerchant) =>
      withClient(owner, async (client) => {
        await client.query(`SET app.merchant = '${bound.merchantId}'`)
        const { rows: found } = await client.query<{ id: number }>(
          `SELECT id::int FROM ids_by_words($1, $2, '%partout%', NULL) AS found (id) ORDER BY id`,
          [table, shop.merchantId],
        )
        return found.map(({ id }) => id)
      })
    const own = (rowsOf.get(list) ?? []).filter((row) => isFound(row, 'partout'))
    expect(await idsFor(shop)).toEqual(own.map(({ id }) => id))
    expect(await idsFor(other)).toEqual([])
  })
})
