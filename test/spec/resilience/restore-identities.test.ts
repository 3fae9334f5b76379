import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { scopes } from '../../../src/identity/callers/scopes.ts'
import { haltPaymentsOut, resumePaymentsOut } from '../../../src/ledger/payments-out.ts'
import { readStatements } from '../../../src/resources/recovery/statements.ts'
import { startSimulator } from '../../../src/simulator/simulator.ts'
import { type Provider, providers } from '../../../src/shared/providers.ts'
import type { SignedInMerchant } from '../../kit/merchants.ts'
import { balanceOf, fundedMerchant } from '../../kit/money.ts'
import { openBatch } from '../../kit/money-bulk.ts'
import { openPayout } from '../../kit/money-out.ts'
import { controlToken, startTestApp, type TestApp } from '../../kit/app.ts'
import { createTestDatabase } from '../../kit/database.ts'
import { operatorCalls } from '../../kit/operator-calls.ts'
import { eventually } from '../../kit/eventually.ts'
import { customer } from '../../kit/fixture.ts'

// A restore: the database is put back, the rows after the backup are lost, and merchants repeat their
// requests under the same references. The operators still know everything.

/** The secret that `makeMerchant` signs its keys with. */
const environment = { SECRET_KEY: '\u0007'.repeat(32) }
const begun = new Date()
const simulator = await startSimulator({ port: 0, controlToken })
afterAll(() => simulator.close())

interface Shop extends SignedInMerchant {
  /** Made before the backup, sent after it. */
  waiting: bigint[]
  batch: number
}

/** A database as the backup has it: a merchant, four payouts and a batch that were not sent yet. */
async function backup(): Promise<{ name: string; shop: Shop }> {
  const { database, owner, name } = await createTestDatabase()
  const { pool } = database
  const merchant = await fundedMerchant(pool, 10_000_000n)
  const waiting: bigint[] = []
  for (const provider of providers)
    waiting.push(await openPayout(pool, merchant, { provider, phone: customer('00') }))
  const recipients = providers.map((provider) => ({ provider, account: customer('00') }))
  const batch = await openBatch(pool, merchant, recipients)
  await Promise.all([database.close(), owner.end()])
  return { name, shop: { ...merchant, waiting, batch } }
}

const restored = (template: string) => startTestApp(environment, { simulator, template })

async function tokenOf(app: TestApp, { key, secret }: SignedInMerchant): Promise<string> {
  const headers = { 'X-API-Key': key, 'X-API-Secret': secret.reveal() }
  const { body } = await app.rest('POST', '/auth', { headers, body: { scopes } })
  return body.data.token as string
}

/** A request of a merchant: the same before and after the restore. */
interface MerchantRequest {
  path: string
  body: Record<string, unknown>
  headers?: Record<string, string>
  settled: string
}

let requestSets = 0

/** By reference, and without one by `Idempotency-Key`. */
function requestsOf(provider: Provider): MerchantRequest[] {
  requestSets += 1
  const to = { payment_method: provider, amount: 1_000 }
  const key = (name: string) => ({ 'Idempotency-Key': `${name}-${provider}-${requestSets}` })
  const named = (name: string) => ({ reference: `${name}-${provider}-${requestSets}` })
  const phone = () => customer('00')
  return [
    // A hosted checkout makes a session for each request: the operator knows only the paid ones.
    ...(provider === 'OperatorB'
      ? []
      : [
          { path: '/pay', body: { ...to, ...named('order'), customer_phone: phone() }, settled: 'success' },
          { path: '/pay', body: { ...to, customer_phone: phone() }, headers: key('pay'), settled: 'success' },
        ]),
    { path: '/deposit', body: { ...to, ...named('back'), customer_phone: phone() }, settled: 'success' },
    { path: '/deposit', body: { ...to, customer_phone: phone() }, headers: key('dep'), settled: 'success' },
    { path: '/payouts', body: { ...to, ...named('rent'), destination_phone: phone() }, settled: 'completed' },
    {
      path: '/payouts',
      body: { ...to, destination_phone: phone() },
      headers: key('po'),
      settled: 'completed',
    },
  ]
}

async function ask(app: TestApp, token: string, { path, body, headers = {} }: MerchantRequest) {
  const answer = await app.rest('POST', path, { token, body, headers })
  expect({ path, status: answer.status, message: answer.body.message }).toMatchObject({
    status: expect.toSatisfy((status: number) => [200, 201, 202].includes(status)),
  })
  return answer.body.data
}

/** A batch of four recipients, one per operator, made by key alone and processed. */
async function payBatch(app: TestApp, token: string, recipients: object[], key: string): Promise<number> {
  const { body } = await app.rest('POST', '/bulk/batches', {
    token,
    body: { recipients },
    headers: { 'Idempotency-Key': key },
  })
  const { status } = await app.rest('POST', `/bulk/batches/${body.data.id}/process`, { token })
  expect(status).toBe(202)
  return body.data.id as number
}

/** Waits until all payments of the merchant are final. */
async function untilSettled({ database: { owner } }: TestApp): Promise<void> {
  await eventually(async () => {
    const { rows } = await owner.query<{ status: string; n: number }>(
      `SELECT status, count(*)::int AS n FROM (
         SELECT status::text FROM transaction UNION ALL SELECT status::text FROM payout
         UNION ALL SELECT status::text FROM batch_recipient) AS s
       WHERE status NOT IN ('success', 'completed') GROUP BY status`,
    )
    expect(rows).toEqual([])
  })
}

