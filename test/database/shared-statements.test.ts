import { setImmediate as tick } from 'node:timers/promises'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  type StatementBounds,
  type Many,
  openSharedStatements,
  shareStatement,
  usualBounds,
} from '../../src/database/shared-statements.ts'
import { createTestDatabase, type TestDatabase } from '../kit/database.ts'

let db: TestDatabase
let pool: pg.Pool
beforeAll(async () => {
  db = await createTestDatabase()
  pool = db.database.pool
  await db.owner.query('CREATE TABLE kept (n int PRIMARY KEY CHECK (n >= 0))')
  await db.owner.query('GRANT INSERT, SELECT ON kept TO payments_service')
})
afterAll(() => db.drop())

const bounds: StatementBounds = { ...usualBounds, sizeMax: 10, shareMax: 4, concurrencyMax: 2, queueMax: 100 }

/** A statement that runs until it is let go, and notes what it was called with. */
function heldStatement() {
  const calls: number[][] = []
  let running = 0
  let runningMax = 0
  const gates: PromiseWithResolvers<void>[] = []
  const statement = shareStatement<number, number>(async (_pool, items) => {
    calls.push([...items])
    running += 1
    runningMax = Math.max(runningMax, running)
    const gate = Promise.withResolvers<void>()
    gates.push(gate)
    await gate.promise
    running -= 1
    return items.map((n) => n * 2)
  })
  return {
    statement,
    calls,
    runningMax: () => runningMax,
    begun: async (count: number) => {
      while (calls.length < count) await tick()
    },
    release: (count = 1) => {
      for (const gate of gates.splice(0, count)) gate.resolve()
    },
    releaseAll: async (until: Promise<unknown>) => {
      let over = false
      void until.finally(() => (over = true)).catch(() => {})
      while (!over) {
        for (const gate of gates.splice(0)) gate.resolve()
        await tick()
      }
    },
  }
}

describe('sharing', () => {
  test('calls of one moment share a statement, and each gets its own answer', async () => {
    const held = heldStatement()
    const statements = openSharedStatements(pool, bounds)
    const answers = Promise.all([1, 2, 3, 4].map((n) => statements.run(held.statement, n)))
    await held.releaseAll(answers)
    expect(await answers).toEqual([2, 4, 6, 8])
    expect(held.calls).toEqual([[1, 2, 3, 4]])
  })

  test('calls that come while every lane is busy share the next statement, also late ones', async () => {
    const held = heldStatement()
    const statements = openSharedStatements(pool, bounds)
    const first = [statements.run(held.statement, 1)]
    await held.begun(1)
    first.push(statements.run(held.statement, 2))
    await held.begun(2)
    const later = [3, 4, 5].map((n) => statements.run(held.statement, n))
    await tick()
    later.push(statements.run(held.statement, 6))
    for (let n = 0; n < 20; n += 1) await tick()
    expect(held.calls).toEqual([[1], [2]])
    held.release()
    await held.begun(3)
    expect(held.calls[2]).toEqual([3, 4, 5, 6])
    const all = Promise.all([...first, ...later])
    await held.releaseAll(all)
    expect(await all).toEqual([2, 4, 6, 8, 10, 12])
  })

  test('a second statement leaves when as many items wait as are under way; fewer wait longer', async () => {
    const held = heldStatement()
    const statements = openSharedStatements(pool, bounds)
    const all = [1, 2, 3].map((n) => statements.run(held.statement, n))
    await held.begun(1)
    all.push(statements.run(held.statement, 4), statements.run(held.statement, 5))
    for (let n = 0; n < 20; n += 1) await tick()
    expect(held.calls).toEqual([[1, 2, 3]])
    all.push(statements.run(held.statement, 6))
    await held.begun(2)
    all.push(statements.run(held.statement, 7), statements.run(held.statement, 8))
    held.release()
    for (let n = 0; n < 20; n += 1) await tick()
    expect(held.calls).toEqual([
      [1, 2, 3],
      [4, 5, 6],
    ])
    held.release()
    await held.begun(3)
    expect(held.calls[2]).toEqual([7, 8])
    const answers = Promise.all(all)
    await held.releaseAll(answers)
    expect(await answers).toEqual([2, 4, 6, 8, 10, 12, 14, 16])
    await statements.idle()
  })

  test('no statement has more items than its bound, and no more run than there are lanes', async () => {
    const held = heldStatement()
    const statements = openSharedStatements(pool, bounds)
    const all = Promise.all(Array.from({ length: 95 }, (_, n) => statements.run(held.statement, n)))
    await held.releaseAll(all)
    expect(await all).toEqual(Array.from({ length: 95 }, (_, n) => n * 2))
    expect(held.calls.map((items) => items.length)).toEqual([10, 10, 10, 10, 10, 10, 10, 10, 10, 5])
    expect(held.runningMax()).toBe(2)
  })

  test('an item of a statement with a pause waits for the next items, and goes with them', async () => {
    const calls: number[][] = []
    const many = async (_pool: pg.Pool, items: readonly number[]) => {
      calls.push([...items])
      return items
    }
    const statement = shareStatement<number, number>(many, undefined, 20)
    const statements = openSharedStatements(pool, bounds)
    const answers = [statements.run(statement, 1)]
    for (let n = 2; n < 6; n += 1) {
      await tick()
      answers.push(statements.run(statement, n))
    }
    await statements.idle()
    expect(await Promise.all(answers)).toEqual([1, 2, 3, 4, 5])
    expect(calls).toEqual([[1, 2, 3, 4, 5]])
  })

  test('statements do not wait for one another', async () => {
    const [a, b] = [heldStatement(), heldStatement()]
    const statements = openSharedStatements(pool, { ...bounds, concurrencyMax: 1 })
    const slow = statements.run(a.statement, 1)
    await a.begun(1)
    const quick = statements.run(b.statement, 1)
    await b.begun(1)
    b.release()
    expect(await quick).toBe(2)
    a.release()
    await slow
  })

  test('on the server too, 500 calls are few statements', async () => {
    const count = shareStatement<number, number>(async (on, items) => {
      const { rows } = await on.query<{ n: number }>('SELECT unnest($1::int[]) AS n', [items])
      return rows.map((row) => row.n)
    })
    let calls = 0
    const counted = shareStatement<number, number>((on, items, waits) => {
      calls += 1
      return count.many(on, items, waits)
    })
    const statements = openSharedStatements(pool)
    const answers = await Promise.all(Array.from({ length: 500 }, (_, n) => statements.run(counted, n)))
    expect(answers).toEqual(Array.from({ length: 500 }, (_, n) => n))
    expect(calls).toBe(8)
  })
})

