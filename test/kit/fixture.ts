import { afterAll, expect } from 'vitest'
import { proveLedger } from './ledger.ts'
import { scenarios } from '../../src/simulator/scenarios.ts'
import { fundMerchant } from '../../src/resources/merchants/fund.ts'
import { type Provider, providers } from '../../src/shared/providers.ts'
import { jobBounds } from '../../src/resources/jobs.ts'
import { claimBounds } from '../../src/requests/store.ts'
import { nextCustomer } from './customer-numbers.ts'
import { useBounds } from './use-bounds.ts'
import { type RestAnswer, startTestApp, type TestApp, type TestMerchant } from './app.ts'

/** A request as the simulator recorded it. */
export interface OperatorRequestSeen {
  at: string
  operator: Provider
  method: string
  path: string
  headers: Record<string, string>
  body: string
  status: number | null
  correlationId: string
}

/** One movement of money under one of our references, by the operator's book. */
interface Execution {
  operator: Provider
  kind: string
  count: number
  amount: string
  reversed: string
}

/**
 * Row counts of the tables that a request writes. Rows that operators' reports add later (credits, outcomes)
 * are not counted.
 */
export type RowCounts = Record<'transaction' | 'ledger_entry' | 'event' | 'operator_request', number>

/** The service, used as a merchant, an operator and a bookkeeper. */
export interface Fixture extends TestApp {
  /** `POST /pay`: 5,000 XOF by OperatorA from a customer that never answers, unless `body` says otherwise. */
  pay(merchant: Pick<TestMerchant, 'token'>, body?: object): Promise<RestAnswer>
  /** `POST /pay` that must succeed. @returns the envelope's data */
  paid(merchant: Pick<TestMerchant, 'token'>, body?: object): Promise<Record<string, unknown>>
  /**
   * `POST /deposit`, or another path: 1,000 XOF by OperatorA to a customer that confirms at once, unless
   * `body` says otherwise.
   */
  deposit(
    merchant: Pick<TestMerchant, 'token'>,
    body?: object,
    base?: string,
    path?: string,
  ): Promise<RestAnswer>
  /** Gives a merchant money to pay out. */
  fund(merchant: TestMerchant, amount: number): Promise<void>
  /** `GET /transactions/{id}`: the record of a payment. */
  record(merchant: TestMerchant, id: unknown): Promise<RestAnswer['body']>
  statusOf(merchant: TestMerchant, id: unknown): Promise<string>
  /** `GET /payment/status/{reference}`, as a customer's browser asks. */
  check(reference: unknown, query?: string): Promise<RestAnswer>
  available(merchant: TestMerchant): Promise<number>
  rowCounts(): Promise<RowCounts>
  /** The types of a payment's events, in order. */
  eventsOf(id: unknown): Promise<string[]>
  /** The amounts of a payment's credits. */
  creditsOf(id: unknown): Promise<number[]>
  /** The requests to operators with `mark` in the body or headers, oldest first. */
  seen(mark: unknown): Promise<OperatorRequestSeen[]>
  /** The name by which the operator knows a payment. */
  correlationOf(id: unknown): Promise<string>
  /** How many callbacks about a payment were recorded. */
  callbacksOf(id: unknown): Promise<number>
  /** The movements of money for a payment in the operator's own book. */
  executionsOf(id: unknown): Promise<Execution[]>
  /** Answers as the customer, at the telephone or on the checkout page. */
  answer(id: unknown, how: 'confirm' | 'decline'): Promise<void>
  outage(operator: Provider, mode: 'refuse' | 'hang' | '5xx' | 'none'): Promise<void>
  /** Moves the time of the service and of the operators. */
  advance(ms: number): Promise<void>
  /** How far the operators' time was moved. */
  operatorsOffsetMs(): Promise<number>
}

export const second = 1_000
export const minute = 60 * second
export const hour = 60 * minute

/** Scenarios without a parameter: the digits of the parameter tell customers apart too. */
const withoutParameter = new Set(
  scenarios.filter(({ parameter }) => parameter === null).map(({ code }) => code),
)

/**
 * A test number `+223 70 SS PP xx` that no other test of the file uses, as long as the hundred numbers of a
 * scenario and parameter last.
 */
export function customer(scenario: string, parameter = '00'): string {
  const kind = withoutParameter.has(scenario) ? scenario : `${scenario}${parameter}`
  return `+22370${kind}${nextCustomer(kind, 6 - kind.length)}`
}

/** Asks each operator, all at the same time. @returns the answers by operator */
export async function perOperator<T>(
  ask: (operator: Provider) => Promise<T>,
  among: readonly Provider[] = providers,
): Promise<Record<string, T>> {
  return Object.fromEntries(
    await Promise.all(among.map(async (operator) => [operator, await ask(operator)] as const)),
  )
}

/** The same answer for each operator. */
export function each<T>(answer: T, among: readonly Provider[] = providers): Record<string, T> {
  return Object.fromEntries(among.map((operator) => [operator, answer]))
}

/**
 * Starts the service for one file of tests; at the end the ledger must add up. Due requests and payouts are
 * looked for, and operators are asked, more often than in production: tests wait for them.
 */
export async function openFixture(environment: Record<string, string> = {}): Promise<Fixture> {
  useBounds(claimBounds, { operatorQueryIntervalMs: 100 })
  useBounds(jobBounds, { resolveEveryMs: 200, payoutsDueEveryMs: 200 })
  const service = await startTestApp(environment)
  afterAll(async () => {
    const problems = await proveLedger(service.database.database.pool)
    await service.close()
    expect(problems).toEqual([])
  })
  return { ...service, ...merchantSide(service), ...bookSide(service), ...operatorSide(service) }
}