async function identities({ database: { owner } }: TestApp): Promise<string[]> {
  const { rows } = await owner.query<{ id: string }>('SELECT correlation_id AS id FROM operator_request')
  return rows.map(({ id }) => id).toSorted()
}

/** The executions by the operators' own books: count, amount and client reference. */
async function executed() {
  const answer = await fetch(`${simulator.url}/_sim/invariants`, {
    headers: { 'x-control-token': controlToken },
  })
  const { executions } = (await answer.json()) as {
    executions: { operator: Provider; kind: string; client_reference: string; count: number }[]
  }
  return executions
}

async function setFault(effect: string, method: 'POST' | 'DELETE'): Promise<void> {
  const body = method === 'POST' ? JSON.stringify({ effect, match: {} }) : null
  const answer = await fetch(`${simulator.url}/_sim/faults`, {
    method,
    headers: { 'x-control-token': controlToken, 'content-type': 'application/json' },
    body,
  })
  expect(answer.ok).toBe(true)
}

describe('after a restore the repeated requests', () => {
  let template: string
  let shop: Shop
  const asked = providers.flatMap(requestsOf)
  const recipients = providers.map((payment_method) => ({
    name: 'Awa',
    account: customer('00'),
    amount: 1_000,
    payment_method,
  }))
  let before: string[]

  async function live(app: TestApp): Promise<void> {
    const token = await tokenOf(app, shop)
    for (const request of asked) await ask(app, token, request)
    await payBatch(app, token, recipients, 'salaries')
    await untilSettled(app)
  }

  beforeAll(async () => {
    ;({ name: template, shop } = await backup())
    const lost = await restored(template)
    await live(lost)
    before = await identities(lost)
    await lost.close()
  })

  test('have the same identities, and are executed once by each operator', async () => {
    expect(before).toHaveLength(asked.length + 3 * providers.length)
    const app = await restored(template)
    await live(app)
    expect(await identities(app)).toEqual(before)
    const executions = await executed()
    expect(executions.filter(({ count }) => count !== 1)).toEqual([])
    expect(executions).toHaveLength(before.length)
    const { available, reserved } = await balanceOf(app.database.database.pool, shop.merchantId)
    const sign = asked.map(({ path }): bigint => (path === '/pay' ? 1_000n : -1_000n))
    const spent = 3n * BigInt(providers.length) * 1_000n
    expect([available, reserved]).toEqual([10_000_000n + sign.reduce((sum, n) => sum + n) - spent, 0n])
    await app.close()
  })
})

describe('a payment that an operator executed before a restore', () => {
  /** As `restore accept` does: records the payments that the operators have and this database lacks. */
  async function recordOrphans(app: TestApp): Promise<void> {
    const { operators, database, clock } = app.app.services
    for await (const { provider, day, lines } of readStatements(operators, clock, begun)) {
      for (const line of lines.filter(({ type }) => type === 'collect' || type === 'disburse')) {
        await database.pool.query(
          `INSERT INTO operator_orphan (provider, kind, correlation_id, operator_ref, client_ref, amount,
             counterparty, posted_at, statement_day)
           VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
          [
            provider,
            line.type,
            line.correlationId ?? null,
            line.operatorRef,
            line.clientRef ?? null,
            line.amount,
            line.counterparty ?? null,
            line.postedAt,
            day,
          ],
        )
      }
    }
  }

  test('is queried and never sent, also where no operator recognises duplicates', async () => {
    const { name, shop } = await backup()
    const asked = providers.flatMap(requestsOf)
    const page = {
      path: '/pay',
      body: {
        payment_method: 'OperatorB',
        amount: 1_000,
        reference: `page-${requestSets}`,
        customer_phone: customer('00'),
      },
      settled: 'success',
    }
    const all = [...asked, page]
    const live = async (app: TestApp) => {
      const token = await tokenOf(app, shop)
      for (const request of all) await ask(app, token, request)
    }
    const lost = await restored(name)
    await live(lost)
    await untilSettled(lost)
    const before = await identities(lost)
    await lost.close()

    // A restored database starts with money out halted: payments that wait in the backup do not leave yet.
    const copy = await createTestDatabase({ template: name })
    await haltPaymentsOut(copy.database.pool, 'restored')
    await Promise.all([copy.database.close(), copy.owner.end()])
    const app = await restored(copy.name)
    await recordOrphans(app)
    await setFault('no_dedupe', 'POST')
    const calls = (await moneyCalls()).length
    await resumePaymentsOut(app.database.database.pool, 'accepted')
    await live(app)
    await untilSettled(app)
    expect((await moneyCalls()).slice(calls)).toEqual([])
    await setFault('no_dedupe', 'DELETE')
    expect(await identities(app)).toEqual(before)
    expect((await executed()).filter(({ count }) => count !== 1)).toEqual([])
    await app.close()
  })
})

async function moneyCalls() {
  const calls = await operatorCalls(simulator.url, controlToken)
  return calls.filter(({ op }) => op === 'collect' || op === 'disburse')
}
