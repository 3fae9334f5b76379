import { expect, test } from 'vitest'
import { fund } from '../../src/ledger/post.ts'
import { useTestDatabase } from '../kit/database.ts'
import { balanceOf, fundedMerchant } from '../kit/money.ts'

const db = await useTestDatabase()
const { pool } = db.database
/** A second process. */
const other = db.secondProcess()
let origins = 0
const origin = () => `funding:once-${(origins += 1)}`

test('a cause funds once, also when asked at the same moment', async () => {
  const { merchantId } = await fundedMerchant(pool, 0n)
  const once = origin()
  const answers = await Promise.all(
    Array.from({ length: 10 }, (_, n) =>
      fund(n % 2 ? pool : other.pool, { merchant: merchantId, origin: once, amount: 700n }),
    ),
  )
  expect(answers.filter(Boolean)).toHaveLength(1)
  expect(await balanceOf(pool, merchantId)).toEqual({ available: 700n, reserved: 0n })
})

test('no two movements share cause and step, and no cause ends twice', async () => {
  const { merchantId } = await fundedMerchant(pool, 10_000n)
  const move = (name: string, step: string) =>
    db.owner.query(
      `INSERT INTO ledger_entry (merchant_id, origin, step, debit, credit, amount, created_at)
       VALUES ($1, $2, $3, 'available', 'reserved', 1, now())`,
      [merchantId, name, step],
    )
  const name = origin()
  await move(name, 'reserve')
  await expect(move(name, 'reserve')).rejects.toMatchObject({ constraint: 'ledger_entry_origin_step_key' })
  await move(name, 'post')
  await expect(move(name, 'void')).rejects.toMatchObject({ constraint: 'ledger_entry_reservation_end' })
})

test('no money moves where there is no balance to keep it in', async () => {
  const { merchantId } = await fundedMerchant(pool, 1_000n)
  const moved = db.owner.query(
    `WITH gone AS (DELETE FROM merchant_balance WHERE merchant_id = $1)
     INSERT INTO ledger_entry (merchant_id, origin, step, debit, credit, amount, created_at)
     VALUES ($1, $2, 'reserve', 'available', 'reserved', 1, now())`,
    [merchantId, origin()],
  )
  await expect(moved).rejects.toMatchObject({ message: 'a merchant without a balance row' })
  expect(await balanceOf(pool, merchantId)).toEqual({ available: 1_000n, reserved: 0n })
})
