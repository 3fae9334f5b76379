import { describe, expect, test } from 'vitest'
import { haltPaymentsOut, resumePaymentsOut } from '../../src/ledger/payments-out.ts'
import { transactionStates } from '../../src/resources/transactions/states.ts'
import { borrow } from '../kit/client.ts'
import { deactivate, makeMerchant } from '../kit/merchants.ts'
import { useTestDatabase } from '../kit/database.ts'
import {
  balanceOf,
  collectMany,
  eventTypes,
  fundedMerchant,
  item,
  problemsOf,
  settleMany,
} from '../kit/money.ts'
import {
  depositItem,
  depositMany,
  entriesOf,
  openDeposit,
  requestOf,
  reserveByHand,
  settleDeposits,
  watchAvailable,
  writtenRows,
} from '../kit/money-out.ts'

const db = await useTestDatabase()
const { pool } = db.database
/** A second process. */
const other = db.secondProcess()

const node = (n: number) => (n % 2 ? pool : other.pool)
const originOf = (id: bigint) => `transaction:${id}`

/** A deposit in a status, with nothing behind it. */
async function insertWith(merchantId: number, status: string): Promise<bigint> {
  const { rows } = await db.owner.query<{ id: bigint }>(
    `INSERT INTO transaction (merchant_id, transaction_type, payment_method, customer_phone, amount, status,
       reference, request_data, settled_amount, created_at)
     VALUES ($1, 'deposit', 'OperatorA', '+22370000001', 5000, $2, 'standing', '{}', $3, now()) RETURNING id`,
    [merchantId, status, status === 'success' || status === 'reversed' ? 5_000n : null],
  )
  return rows[0]?.id ?? 0n
}

