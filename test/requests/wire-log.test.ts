import { expect, test } from 'vitest'
import type { Services } from '../../src/context.ts'
import { startJobs } from '../../src/jobs/schedule.ts'
import { verifyLedger } from '../../src/ledger/verify.ts'
import { recordAndAsk } from '../../src/requests/record-callback.ts'
import { openWireLogSweep } from '../../src/requests/wire-log.ts'
import { serviceJobs } from '../../src/resources/jobs.ts'
import { createLog } from '../../src/telemetry/log.ts'
import { eventually } from '../kit/eventually.ts'
import { openCollection, settleMany } from '../kit/money.ts'
import {
  answers,
  type Opened,
  script,
  scripted,
  stands,
  useScriptedOperator,
} from '../kit/scripted-operator.ts'

// Exchanges and callbacks are deleted as the owner's settings say.

useScriptedOperator()

/** A collection that was paid and is asked about no more. */
async function paid(): Promise<Opened> {
  const opened = await openCollection(scripted.pool, scripted.merchant)
  await settleMany(scripted.pool, [{ id: opened.transactionId, to: 'success' }])
  await scripted.db.owner.query('UPDATE operator_request SET next_check_at = NULL WHERE id = $1', [
    opened.requestId,
  ])
  return opened
}

/** Stores an exchange and a callback of a request, so many days old. */
async function store({ requestId }: Pick<Opened, 'requestId'>, days: number): Promise<void> {
  await scripted.db.owner.query(
    `INSERT INTO operator_exchange (merchant_id, request_id, operation, method, path, request_body,
       response_body, duration_ms, at)
     VALUES ($1, $2, 'collect', 'POST', '/', '', '', 1, now() - $3 * interval '1 day')`,
    [scripted.merchant.merchantId, requestId, days],
  )
  await scripted.db.owner.query(
    `INSERT INTO operator_callback (merchant_id, request_id, provider, dedupe_key, body, received_at)
     VALUES ($1, $2, 'OperatorA', $2::bigint || ':' || $3::int, '{}', now() - $3::int * interval '1 day')`,
    [scripted.merchant.merchantId, requestId, days],
  )
}

/** The ages of what is left of some requests, in days. */
async function left(
  ...opened: Pick<Opened, 'requestId'>[]
): Promise<[exchanges: number[], callbacks: number[]]> {
  const read = async (table: string, column: string) => {
    const { rows } = await scripted.db.owner.query<{ days: number }>(
      `SELECT round(extract(epoch FROM now() - ${column}) / 86400)::int AS days FROM ${table}
       WHERE request_id = ANY ($1) ORDER BY id`,
      [opened.map(({ requestId }) => requestId)],
    )
    return rows.map(({ days }) => days)
  }
  return [await read('operator_exchange', 'at'), await read('operator_callback', 'received_at')]
}

// The first test, because younger records before these would end its small steps.
test('a clean-up in steps of two passes by what is open, and finds it when it has ended', async () => {
  const open = await openCollection(scripted.pool, scripted.merchant)
  const ended = await paid()
  for (const days of [400, 300, 200, 100]) for (const each of [open, ended]) await store(each, days)
  const sweep = openWireLogSweep('exchanges')
  const pass = async () => {
    while (await sweep(scripted.pool, 90, 2));
  }
  await pass()
  expect((await left(ended))[0]).toEqual([])
  expect((await left(open))[0]).toEqual([400, 300, 200, 100])
  await settleMany(scripted.pool, [{ id: open.transactionId, to: 'expired' }])
  await scripted.db.owner.query('UPDATE operator_request SET next_check_at = NULL WHERE id = $1', [
    open.requestId,
  ])
  await pass()
  expect((await left(open))[0]).toEqual([])
})

test('the jobs delete what is older than the settings, and nothing of an open request', async () => {
  const ended = await paid()
  const open = await openCollection(scripted.pool, scripted.merchant)
  const watched = await paid()
  await scripted.db.owner.query('UPDATE operator_request SET next_check_at = now() WHERE id = $1', [
    watched.requestId,
  ])
  for (const days of [500, 91, 61, 31, 1]) for (const each of [open, watched, ended]) await store(each, days)
  const config = { retention: { exchangeDays: 90, callbackDays: 60 } }
  const played = { database: scripted.db.database, config, operators: { list: () => [] } }
  const jobs = serviceJobs(played as unknown as Services).filter(({ name }) =>
    ['exchanges.sweep', 'callbacks.sweep'].includes(name),
  )
  expect(jobs).toHaveLength(2)
  const schedule = startJobs(jobs, createLog('silent'))
  await eventually(async () =>
    expect(await left(ended)).toEqual([
      [61, 31, 1],
      [31, 1],
    ]),
  )
  await schedule.close()
  const all = [500, 91, 61, 31, 1]
  expect(await left(open)).toEqual([all, all])
  expect(await left(watched)).toEqual([all, all])
  expect(await verifyLedger(scripted.db.owner)).toEqual([])
})

test('without a setting nothing is deleted', async () => {
  const ended = await paid()
  await store(ended, 5_000)
  for (const log of ['exchanges', 'callbacks'] as const)
    expect(await openWireLogSweep(log)(scripted.pool, 0)).toBe(false)
  expect(await left(ended)).toEqual([[5_000], [5_000]])
})

test('the owner of the database cannot delete what is young or open', async () => {
  const ended = await paid()
  const open = await openCollection(scripted.pool, scripted.merchant)
  await store(ended, 29)
  await store(open, 400)
  for (const table of ['operator_exchange', 'operator_callback'])
    for (const { requestId } of [ended, open]) {
      const gone = scripted.db.owner.query(`DELETE FROM ${table} WHERE request_id = $1`, [requestId])
      await expect(gone).rejects.toMatchObject({ code: '23000' })
    }
})

test('a callback that comes again after its record was deleted moves no money', async () => {
  const opened = await paid()
  await store(opened, 100)
  while (await openWireLogSweep('callbacks')(scripted.pool, 90));
  expect((await left(opened))[1]).toEqual([])
  script.query = [answers.settled]
  const again = {
    provider: 'OperatorA',
    dedupeKey: `${opened.requestId}:100`,
    body: '{}',
    says: 'refused',
    requestId: opened.requestId,
    correlationId: null,
  } as const
  await recordAndAsk(scripted.services, again)
  const { inFlight } = scripted.services
  while (inFlight.size > 0) await Promise.allSettled(inFlight.values())
  expect(await stands(opened)).toMatchObject({ status: 'success' })
  expect(await verifyLedger(scripted.db.owner)).toEqual([])
})
