import { afterAll, beforeAll, expect, test } from 'vitest'
import { accounts, clearingAccount, ledgerSteps } from '../../src/ledger/accounts.ts'
import { providers } from '../../src/shared/providers.ts'
import { createTestDatabase, type TestDatabase } from '../kit/database.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database.drop())

test('the chart of accounts is the one that the database knows', async () => {
  const { rows } = await database.owner.query<{ account: string }>(
    'SELECT unnest(enum_range(NULL::ledger_account))::text AS account',
  )
  expect(rows.map(({ account }) => account)).toEqual(Object.keys(accounts))
})

test('the steps of the ledger are those that the database knows', async () => {
  const { rows } = await database.owner.query<{ step: string }>(
    'SELECT unnest(enum_range(NULL::ledger_step))::text AS step',
  )
  expect(rows.map(({ step }) => step).toSorted()).toEqual(Object.keys(ledgerSteps).toSorted())
})

test('each operator has its own clearing account, the same here and there', async () => {
  const { rows } = await database.owner.query<{ provider: string; account: string }>(
    `SELECT provider::text, clearing_account(provider)::text AS account
     FROM unnest(enum_range(NULL::provider)) AS provider`,
  )
  expect(rows.map(({ provider }) => provider)).toEqual([...providers])
  const known = Object.fromEntries(rows.map(({ provider, account }) => [provider, account]))
  expect(known).toEqual(clearingAccount)
  expect(new Set(Object.values(clearingAccount)).size).toBe(providers.length)
})