describe('a deposit', () => {
  test('is recorded with its money, its question and its event, at once', async () => {
    const merchant = await fundedMerchant(pool, 5_000n)
    const { transactionId } = await openDeposit(pool, merchant, { amount: 2_000n, provider: 'OperatorC' })
    expect(await balanceOf(pool, merchant.merchantId)).toEqual({ available: 3_000n, reserved: 2_000n })
    expect(await entriesOf(pool, originOf(transactionId))).toEqual(['reserve available > reserved 2000'])
    expect(await requestOf(pool, 'transaction_id', transactionId)).toEqual([
      {
        kind: 'disburse',
        provider: 'OperatorC',
        amount: 2_000n,
        phone: '+22370000001',
        state: 'sending',
        asked: true,
      },
    ])
    expect(await eventTypes(pool, merchant.merchantId)).toEqual(['deposit_processing'])
    expect(await problemsOf(pool, merchant.merchantId)).toEqual([])
  })

  test('that may not be made writes nothing', async () => {
    const merchant = await fundedMerchant(pool, 1_500n)
    const gone = await fundedMerchant(pool, 5_000n)
    await deactivate(pool, gone.merchantId)
    const [first] = await depositMany(pool, [depositItem(merchant, { reference: 'taken' })])
    expect(first?.outcome).toBe('made')
    const before = await writtenRows(db.owner)
    const answers = await depositMany(pool, [
      depositItem(merchant, { apiKeyVersion: 2 }),
      depositItem(merchant, { apiKeyId: gone.apiKeyId }),
      depositItem(gone),
      depositItem(merchant, { reference: 'taken', amount: 1_000_000n }),
      depositItem(merchant),
      depositItem(await makeMerchant(pool)),
    ])
    expect(answers.map(({ outcome }) => outcome)).toEqual([
      'unauthenticated',
      'unauthenticated',
      'unauthenticated',
      'duplicate',
      'short',
      'short',
    ])
    expect(
      answers.every(({ transactionId, requestId }) => transactionId === null && requestId === null),
    ).toBe(true)
    expect(await writtenRows(db.owner)).toEqual(before)
    expect(await balanceOf(pool, merchant.merchantId)).toEqual({ available: 500n, reserved: 1_000n })
  })

  test('shares a call in order of arrival: each covered deposit leaves less for the next', async () => {
    const [a, b] = [await fundedMerchant(pool, 5_000n), await fundedMerchant(pool, 1_000n)]
    const answers = await depositMany(pool, [
      depositItem(a, { amount: 3_000n }),
      depositItem(b),
      depositItem(a, { amount: 2_500n }),
      depositItem(b),
      depositItem(a, { apiKeyVersion: 9, amount: 2_000n }),
      depositItem(a, { amount: 2_000n }),
    ])
    expect(answers.map(({ outcome }) => outcome)).toEqual([
      'made',
      'made',
      'short',
      'short',
      'unauthenticated',
      'made',
    ])
    expect(new Set(answers.map(({ correlationId }) => correlationId)).size).toBe(4)
    expect(await balanceOf(pool, a.merchantId)).toEqual({ available: 0n, reserved: 5_000n })
    expect(await problemsOf(pool, a.merchantId, b.merchantId)).toEqual([])
  })

  test('under the reference of one before it in the call is a duplicate, or fails as that one', async () => {
    const [rich, poor] = [await fundedMerchant(pool, 5_000n), await fundedMerchant(pool, 0n)]
    const answers = await depositMany(pool, [
      depositItem(rich, { reference: 'same', apiKeyVersion: 2 }),
      depositItem(rich, { reference: 'same' }),
      depositItem(rich, { reference: 'same' }),
      depositItem(poor, { reference: 'same' }),
      depositItem(poor, { reference: 'same' }),
    ])
    expect(answers.map(({ outcome }) => outcome)).toEqual([
      'unauthenticated',
      'made',
      'duplicate',
      'short',
      'short',
    ])
    expect(await balanceOf(pool, rich.merchantId)).toEqual({ available: 4_000n, reserved: 1_000n })
  })

  test('never begins while payments out are halted, also where it waited when the halt came', async () => {
    const merchant = await fundedMerchant(pool, 10_000n)
    await haltPaymentsOut(pool, 'drill')
    const before = await writtenRows(db.owner)
    expect(await depositMany(pool, [depositItem(merchant)])).toMatchObject([{ outcome: 'halted' }])
    expect(await writtenRows(db.owner)).toEqual(before)
    await resumePaymentsOut(pool, 'over')

    const first = await borrow(pool)
    await first.query('BEGIN')
    await depositMany(first, [depositItem(merchant)])
    const waiting = depositMany(other.pool, [depositItem(merchant)])
    await db.untilWaiting()
    await haltPaymentsOut(db.owner, 'drill')
    await first.query('COMMIT')
    first.release()
    expect(await waiting).toMatchObject([{ outcome: 'halted' }])
    await resumePaymentsOut(pool, 'over')
    expect(await depositMany(pool, [depositItem(merchant)])).toMatchObject([{ outcome: 'made' }])
    expect(await balanceOf(pool, merchant.merchantId)).toEqual({ available: 8_000n, reserved: 2_000n })
  })
})

