import { afterAll, beforeAll, expect, test } from 'vitest'
import { fundedMerchant, openCollection, settleMany } from '../kit/money.ts'
import { createTestDatabase, type TestDatabase } from '../kit/database.ts'
import { adminHere } from '../kit/admin.ts'
import { admin, type Home, newHome } from '../kit/program.ts'

// A person decides on the command line about amounts that operators report beyond the requested ones.
let db: TestDatabase
let home: Home
beforeAll(async () => {
  db = await createTestDatabase()
  home = await newHome({ DATABASE_URL: db.url })
})
afterAll(async () => {
  await home.remove()
  await db.drop()
})

test('an excess is listed, decided once with a reason, and then no longer listed', async () => {
  const { pool } = db.database
  const merchant = await fundedMerchant(pool, 0n)
  const { merchantId } = merchant
  const { transactionId } = await openCollection(pool, merchant)
  await settleMany(pool, [{ id: transactionId, to: 'success', amount: 7_000n }])

  const listed = await adminHere(home, 'excess', 'list', '--json')
  const { excesses } = JSON.parse(listed.stdout)
  expect(excesses).toEqual([
    expect.objectContaining({
      merchant_id: merchantId,
      transaction_id: Number(transactionId),
      payment_method: 'OperatorA',
      requested_amount: 5_000,
      confirmed_amount: 7_000,
    }),
  ])
  const id = String(excesses[0].id)
  const words = await adminHere(home, 'excess', 'list')
  expect(words.stdout).toMatch(/requested XOF.5,000, confirmed XOF.7,000/)

  const silent = await adminHere(home, 'excess', 'credit', '--id', id)
  expect(silent).toMatchObject({ code: 1, stderr: expect.stringMatching(/reason/) })
  const [why, by] = [
    ['--reason', 'paid twice'],
    ['--by', 'Awa'],
  ]
  const done = await admin(home, 'excess', 'credit', '--id', id, ...why, ...by, '--json')
  expect({ code: done.code, ...JSON.parse(done.stdout) }).toEqual({
    code: 0,
    merchant_id: merchantId,
    transaction_id: Number(transactionId),
    amount: 2_000,
    state: 'credited',
  })
  const again = await adminHere(home, 'excess', 'return', '--id', id, ...why)
  expect(again).toMatchObject({ code: 1, stderr: expect.stringMatching(/was already decided/) })
  const unknown = await adminHere(home, 'excess', 'return', '--id', '999', ...why)
  expect(unknown).toMatchObject({ code: 1, stderr: expect.stringMatching(/There is no excess 999/) })
  expect((await adminHere(home, 'excess', 'list')).stdout).toBe('No excess waits for a decision.\n')
})
