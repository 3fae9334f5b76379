import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type AcceptedRestore, acceptRestore } from '../../../src/resources/recovery/accept.ts'
import { listOrphans, resolveOrphan } from '../../../src/resources/recovery/orphans.ts'
import { eventually } from '../../kit/eventually.ts'
import { controlToken, startTestApp, type TestApp, type TestMerchant } from '../../kit/app.ts'

// Accepting a restore asks the operators for statements and compares them; the simulator plays the operators.

let app: TestApp
let shop: TestMerchant
beforeAll(async () => {
  app = await startTestApp()
  shop = await app.merchant()
})
afterAll(() => app.close())

const control = (method: string, path: string, body?: object) =>
  fetch(`${app.simulator.url}/_sim/${path}`, {
    method,
    headers: { 'x-control-token': controlToken, 'content-type': 'application/json' },
    ...(body && { body: JSON.stringify(body) }),
  })

async function declare(): Promise<void> {
  const { pool } = app.app.services.database
  await pool.query(`SELECT begin_epoch((SELECT epoch FROM installation), 'a test')`)
  await pool.query('UPDATE database_epoch SET keys_handled_at = now()')
}

function accept(patienceMs = 30_000): Promise<AcceptedRestore> {
  const { database, operators, clock } = app.app.services
  const { pool } = database
  return acceptRestore({
    pool,
    operators,
    clock,
    keepKeys: false,
    leftOut: null,
    patienceMs,
    progress: () => {},
  })
}

async function halted(): Promise<boolean> {
  const { rowCount } = await app.database.owner.query('SELECT FROM payments_out_halt WHERE lifted_at IS NULL')
  return rowCount === 1
}

async function pay(reference: string, phone: string): Promise<void> {
  const body = { amount: 5_000, customer_phone: phone, payment_method: 'OperatorA', reference }
  const { status } = await app.rest('POST', '/pay', { token: shop.token, body })
  expect(status).toBe(202)
}

/** A payment that the operator made in our name, and that no record of ours has. */
async function payOutside(identity: string): Promise<void> {
  const operator = app.app.services.operators.find('OperatorA')
  const outcome = await operator?.disburse(
    {
      handle: { correlationId: identity, clientRef: identity },
      amount: 3_000n,
      callbackUrl: `${app.url}/nowhere`,
      attempt: 1,
      payee: '+22370000001',
    },
    { deadline: new Date(Date.now() + 20_000), priority: 'background', record: () => {} },
  )
  expect(['accepted', 'settled']).toContain(outcome?.kind)
}

test('without a restore there is nothing to accept', async () => {
  await expect(accept()).rejects.toMatchObject({ code: 'STATE_CONFLICT' })
})

test('an operator that gives no statement keeps the halt; then each orphan is named, once', async () => {
  const identity = randomUUID()
  await payOutside(identity)
  await pay('known', '70000001')
  // Its callback is lost, and it is queried later: open here, and executed there.
  await pay('open', '70300001')
  await eventually(async () => {
    const answer = await control('GET', 'invariants')
    const { executions, pending } = (await answer.json()) as { executions: unknown[]; pending: number }
    expect([executions.length, pending]).toEqual([3, 0])
  })
  // A payment that was settled before the restore proves the operator.
  await eventually(async () => {
    const { body } = await app.rest('GET', '/payment/status/known')
    expect(body).toMatchObject({ state: 'success' })
  })
  await declare()
  const fault = {
    match: { operator: 'OperatorC', op: 'statement' },
    effect: 'status',
    params: { status: 500 },
  }
  expect((await control('POST', 'faults', fault)).status).toBe(201)
  await expect(accept()).rejects.toThrow(/^OperatorC gives no statement of \d{4}-\d\d-\d\d/)
  expect(await halted()).toBe(true)

  await control('DELETE', 'faults')
  const accepted = await accept()
  expect(accepted.orphans).toEqual([
    expect.objectContaining({
      provider: 'OperatorA',
      kind: 'disburse',
      amount: 3_000n,
      correlationId: identity,
    }),
  ])
  expect(accepted.reconciled.known + accepted.reconciled.openRequestIds.length).toBe(2)
  expect(await halted()).toBe(false)
  for (const reference of ['known', 'open']) {
    const { body } = await app.rest('GET', `/payment/status/${reference}`)
    expect(body.state).toBe('success')
  }
  const { rows } = await app.database.owner.query(
    'SELECT accepted_at IS NOT NULL AS accepted, outcome FROM database_epoch',
  )
  expect(rows).toEqual([{ accepted: true, outcome: expect.objectContaining({ orphans: 1 }) }])

  const { pool } = app.app.services.database
  await resolveOrphan(pool, accepted.orphans[0]?.id ?? 0n, 'given back by hand')
  expect(await listOrphans(pool)).toEqual([])
})

test('a payment open here and executed there is waited for, and never sent again', async () => {
  await pay('waited', '70000001')
  await eventually(async () => {
    const { body } = await app.rest('GET', '/payment/status/waited')
    expect(body.state).toBe('success')
  })
  // As in a backup taken before the answer: the prompt is not known to have left.
  await app.database.owner.query(
    `SET session_replication_role = replica;
     UPDATE operator_request SET state = 'unsent', next_check_at = NULL
     WHERE transaction_id = (SELECT id FROM transaction WHERE reference = 'waited');
     SET session_replication_role = origin`,
  )
  await declare()
  await app.database.owner.query(
    `CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS
       $$ BEGIN NEW.next_check_at := NULL; RETURN NEW; END $$;
     CREATE TRIGGER hold BEFORE UPDATE ON operator_request FOR EACH ROW EXECUTE FUNCTION hold()`,
  )
  await expect(accept(300)).rejects.toThrow(/^1 payments that operators executed are not settled yet/)
  expect(await halted()).toBe(true)
  const { rows } = await app.database.owner.query(
    `SELECT state FROM operator_request
     WHERE transaction_id = (SELECT id FROM transaction WHERE reference = 'waited')`,
  )
  expect(rows).toEqual([{ state: 'accepted' }])
  await app.database.owner.query('DROP TRIGGER hold ON operator_request')
})