describe('many deposits at once', () => {
  test('60 callers over two processes and money for 20: exactly 20, and never below zero', async () => {
    const merchant = await fundedMerchant(pool, 20_000n)
    const stop = watchAvailable(db.owner, merchant.merchantId)
    const answers = await Promise.all(
      Array.from({ length: 60 }, (_, n) => depositMany(node(n), [depositItem(merchant)])),
    )
    const seen = await stop()
    const outcomes = answers.flat().map(({ outcome }) => outcome)
    expect(outcomes.filter((outcome) => outcome === 'made')).toHaveLength(20)
    expect(outcomes.filter((outcome) => outcome === 'short')).toHaveLength(40)
    expect(seen.every((available) => available >= 0n && available <= 20_000n)).toBe(true)
    expect(await balanceOf(pool, merchant.merchantId)).toEqual({ available: 0n, reserved: 20_000n })
    expect(await eventTypes(pool, merchant.merchantId)).toHaveLength(20)
    expect(await problemsOf(pool, merchant.merchantId)).toEqual([])
  })

  test('deposits, settlements and collections in one another’s way never deadlock', async () => {
    const shops = await Promise.all([1, 2, 3].map(() => fundedMerchant(pool, 30_000n)))
    const ids = (
      await depositMany(
        pool,
        shops.flatMap((shop) => Array.from({ length: 10 }, () => depositItem(shop))),
      )
    ).map(({ transactionId }) => transactionId ?? 0n)
    const work = Array.from({ length: 60 }, (_, n) => {
      const turned = n % 4 < 2 ? shops : shops.toReversed()
      if (n % 3 === 0)
        return depositMany(
          node(n),
          turned.map((shop) => depositItem(shop)),
        )
      if (n % 3 === 1)
        return collectMany(
          node(n),
          turned.map((shop) => item(shop, { reference: `r${n}` })),
        )
      const some = ids.filter((_id, ordinal) => ordinal % 20 === n % 20)
      return settleDeposits(
        node(n),
        (n % 2 ? some : some.toReversed()).map((id) => ({ id, to: n % 4 ? 'success' : 'failed' })),
      )
    })
    await Promise.all(work)
    for (const { merchantId } of shops) {
      const { available, reserved } = await balanceOf(pool, merchantId)
      expect(available >= 0n && reserved >= 0n).toBe(true)
      expect(await problemsOf(pool, merchantId)).toEqual([])
    }
  })

  test('40 deposits with one reference: one is made, the others are duplicates', async () => {
    const merchant = await fundedMerchant(pool, 100_000n)
    const answers = await Promise.all(
      Array.from({ length: 40 }, (_, n) =>
        depositMany(node(n), [depositItem(merchant, { reference: 'once' })]),
      ),
    )
    const outcomes = answers.flat().map(({ outcome }) => outcome)
    expect(outcomes.toSorted()).toEqual([...Array<string>(39).fill('duplicate'), 'made'])
    expect(await balanceOf(pool, merchant.merchantId)).toEqual({ available: 99_000n, reserved: 1_000n })
  })

  test('a deposit and a collection race for a reference: one has it, and the books hold', async () => {
    const merchant = await fundedMerchant(pool, 1_000_000n)
    const raced = await Promise.all(
      Array.from({ length: 30 }, async (_, n) => {
        const reference = `raced-${n}`
        const [deposit, collection] = await Promise.all([
          depositMany(node(n), [depositItem(merchant, { reference })]),
          collectMany(node(n + 1), [item(merchant, { reference })]),
        ])
        return `${deposit[0]?.outcome} ${collection[0]?.outcome}`
      }),
    )
    expect(raced.filter((ends) => ends !== 'duplicate made' && ends !== 'made duplicate')).toEqual([])
    expect(await problemsOf(pool, merchant.merchantId)).toEqual([])
  })

  test('a deposit that lost its reference to a collection leaves its money to the next call', async () => {
    const merchant = await fundedMerchant(pool, 1_000n)
    const collecting = await borrow(pool)
    await collecting.query('BEGIN')
    await collectMany(collecting, [item(merchant, { reference: 'theirs' })])
    const waiting = depositMany(other.pool, [
      depositItem(merchant, { reference: 'theirs' }),
      depositItem(merchant, { reference: 'ours' }),
    ])
    await db.untilWaiting()
    await collecting.query('COMMIT')
    collecting.release()
    expect(await waiting).toMatchObject([{ outcome: 'duplicate' }, { outcome: 'again' }])
    expect(await depositMany(pool, [depositItem(merchant)])).toMatchObject([{ outcome: 'made' }])
  })
})

