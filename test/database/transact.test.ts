import { afterAll, beforeAll, expect, test } from 'vitest'
import { dryRun, transact } from '../../src/database/transact.ts'
import { createTestDatabase, type TestDatabase } from '../kit/database.ts'

let db: TestDatabase
let as: { pool: TestDatabase['owner'] }

beforeAll(async () => {
  db = await createTestDatabase({ template: 'template0' })
  as = { pool: db.owner }
  await db.owner.query('create table account (id int primary key, amount int8 not null)')
})
afterAll(() => db.drop())

async function amountOf(id: number): Promise<bigint | undefined> {
  const { rows } = await db.owner.query<{ amount: bigint }>('select amount from account where id = $1', [id])
  return rows[0]?.amount
}

test('work that returns is committed, with its value', async () => {
  const value = await transact(as, async (tx) => {
    await tx.query('insert into account values (1, 10)')
    return 'done'
  })
  expect(value).toBe('done')
  expect(await amountOf(1)).toBe(10n)
})

test('work that throws is undone, and its own error arrives', async () => {
  const refusal = new Error('refused')
  const work = transact(as, async (tx) => {
    await tx.query('insert into account values (2, 10)')
    throw refusal
  })
  await expect(work).rejects.toBe(refusal)
  expect(await amountOf(2)).toBeUndefined()
  expect(as.pool.idleCount).toBe(as.pool.totalCount)
})

test('a rehearsed transaction is undone, and its value is known', async () => {
  const seen = await dryRun(as, async (tx) => {
    await tx.query('insert into account values (8, 10)')
    return (await tx.query<{ amount: bigint }>('select amount from account where id = 8')).rows
  })
  expect(seen).toEqual([{ amount: 10n }])
  expect(await amountOf(8)).toBeUndefined()
  const refusal = new Error('refused')
  await expect(dryRun(as, () => Promise.reject(refusal))).rejects.toBe(refusal)
  expect(as.pool.idleCount).toBe(as.pool.totalCount)
})

test('a failed statement that the work keeps to itself never looks like a commit', async () => {
  const work = transact(as, async (tx) => {
    await tx.query('insert into account values (3, 10)')
    await tx.query('select 1 / 0').catch(() => {})
  })
  await expect(work).rejects.toThrow('rolled back')
  expect(await amountOf(3)).toBeUndefined()
})

test('two transactions that change the same row at the same time both count', async () => {
  await db.owner.query('insert into account values (4, 0)')
  let ready = 0
  let go = () => {}
  const both = new Promise<void>((resolve) => (go = resolve))
  const add = () =>
    transact(as, async (tx) => {
      await tx.query('set transaction isolation level serializable')
      const { rows } = await tx.query<{ amount: bigint }>('select amount from account where id = 4')
      if ((ready += 1) >= 2) go()
      await both
      await tx.query('update account set amount = $1 where id = 4', [(rows[0]?.amount ?? 0n) + 1n])
    })
  await Promise.all([add(), add()])
  expect(await amountOf(4)).toBe(2n)
  expect(ready).toBe(3)
})

test('a deadlock is played again, a broken rule is not', async () => {
  await db.owner.query('insert into account values (5, 0), (6, 0)')
  const steps = { 5: Promise.withResolvers<void>(), 6: Promise.withResolvers<void>() }
  const lockInTurn = (first: 5 | 6, second: 5 | 6) =>
    transact(as, async (tx) => {
      await tx.query('update account set amount = amount + 1 where id = $1', [first])
      steps[first].resolve()
      await steps[second].promise
      await tx.query('update account set amount = amount + 1 where id = $1', [second])
    })
  await Promise.all([lockInTurn(5, 6), lockInTurn(6, 5)])
  expect([await amountOf(5), await amountOf(6)]).toEqual([2n, 2n])

  let attempts = 0
  const doubled = transact(as, async (tx) => {
    attempts += 1
    await tx.query('insert into account values (5, 0)')
  })
  await expect(doubled).rejects.toMatchObject({ code: '23505' })
  expect(attempts).toBe(1)
})

test('conflicts end after as many retries as were allowed', async () => {
  let attempts = 0
  const work = transact(
    as,
    async (tx) => {
      attempts += 1
      await tx.query("do $$ begin raise exception 'conflict' using errcode = '40001'; end $$")
    },
    { retries: 2 },
  )
  await expect(work).rejects.toMatchObject({ code: '40001' })
  expect(attempts).toBe(3)
})

test('a connection that breaks in the middle is thrown away, and the process lives on', async () => {
  let pid = 0
  const work = transact(as, async (tx) => {
    const { rows } = await tx.query<{ pid: number }>('select pg_backend_pid() as pid')
    pid = rows[0]?.pid ?? 0
    const ended = new Promise((resolve) => tx.once('end', resolve))
    await db.owner.query('select pg_terminate_backend($1)', [pid])
    await ended
    await tx.query('select 1')
  })
  await expect(work).rejects.toThrow('not queryable')
  const pids = await Promise.all(
    [1, 2, 3, 4, 5].map(() => db.owner.query('select pg_backend_pid() as pid, pg_sleep(0.01)')),
  )
  expect(pids.map(({ rows }) => rows[0]?.pid)).not.toContain(pid)
})
