import { afterAll, beforeAll, expect, test } from 'vitest'
import { proveDueSlice, proveRecent, proveWhole } from '../../src/ledger/audit.ts'
import { verifyLedger } from '../../src/ledger/verify.ts'
import { fillBooks, group, recordPoint } from '../bench/books.ts'
import { borrow } from '../kit/client.ts'
import { createTestDatabase, type TestDatabase } from '../kit/database.ts'
import { corrupt } from '../kit/corrupt.ts'
import { passOver } from '../kit/passes.ts'

const [merchants, groups] = [7, 60]
let db: TestDatabase
let filled = groups
beforeAll(async () => {
  db = await createTestDatabase()
  await fillBooks(db.owner, { groups, merchants })
  await recordPoint(db.owner)
})
afterAll(() => db.drop())

/** Writes the rows of a minute of service. */
async function write(more: number): Promise<void> {
  await fillBooks(db.owner, { first: filled, groups: more, merchants })
  filled += more
}

async function point() {
  const { rows } = await db.owner.query<{ entries: number; events: number; fresh: boolean }>(
    `SELECT ledger_entry_id::int AS entries, event_id::int AS events,
       proven_at > now() - interval '1 minute' AS fresh FROM audit_point`,
  )
  return rows[0]
}

/** A pass is due: the last one began long ago, and ended a while ago. */
async function due(): Promise<void> {
  await db.owner.query(`UPDATE audit_point SET whole_proven_at = now() - interval '25 hours'`)
  await rested()
}

const rested = () => db.owner.query(`UPDATE audit_pass SET ended_at = ended_at - interval '2 minutes'`)
const names = (problems: readonly { invariant: string }[]) => [...new Set(problems.map((p) => p.invariant))]

test('books that were filled for a measurement are sound', async () => {
  expect(await verifyLedger(db.database.pool)).toEqual([])
  expect(await verifyLedger(db.database.pool, { whole: false })).toEqual([])
})

test('a whole proof that is due never delays the proof of new entries', async () => {
  await due()
  // It would be found by any proof that reads the old rows.
  await corrupt(db.owner, `UPDATE operator_request SET state = 'refused' WHERE transaction_id = 1`)
  for (let minute = 1; minute <= 3; minute += 1) {
    await write(1)
    expect(await proveRecent(db.database)).toEqual({ problems: [], isEnd: true })
  }
  // The point is two proofs behind the end.
  expect(await point()).toEqual({
    entries: (filled - 1) * group.entries,
    events: (filled - 1) * group.events,
    fresh: true,
  })
  expect(await passOver(db, 100)).toMatchObject([
    {
      invariant: 'statuses_agree_with_requests',
      problem: expect.stringMatching(/^transaction:1 is success/),
    },
  ])
  await corrupt(db.owner, `UPDATE operator_request SET state = 'settled' WHERE transaction_id = 1`)
})

test('entries that waited for long are proven in steps, and count as proven only at the end', async () => {
  await proveRecent(db.database)
  await write(40)
  await db.owner.query(`UPDATE audit_point SET proven_at = now() - interval '1 hour'`)
  const pace = { rows: 100 }
  const seen: boolean[] = []
  for (let end = false; !end; pace.rows = 100) {
    const proof = await proveRecent(db.database, pace)
    expect(proof?.problems).toEqual([])
    end = proof?.isEnd === true
    seen.push((await point())?.fresh === true)
  }
  expect(seen.length).toBeGreaterThan((40 * group.events) / 100)
  expect(seen.slice(0, -1)).not.toContain(true)
  expect(seen.at(-1)).toBe(true)
  expect(await verifyLedger(db.database.pool, { whole: false })).toEqual([])
})

test('a wrong row among them is found in its step', async () => {
  await proveRecent(db.database)
  await proveRecent(db.database)
  await write(20)
  const wrong = (filled - 10) * group.transactions + 1
  await corrupt(db.owner, `UPDATE transaction SET settled_amount = 4999 WHERE id = $1`, [wrong])
  const pace = { rows: 50 }
  let problems: { invariant: string }[] = []
  for (let step = 0; problems.length === 0 && step < 100; step += 1, pace.rows = 50)
    problems = (await proveRecent(db.database, pace))?.problems ?? []
  expect(names(problems)).toEqual(['collections_credited_once'])
  // Nothing is noted as proven that is wrong: it is found again, also to the end.
  expect(names((await proveRecent(db.database))?.problems ?? [])).toEqual(['collections_credited_once'])
  await corrupt(db.owner, `UPDATE transaction SET settled_amount = 5000 WHERE id = $1`, [wrong])
  for (let end = false; !end; ) end = (await proveRecent(db.database))?.isEnd === true
})