describe('a deposit ends', () => {
  async function begun(amount = 2_000n) {
    const merchant = await fundedMerchant(pool, 10_000n)
    const { transactionId: id } = await openDeposit(pool, merchant, { amount })
    return { merchant, id, held: () => balanceOf(pool, merchant.merchantId) }
  }

  test('paid: the money set aside goes to the operator once, for any number of answers', async () => {
    const { merchant, id, held } = await begun()
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, n) => settleDeposits(node(n), [{ id, to: 'success', watchMs: 60_000 }])),
    )
    expect(answers.flat().filter(({ moved }) => moved)).toEqual([{ moved: true, status: 'success' }])
    expect(answers.flat().every(({ status }) => status === 'success')).toBe(true)
    expect(await held()).toEqual({ available: 8_000n, reserved: 0n })
    expect(await entriesOf(pool, originOf(id))).toEqual([
      'reserve available > reserved 2000',
      'post reserved > clearing_operator_a 2000',
    ])
    expect(await requestOf(pool, 'transaction_id', id)).toMatchObject([{ state: 'settled', asked: true }])
    expect(await eventTypes(pool, merchant.merchantId)).toEqual(['deposit_processing', 'deposit_completed'])
    expect(await problemsOf(pool, merchant.merchantId)).toEqual([])
  })

  test.each(['query', 'initiate', 'service'])(
    'refused, as the %s says: all of it is free again',
    async (source) => {
      const { merchant, id, held } = await begun()
      const failed = { id, to: 'failed', source, reason: 'PAYEE_NOT_FOUND' }
      expect(await settleDeposits(pool, [failed])).toEqual([{ moved: true, status: 'failed' }])
      expect(await settleDeposits(pool, [{ id, to: 'success' }])).toEqual([
        { moved: false, status: 'failed' },
      ])
      expect(await held()).toEqual({ available: 10_000n, reserved: 0n })
      expect(await entriesOf(pool, originOf(id))).toEqual([
        'reserve available > reserved 2000',
        'void reserved > available 2000',
      ])
      expect(await requestOf(pool, 'transaction_id', id)).toMatchObject([
        { state: source === 'service' ? 'closed' : 'refused', asked: false },
      ])
      expect(await problemsOf(pool, merchant.merchantId)).toEqual([])
    },
  )

  test.each([
    ['less: the rest is withheld', 1_500n, 1_500n, ['withhold reserved > unallocated 500']],
    ['more: the money that was set aside, and no franc more', 9_999n, 2_000n, []],
    ['no amount: the amount that was asked for', null, 2_000n, []],
  ])('with %s', async (_name, amount, settled, more) => {
    const { merchant, id, held } = await begun()
    await settleDeposits(pool, [{ id, to: 'success', amount }])
    expect(await entriesOf(pool, originOf(id))).toEqual([
      'reserve available > reserved 2000',
      `post reserved > clearing_operator_a ${settled}`,
      ...more,
    ])
    const { rows } = await pool.query('SELECT settled_amount FROM transaction WHERE id = $1', [id])
    expect(rows).toEqual([{ settled_amount: settled }])
    expect(await held()).toEqual({ available: 8_000n, reserved: 0n })
    expect(await problemsOf(pool, merchant.merchantId)).toEqual([])
  })

  test('as the first of several outcomes in one call; an unknown deposit does not end', async () => {
    const { id, held } = await begun()
    const answers = await settleDeposits(pool, [
      { id, to: 'failed' },
      { id: 999_999_999n, to: 'success' },
      { id, to: 'success' },
    ])
    expect(answers).toEqual([
      { moved: true, status: 'failed' },
      { moved: false, status: null },
      { moved: false, status: 'failed' },
    ])
    expect(await held()).toEqual({ available: 10_000n, reserved: 0n })
  })

  test('and a callback that claims otherwise keeps its question', async () => {
    const { id } = await begun()
    await db.owner.query(
      `UPDATE operator_request SET next_check_at = service_now(), handle = '{"claimed":"refused"}'
       WHERE transaction_id = $1`,
      [id],
    )
    await settleDeposits(pool, [{ id, to: 'success' }])
    expect(await requestOf(pool, 'transaction_id', id)).toMatchObject([{ state: 'settled', asked: true }])
  })

  const { statuses } = transactionStates
  test.each(statuses.flatMap((from) => statuses.map((to) => [from, to] as const)))(
    'only from processing, as paid or refused: %s to %s',
    async (from, to) => {
      const merchant = await fundedMerchant(pool, 5_000n)
      const id = await insertWith(merchant.merchantId, from)
      await reserveByHand(db.owner, merchant.merchantId, originOf(id), 5_000n)
      const may = from === 'processing' && (to === 'success' || to === 'failed')
      expect(await settleDeposits(pool, [{ id, to }])).toEqual([{ moved: may, status: may ? to : from }])
      expect(await entriesOf(pool, originOf(id))).toHaveLength(may ? 2 : 1)
      // The way of collections is none for money that was set aside.
      expect(await settleMany(pool, [{ id, to }])).toMatchObject([{ moved: false }])
    },
  )

  test('never without the money that was set aside for it', async () => {
    const { merchantId } = await fundedMerchant(pool, 5_000n)
    const id = await insertWith(merchantId, 'processing')
    for (const to of ['success', 'failed'])
      expect(await settleDeposits(pool, [{ id, to }])).toEqual([{ moved: false, status: 'processing' }])
    expect(await balanceOf(pool, merchantId)).toEqual({ available: 5_000n, reserved: 0n })
  })
})