function merchantSide(service: TestApp) {
  const rest = (...call: Parameters<typeof service.rest>) => service.rest(...call)
  const pay = (merchant: Pick<TestMerchant, 'token'>, body: object = {}) =>
    rest('POST', '/pay', {
      token: merchant.token,
      body: {
        amount: 5_000,
        payment_method: 'OperatorA',
        ...('customer_phone' in body ? {} : { customer_phone: customer('11') }),
        ...body,
      },
    })
  const record = async (merchant: TestMerchant, id: unknown) => {
    const { status, body } = await rest('GET', `/transactions/${String(id)}`, { token: merchant.token })
    expect(status).toBe(200)
    return body['data']
  }
  return {
    pay,
    record,
    async deposit(
      merchant: Pick<TestMerchant, 'token'>,
      body: object = {},
      base = service.url,
      path = '/deposit',
    ) {
      const asked = { amount: 1_000, payment_method: 'OperatorA', customer_phone: customer('00'), ...body }
      const response = await fetch(`${base}/merchant/api${path}`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${merchant.token}` },
        body: JSON.stringify(asked),
      })
      return { status: response.status, headers: response.headers, body: await response.json() }
    },
    async fund({ merchantId }: TestMerchant, amount: number) {
      await fundMerchant(service.app.services, merchantId, { amount })
    },
    async paid(merchant: Pick<TestMerchant, 'token'>, body: object = {}) {
      const answer = await pay(merchant, body)
      expect(answer.body).toMatchObject({ success: true })
      expect(answer.status).toBe(202)
      return answer.body['data'] as Record<string, unknown>
    },
    statusOf: async (merchant: TestMerchant, id: unknown) => (await record(merchant, id))['status'] as string,
    check: (reference: unknown, query = '') =>
      rest('GET', `/payment/status/${encodeURIComponent(String(reference))}${query}`),
    async available(merchant: TestMerchant) {
      const { body } = await rest('GET', '/balance', { token: merchant.token })
      return body['data'].available as number
    },
  }
}

function bookSide({ database: { owner } }: TestApp) {
  return {
    async rowCounts() {
      const { rows } = await owner.query<RowCounts>(`SELECT
        (SELECT count(*)::int FROM transaction) AS transaction,
        (SELECT count(*)::int FROM ledger_entry WHERE step IN ('fund', 'reserve')) AS ledger_entry,
        (SELECT count(*)::int FROM event
          WHERE type IN ('payment_pending', 'deposit_processing')) AS event,
        (SELECT count(*)::int FROM operator_request) AS operator_request`)
      return rows[0] ?? { transaction: -1, ledger_entry: -1, event: -1, operator_request: -1 }
    },
    async eventsOf(id: unknown) {
      const { rows } = await owner.query<{ type: string }>(
        `SELECT type FROM event WHERE data->>'transaction_id' = $1 ORDER BY id`,
        [String(id)],
      )
      return rows.map(({ type }) => type)
    },
    async creditsOf(id: unknown) {
      const { rows } = await owner.query<{ amount: number }>(
        `SELECT amount::int FROM ledger_entry WHERE origin = 'transaction:' || $1 AND step = 'credit'`,
        [String(id)],
      )
      return rows.map(({ amount }) => amount)
    },
    async callbacksOf(id: unknown) {
      const { rows } = await owner.query<{ count: number }>(
        `SELECT count(*)::int AS count FROM operator_callback c JOIN operator_request r ON r.id = c.request_id
         WHERE r.transaction_id = $1`,
        [id],
      )
      return rows[0]?.count ?? -1
    },
    async correlationOf(id: unknown) {
      const { rows } = await owner.query<{ name: string }>(
        'SELECT correlation_id AS name FROM operator_request WHERE transaction_id = $1',
        [String(id)],
      )
      expect(rows).toHaveLength(1)
      return rows[0]?.name ?? ''
    },
  }
}

function operatorSide(service: TestApp) {
  const { simulator, controlToken, app } = service
  async function control(method: string, path: string, body?: object): Promise<unknown> {
    const response = await fetch(`${simulator.url}/_sim/${path}`, {
      method,
      headers: { 'x-control-token': controlToken, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    })
    expect({ path, status: response.status }).toEqual({ path, status: 200 })
    return response.json()
  }
  const books = bookSide(service)
  return {
    async seen(mark: unknown) {
      const all = (await control('GET', 'requests')) as OperatorRequestSeen[]
      return all.filter((request) => JSON.stringify(request).includes(String(mark)))
    },
    async executionsOf(id: unknown) {
      const name = await books.correlationOf(id)
      const { executions } = (await control('GET', `invariants?clientRef=${name}`)) as {
        executions: (Execution & { client_reference: string; correlation_ids: string[] })[]
      }
      return executions.map(({ client_reference: _name, correlation_ids: _ids, ...row }) => row)
    },
    async answer(id: unknown, how: 'confirm' | 'decline') {
      const name = await books.correlationOf(id)
      const [operation] = (await control('GET', `operations?clientRef=${name}`)) as { id: string }[]
      await control('POST', `transactions/${operation?.id ?? 'unknown'}/${how}`)
    },
    async outage(operator: Provider, mode: string) {
      await control('POST', 'outage', { operator, mode })
    },
    async advance(ms: number) {
      await app.services.sandbox?.advanceClock(ms)
    },
    async operatorsOffsetMs() {
      return ((await control('GET', 'clock')) as { offset_ms: number }).offset_ms
    },
  }
}