describe('a crowd of one owner', () => {
  const ownerOf = (n: number) => Math.floor(n / 100)

  async function order(waiting: readonly number[]) {
    const held = heldStatement()
    const owned = shareStatement(held.statement.many, ownerOf)
    const statements = openSharedStatements(pool, { ...bounds, concurrencyMax: 1 })
    const first = statements.run(owned, 999)
    await held.begun(1)
    const all = Promise.all([first, ...waiting.map((n) => statements.run(owned, n))])
    await held.releaseAll(all)
    expect(await all).toEqual([1_998, ...waiting.map((n) => n * 2)])
    return held.calls.slice(1)
  }

  test('leaves room for later calls of other owners; calls of one owner keep their order', async () => {
    const load = Array.from({ length: 20 }, (_, n) => 100 + n)
    const calls = await order([...load, 200, 300, 301, 302, 303, 304, 305])
    expect(calls[0]).toEqual([100, 101, 102, 103, 104, 200, 300, 301, 302, 303])
    expect(calls.flat().filter((n) => n < 200)).toEqual(load)
  })

  test('takes every place where no other owner waits', async () => {
    const load = Array.from({ length: 25 }, (_, n) => 100 + n)
    const calls = await order(load)
    expect(calls.map((items) => items.length)).toEqual([10, 10, 5])
  })
})

test('beyond the queue a call is refused at once, and room comes back', async () => {
  const held = heldStatement()
  const statements = openSharedStatements(pool, { ...bounds, sizeMax: 2, concurrencyMax: 1, queueMax: 5 })
  const accepted = Promise.all([1, 2, 3, 4, 5].map((n) => statements.run(held.statement, n)))
  await expect(statements.run(held.statement, 6)).rejects.toMatchObject({
    code: 'OVERLOADED',
    detail: { retryAfterS: 1 },
  })
  await held.releaseAll(accepted)
  const again = statements.run(held.statement, 7)
  await held.releaseAll(again)
  expect(await again).toBe(14)
  expect(held.calls.flat()).not.toContain(6)
})

