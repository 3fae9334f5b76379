import { beforeAll, expect, test } from 'vitest'
import { locks } from '../../src/database/locks.ts'
import { migrate } from '../../src/database/migrate.ts'
import { compactDisbursements } from '../../src/resources/stats/read.ts'
import { compactCounts } from '../../src/resources/transactions/list.ts'
import { borrow } from '../kit/client.ts'
import { useTestDatabase } from '../kit/database.ts'
import { wrongFigures } from '../kit/payment-figures.ts'
import { randomPayments } from '../kit/random-payments.ts'
import { randomFrom } from '../kit/random.ts'
import { seed } from '../kit/seeds.ts'

// The figures of the payments that existed before a release kept figures.

const db = await useTestDatabase()
const { pool } = db.database
const { openMerchant, addPayments } = randomPayments(db.owner, randomFrom(seed))

let merchantId: number
let neighbour: number

beforeAll(async () => {
  merchantId = await openMerchant()
  neighbour = await openMerchant()
})

/** Plays a node of the previous release, whose triggers and compaction lose changes of the figures. */
async function actAsPreviousRelease(): Promise<void> {
  await db.owner.query(
    `DROP TRIGGER recipient_counted ON batch_recipient;
     DROP TRIGGER payout_inserted ON payout;
     DROP TRIGGER payout_updated ON payout;
     DELETE FROM _functions`,
  )
  await addPayments(merchantId, 30)
  await db.owner.query('DELETE FROM transaction_count_change')
  await addPayments(merchantId, 5)
}

/** Starts as a new release does. @returns how often it filled the figures */
async function start(): Promise<number> {
  const said: string[] = []
  await migrate(db.url, { log: (event) => said.push(event) })
  return said.filter((event) => event === 'Figures of payments filled').length
}

test('the figures are filled beside changes that are not added', async () => {
  await addPayments(merchantId, 40)
  const { rows } = await db.owner.query(
    `SELECT (SELECT count(*) > 0 FROM transaction_count_change) AS transactions,
       (SELECT count(*) > 0 FROM transaction_count_change WHERE payment_link_id > 0) AS links,
       (SELECT count(*) > 0 FROM disbursement_change WHERE kind = 'payout') AS payouts,
       (SELECT count(*) > 0 FROM disbursement_change WHERE kind = 'recipient') AS recipients`,
  )
  expect(rows).toEqual([{ transactions: true, links: true, payouts: true, recipients: true }])
  await db.owner.query(
    'UPDATE payment_figure SET n = n + 1; DELETE FROM settle_time; DELETE FROM link_figure',
  )
  await db.owner.query('SELECT fill_payment_figures()')
  expect(await wrongFigures(db.owner)).toEqual([])
  await compactCounts(pool)
  await compactDisbursements(pool, 10_000)
  expect(await wrongFigures(db.owner)).toEqual([])
})

test('the figures are filled once, after the triggers, while other nodes pay and compact', async () => {
  await db.owner.query(
    `DELETE FROM payment_figure; DELETE FROM settle_time; DELETE FROM link_figure;
     DELETE FROM _payment_figure_fill`,
  )
  await actAsPreviousRelease()
  expect(await wrongFigures(db.owner)).not.toEqual([])
  const [filled] = await Promise.all([
    start(),
    addPayments(neighbour, 60),
    (async () => {
      for (let round = 0; round < 30; round += 1) {
        await compactCounts(pool, 10)
        await compactDisbursements(pool, 10)
      }
    })(),
  ])
  expect(filled).toBe(1)
  expect(await wrongFigures(db.owner)).toEqual([])
  expect(await start()).toBe(0)
})

test('the figures are filled by the next start where one was killed before', async () => {
  await db.owner.query('UPDATE payment_figure SET n = n + 1; DELETE FROM _payment_figure_fill')
  expect([await start(), await start()]).toEqual([1, 0])
  expect(await wrongFigures(db.owner)).toEqual([])
})

test('the figures are filled after a compaction that runs', async () => {
  await addPayments(merchantId, 20)
  await db.owner.query('DELETE FROM _payment_figure_fill')
  const compaction = await borrow(db.owner)
  await compaction.query('BEGIN')
  await compaction.query('SELECT pg_advisory_xact_lock($1)', [locks.transactionCounts])
  // By the function of the previous release.
  await compaction.query('DELETE FROM transaction_count_change')
  const filled = start()
  // A fill that does not wait ends at once, and its figures are wrong.
  await Promise.race([db.untilWaiting(), filled])
  await compaction.query('COMMIT')
  expect(await filled).toBe(1)
  expect(await wrongFigures(db.owner)).toEqual([])
})

test('the figures are filled again where the previous release ran in between', async () => {
  await actAsPreviousRelease()
  // That release knows no figures, and keeps the functions that it does not have once.
  await db.owner.query(
    `INSERT INTO _functions (checksum) VALUES ('previous');
     INSERT INTO _retired_functions VALUES ('fill_payment_figures()')`,
  )
  expect(await wrongFigures(db.owner)).not.toEqual([])
  expect([await start(), await start()]).toEqual([1, 0])
  expect(await wrongFigures(db.owner)).toEqual([])
})