test('a pass goes on where it stopped, one process at a time', async () => {
  await due()
  const first = [
    await proveDueSlice(db.database, { rows: 100 }),
    await proveDueSlice(db.database, { rows: 100 }),
  ]
  expect(first).toMatchObject([
    { stage: 'ledger_entry', idDone: 100n, slices: 1, problems: [] },
    { stage: 'ledger_entry', idDone: 200n, slices: 2, problems: [] },
  ])
  const other = await borrow(db.owner)
  await other.query('BEGIN; SELECT pg_advisory_xact_lock(72707383)')
  expect(await proveDueSlice(db.database, { rows: 100 })).toBe(null)
  await other.query('COMMIT')
  other.release()
  expect(await proveDueSlice(db.database, { rows: 100 })).toMatchObject({ idDone: 300n, slices: 3 })
  expect(await passOver(db, 100)).toEqual([])
  expect(await proveDueSlice(db.database, { rows: 100 })).toBe(null)
  const { rows } = await db.owner.query('SELECT FROM audit_pass_sum')
  expect(rows).toEqual([])
})

test.each<[what: string, found: RegExp, there: string, back: string]>([
  [
    'a movement and what it is about, both altered',
    /^its entries up to \d+ say \d+, 0, 0, and said \d+, 0, 0 when they were proven$/,
    `UPDATE ledger_entry SET amount = 4999 WHERE origin = 'transaction:1';
     UPDATE transaction SET settled_amount = 4999 WHERE id = 1`,
    `UPDATE ledger_entry SET amount = 5000 WHERE origin = 'transaction:1';
     UPDATE transaction SET settled_amount = 5000 WHERE id = 1`,
  ],
  [
    'a position that was moved',
    /^position 100001 does not follow 21$|^positions end at/,
    'UPDATE event SET position = 100001 WHERE id = 22',
    'UPDATE event SET position = 22 WHERE id = 22',
  ],
  [
    'a payout that is not counted',
    /payouts by OperatorA are there/,
    'UPDATE payout_count SET n = n - 1 WHERE merchant_id = 1003',
    'UPDATE payout_count SET n = n + 1 WHERE merchant_id = 1003',
  ],
  [
    'an event of a payment that is not there',
    /^events tell of transaction:77777777, which is not there$/,
    `UPDATE event SET data = data || '{"transaction_id": 77777777}' WHERE id = 1`,
    `UPDATE event SET data = data || '{"transaction_id": 1}' WHERE id = 1`,
  ],
])('a pass finds among old rows: %s', async (_what, found, there, back) => {
  await corrupt(db.owner, there)
  expect(await proveRecent(db.database)).toEqual({ problems: [], isEnd: true })
  await due()
  const problems = await passOver(db, 200)
  expect(problems.map(({ problem }) => problem)).toContainEqual(expect.stringMatching(found))
  // A pass that found a problem keeps the next one due.
  expect(await proveDueSlice(db.database, { rows: 100 })).toBe(null)
  await rested()
  await corrupt(db.owner, back)
  expect(await passOver(db, 200)).toEqual([])
})

test('a person proves all books beside the service, and sees the progress', async () => {
  const stages = new Set<string>()
  expect(await proveWhole(db.database, ({ stage }) => void stages.add(stage))).toEqual([])
  expect([...stages]).toEqual([
    'event',
    'position',
    'transaction',
    'payout',
    'batch',
    'payment_link',
    'payout_count',
    'balance_snapshot',
    'done',
  ])
  await corrupt(db.owner, `UPDATE operator_request SET state = 'refused' WHERE transaction_id = 1`)
  expect(names(await proveWhole(db.database))).toEqual(['statuses_agree_with_requests'])
  await corrupt(db.owner, `UPDATE operator_request SET state = 'settled' WHERE transaction_id = 1`)
})

test('a proof that is cut off makes the next one smaller, and a quick one larger again', async () => {
  const pace = { rows: 8_000 }
  const cutOff = { name: 'PieceTooLong', cause: { code: '57014' } }
  await expect(proveRecent(db.database, pace, { timeoutMs: 1 })).rejects.toMatchObject(cutOff)
  expect(pace.rows).toBe(4_000)
  await expect(proveRecent(db.database, pace, { timeoutMs: 1 })).rejects.toMatchObject(cutOff)
  expect(pace.rows).toBe(2_000)
  await proveRecent(db.database, pace)
  expect(pace.rows).toBe(4_000)
})
