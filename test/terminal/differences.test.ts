import { afterAll, beforeAll, expect, test } from 'vitest'
import { fundedMerchant, openCollection, settleMany } from '../kit/money.ts'
import { openDeposit, settleDeposits } from '../kit/money-out.ts'
import { createTestDatabase, type TestDatabase } from '../kit/database.ts'
import { adminHere } from '../kit/admin.ts'
import { admin, type Home, newHome } from '../kit/program.ts'

// Two people decide on the command line about amounts that operators confirm and that were not asked.
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

test('a difference is listed, proposed, and decided once by another person', async () => {
  const { pool } = db.database
  const merchant = await fundedMerchant(pool, 1_000n)
  const { merchantId } = merchant
  const { transactionId } = await openCollection(pool, merchant)
  await settleMany(pool, [{ id: transactionId, to: 'success', amount: 7_000n }])
  const { transactionId: deposit } = await openDeposit(pool, merchant)
  await settleDeposits(pool, [{ id: deposit, to: 'success', amount: 1n }])

  const listed = await adminHere(home, 'difference', 'list', '--json')
  const { differences } = JSON.parse(listed.stdout)
  expect(differences).toEqual([
    expect.objectContaining({
      merchant_id: merchantId,
      origin: `transaction:${transactionId}`,
      payment_method: 'OperatorA',
      requested_amount: 5_000,
      confirmed_amount: 7_000,
      proposed_by: null,
    }),
    expect.objectContaining({
      origin: `transaction:${deposit}`,
      requested_amount: 1_000,
      confirmed_amount: 1,
    }),
  ])
  const [id, rest] = differences.map((difference: { id: number }) => String(difference.id))
  const words = await adminHere(home, 'difference', 'list')
  expect(words.stdout).toMatch(/requested XOF.5,000, confirmed XOF.7,000/)

  const silent = await adminHere(home, 'difference', 'credit', '--id', id)
  expect(silent).toMatchObject({ code: 1, stderr: expect.stringMatching(/reason/) })
  const why = ['--reason', 'paid twice']
  const proposed = await adminHere(home, 'difference', 'credit', '--id', id, ...why, '--by', 'Moussa')
  expect(proposed).toMatchObject({ code: 0, stdout: expect.stringMatching(/another person must decide/) })
  expect((await adminHere(home, 'difference', 'list')).stdout).toMatch(/; Moussa proposes: credited/)
  const done = await admin(home, 'difference', 'credit', '--id', id, ...why, '--by', 'Awa', '--json')
  expect({ code: done.code, ...JSON.parse(done.stdout) }).toEqual({
    code: 0,
    merchant_id: merchantId,
    origin: `transaction:${transactionId}`,
    amount: 2_000,
    state: 'credited',
  })
  const again = await adminHere(home, 'difference', 'return', '--id', id, ...why)
  expect(again).toMatchObject({ code: 1, stderr: expect.stringMatching(/was already decided/) })
  const unfit = await adminHere(home, 'difference', 'return', '--id', rest, ...why)
  expect(unfit).toMatchObject({ code: 1, stderr: expect.stringMatching(/rest of a payment out/) })
  for (const by of ['Moussa', 'Awa'])
    await adminHere(home, 'difference', 'paid', '--id', rest, ...why, '--by', by)
  const unknown = await adminHere(home, 'difference', 'return', '--id', '999', ...why)
  expect(unknown).toMatchObject({ code: 1, stderr: expect.stringMatching(/There is no difference 999/) })
  const none = (await adminHere(home, 'difference', 'list')).stdout
  expect(none).toBe('No difference waits for a decision.\n')
})