describe('failing', () => {
  function insert(calls: number[][]) {
    return shareStatement<number, number>(async (on, items) => {
      calls.push([...items])
      await on.query('INSERT INTO kept SELECT unnest($1::int[])', [items])
      return [...items]
    })
  }

  test('an item whose data breaks the statement fails alone, and nothing is written twice', async () => {
    const calls: number[][] = []
    const statements = openSharedStatements(pool, bounds)
    const statement = insert(calls)
    const answers = await Promise.allSettled([1, 2, -3, 4, 4].map((n) => statements.run(statement, n)))
    expect(answers.map((answer) => answer.status)).toEqual([
      'fulfilled',
      'fulfilled',
      'rejected',
      'fulfilled',
      'rejected',
    ])
    expect(answers[2]).toMatchObject({ reason: { code: '23514' } })
    expect(answers[4]).toMatchObject({ reason: { code: '23505' } })
    expect(calls).toEqual([[1, 2, -3, 4, 4], [1], [2], [-3], [4], [4]])
    const { rows } = await pool.query('SELECT n FROM kept WHERE n < 100 ORDER BY n')
    expect(rows).toEqual([{ n: 1 }, { n: 2 }, { n: 4 }])
  })

  test.each(['22000', '22P05', '23505'])('data error %s fails its item alone', async (code) => {
    const { calls, answers } = await failingWith(code)
    expect(calls).toBe(4)
    expect(answers).toEqual(['2', code, '6'])
  })

  test.each(['57014', '55P03', '53300', '08006', '42601', 'XX000', undefined])(
    'error %s fails all of them, once: it may be committed',
    async (code) => {
      const { calls, answers } = await failingWith(code)
      expect(calls).toBe(1)
      expect(answers).toEqual([code, code, code])
    },
  )

  async function failingWith(code: string | undefined) {
    let calls = 0
    const statement = shareStatement<number, number>(async (_pool, items) => {
      calls += 1
      if (items.includes(2)) throw Object.assign(new Error('broken'), { code })
      return items.map((n) => n * 2)
    })
    const statements = openSharedStatements(pool, bounds)
    const settled = await Promise.allSettled([1, 2, 3].map((n) => statements.run(statement, n)))
    const answers = settled.map((each) =>
      each.status === 'fulfilled' ? String(each.value) : (each.reason as { code?: string }).code,
    )
    return { calls, answers }
  }

  test('a lost connection fails all of them, and nothing is sent again', async () => {
    let calls = 0
    const statement = shareStatement<number, number>(async (on, items) => {
      calls += 1
      await on.query('INSERT INTO kept SELECT unnest($1::int[])', [items.map((n) => n + 100)])
      await on.query('SELECT pg_terminate_backend(pg_backend_pid())')
      return [...items]
    })
    const statements = openSharedStatements(pool, bounds)
    const answers = await Promise.allSettled([1, 2, 3].map((n) => statements.run(statement, n)))
    expect(answers.map((answer) => answer.status)).toEqual(['rejected', 'rejected', 'rejected'])
    expect(calls).toBe(1)
    const { rows } = await pool.query('SELECT count(*)::int AS n FROM kept WHERE n > 100 AND n < 200')
    expect(rows).toEqual([{ n: 3 }])
  })

  test('a deadlock undid everything: the statement runs again', async () => {
    let calls = 0
    const answers = await openSharedStatements(pool, bounds).run(
      shareStatement<number, number>(async (on, items) => {
        calls += 1
        if (calls < 3) await on.query(`DO $$ BEGIN RAISE 'given up' USING ERRCODE = '40P01'; END $$`)
        return [...items]
      }),
      5,
    )
    expect([answers, calls]).toEqual([5, 3])
  })

  test('a statement with repeated deadlocks fails in the end', async () => {
    let calls = 0
    const many: Many<number, number> = () => {
      calls += 1
      const error = new pg.DatabaseError('given up', 0, 'error')
      error.code = '40P01'
      throw error
    }
    const run = openSharedStatements(pool, bounds).run(shareStatement(many), 5)
    await expect(run).rejects.toMatchObject({ code: '40P01' })
    expect(calls).toBe(4)
  })
})

describe('idle', () => {
  test('comes when no item waits and no statement runs', async () => {
    const held = heldStatement()
    const statements = openSharedStatements(pool, { ...bounds, sizeMax: 1, concurrencyMax: 1, queueMax: 10 })
    await statements.idle()
    const all = Promise.all([1, 2, 3].map((n) => statements.run(held.statement, n)))
    let idle = false
    const waiting = statements.idle().then(() => (idle = true))
    await held.begun(1)
    held.release()
    await held.begun(2)
    expect(idle).toBe(false)
    await held.releaseAll(all)
    await waiting
    expect(held.calls).toEqual([[1], [2], [3]])
  })

  test('comes after a failure too', async () => {
    const statements = openSharedStatements(pool, bounds)
    const broken = shareStatement<number, number>(() => Promise.reject(new Error('broken')))
    await expect(statements.run(broken, 1)).rejects.toThrow('broken')
    await statements.idle()
  })
})
