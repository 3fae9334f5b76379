import fc from 'fast-check'
import { afterAll, expect } from 'vitest'
import { Pool } from 'undici'
import { proveLedger } from '../kit/ledger.ts'
import { fundMerchant } from '../../src/resources/merchants/fund.ts'
import { limits } from '../../src/shared/limits.ts'
import { eventually } from '../kit/eventually.ts'
import { makeMember, type TestMember } from '../kit/members.ts'
import { isSoak, strength } from '../kit/strength.ts'
import { seed } from '../kit/seeds.ts'
import { startTestApp, type TestApp, type TestMerchant } from '../kit/app.ts'

/** A request as it goes onto the wire. */
export interface Shot {
  method: string
  /** Below the service's address, with its query. */
  path: string
  headers: Record<string, string>
  body: Buffer | null
}

export interface Hit {
  shot: Shot
  status: number
  headers: Record<string, string | string[] | undefined>
  text: string
}

// A failure is shown as it came: to make it smaller takes longer than the whole file.
fc.configureGlobal({ endOnFailure: true })

/** How many odd inputs each route and field gets: `FUZZ_RUNS=20000` for a long night. */
export const runs = Number(process.env['FUZZ_RUNS'] ?? strength(40, 1_000))
/** So many at once, */
const volley = 20
/** and after so many the tables are read. */
const salvo = Math.min(runs, 5 * volley)

export interface FuzzTarget extends TestApp {
  shop: TestMerchant
  /** A signed-in member of the shop. */
  person: TestMember
  /** The ids of two more keys of the shop. */
  otherKeys: number[]
  fire(shot: Shot): Promise<Hit>
}

/** The service with doors wide open, so that every input reaches what is behind them. */
export async function openTarget(): Promise<FuzzTarget> {
  // Each caller has an address of its own, and no limit of attempts.
  const service = await startTestApp({
    TRUSTED_PROXIES: '127.0.0.1',
    RATE_LIMIT_WRITES: '100000',
    RATE_LIMIT_READS: '100000',
    RATE_LIMIT_OBJECTS: '100000000',
  })
  const pool = new Pool(service.url, { connections: volley, headersTimeout: 20_000, bodyTimeout: 20_000 })
  afterAll(async () => {
    const problems = await proveLedger(service.database.database.pool)
    await pool.close()
    await service.close()
    expect(problems).toEqual([])
  })
  service.app.services.requestLimits.takeAccessChange = () => Promise.resolve()
  // Its own key is none that an input names by chance.
  await service.database.owner.query("SELECT setval('api_key_id_seq', $1)", [firstKeyId - 1])
  const shop = await service.merchant()
  await fundMerchant(service.app.services, shop.merchantId, { amount: limits.fundAmountMaxXof })
  const person = await makeMember(service.app.services.access, shop.merchantId, 'owner')
  for (let order = 1; order <= ordersCount; order += 1) {
    const asked = { amount: 1_000_000, customer_phone: '70000001', payment_method: 'OperatorA' }
    const body = { ...asked, reference: `order-${order}` }
    await service.rest('POST', '/pay', { token: shop.token, body })
  }
  for (const name of ['Awa', 'Moussa', 'Fatou']) {
    const body = { name, account: '70000001', payment_method: 'OperatorA' }
    await service.rest('POST', '/beneficiaries', { token: shop.token, body })
  }
  for (const title of ['Riz', 'Mil', 'Fonio'])
    await service.rest('POST', '/payment-links', { token: shop.token, body: { title } })
  for (const name of ['Till', 'Web']) {
    const made = `mutation { createApiKey(input: { name: "${name}", scopes: [PAY] }) { __typename } }`
    await service.graphql(made, {}, shop.token)
  }
  const keys = await service.database.owner.query<{ id: number }>(
    "SELECT id FROM api_key WHERE name IN ('Till', 'Web') ORDER BY id",
  )
  await eventually(async () => {
    const paid = await service.database.owner.query("SELECT FROM transaction WHERE status = 'success'")
    expect(paid.rowCount).toBe(ordersCount)
  })
  const hooks = { url: 'http://127.0.0.1:1/', events: ['payment_received'] }
  await service.rest('POST', '/webhooks', { token: shop.token, body: hooks })
  // Payouts for a later day stay unsent.
  const tomorrow = new Date(Date.now() + 86_400_000)
  for (let n = 1; n <= waitingPayouts; n += 1) {
    const body = { amount: 1_000, beneficiary_id: 1, scheduled_at: tomorrow }
    await service.rest('POST', '/payouts', { token: shop.token, body })
  }
  for (let n = 1; n <= waitingBatches; n += 1) {
    const recipients = [{ name: 'Awa', account: '70000001', amount: 1_000 }]
    await service.rest('POST', '/bulk/batches', { token: shop.token, body: { recipients } })
  }
  return {
    ...service,
    shop,
    person,
    otherKeys: keys.rows.map(({ id }) => id),
    async fire(shot) {
      const { method, path, headers, body } = shot
      const answer = await pool.request({ method, path, headers, body })
      return { shot, status: answer.statusCode, headers: answer.headers, text: await answer.body.text() }
    },
  }
}

/** Paid, and so to be given back. */
export const ordersCount = 60

/**
 * The endpoint that stands there at first, and stands there again before each volley, alone and not active: a
 * merchant has five at most.
 */
async function restoreWebhooks({ database: { owner } }: FuzzTarget): Promise<void> {
  await owner.query(
    `UPDATE webhook_endpoint SET slot = NULL, removed_at = now(), is_active = false, due_at = NULL
     WHERE slot IS NOT NULL`,
  )
  await owner.query(
    "UPDATE webhook_endpoint SET slot = 1, removed_at = NULL, url = 'http://127.0.0.1:1/' WHERE id = 1",
  )
}

/** The key of the merchant. */
const firstKeyId = 100_001

/** Payouts that stand there at first, with the ids from 1 on. */
export const waitingPayouts = 60

/** Drafts of batches that stand there at first, with the ids from 1 on. */
export const waitingBatches = 60

/** The verdict on an answer. */
export interface FuzzVerdict {
  /** The input got past every check. */
  accepted: boolean
  wrote?: Partial<Counts>
}

/**
 * Sends a plain input, which must pass every check, then odd inputs in parallel groups. Checks each answer.
 * After several groups the tables must hold the earlier rows and the rows that the answers named, and
 * nothing else.
 * @returns how many inputs passed every check: inputs that never do would prove nothing
 */
export async function sendInputs(
  target: FuzzTarget,
  { plain, odd }: { plain: Shot; odd: fc.Arbitrary<Shot> },
  judge: (hit: Hit) => FuzzVerdict,
): Promise<number> {
  let accepted = 0
  let stands = await takeCensus(target)
  async function send(all: readonly Shot[]): Promise<void> {
    let said = stands
    try {
      for (let from = 0; from < all.length; from += volley) {
        await target.database.owner.query('TRUNCATE rate_limit, sign_in_wait')
        await restoreWebhooks(target)
        const fired = all.slice(from, from + volley).map((shot) => target.fire(shot))
        const verdicts = (await Promise.all(fired)).map(judge)
        accepted += verdicts.filter((verdict) => verdict.accepted).length
        said = verdicts.reduce((sum, { wrote = {} }) => add(sum, wrote), said)
      }
    } finally {
      stands = await takeCensus(target)
    }
    expect(stands).toEqual(said)
  }
  await send([plain])
  if (accepted === 0) throw new Error(`refused: ${(await target.fire(plain)).text}`)
  const property = fc.asyncProperty(fc.array(odd, { minLength: salvo, maxLength: salvo }), send)
  const search = (round: number) =>
    fc.assert(property, { numRuns: Math.ceil(runs / salvo), seed: seed + round })
  await search(0)
  for (let round = 1; round < roundsMax && accepted <= reached; round += 1) await search(round)
  return accepted
}

/** Counts of the rows in the tables. */
export interface Census {
  merchants: number
  keyVersions: number
  payments: number
  deposits: number
  checks: number
  funds: number
  requests: number
  pendingEvents: number
  beneficiaries: number
  payouts: number
  batches: number
  links: number
  webhooks: number
  members: number
  sessions: number
  /** Answers that are kept under an `Idempotency-Key`. */
  keys: number
  /** All that stands in every table but those of `moving`: no request that is fired here writes there. */
  elsewhere: string
}

/**
 * Tables that have a count of their own in the census, or that the service writes by itself. A new table is
 * none of them.
 */
const moving = [
  'merchant',
  'transaction',
  'ledger_entry',
  'event',
  'operator_reference',
  'operator_request',
  'request_due',
  'recipient_call',
  'api_key',
  'session',
  'idempotency_key',
  'operator_exchange',
  'operator_callback',
  'merchant_balance',
  'balance_snapshot',
  'event_log_position',
  'rate_limit',
  'rate_limit_window',
  'transaction_block',
  'transaction_block_count',
  'transaction_hour',
  'transaction_count',
  'transaction_count_change',
  'disbursement_change',
  'payment_figure',
  'settle_time',
  'link_figure',
  'audit_pass',
  'audit_point',
  'audit_proven',
  'audit_entry',
  'audit_head',
  'audit_email',
  'audit_link',
  'audit_unchained',
  'credential_change',
  'deposit_approval',
  'settings_change',
  'sandbox_clock',
  'beneficiary',
  'payout',
  'payout_count',
  'batch',
  'batch_recipient',
  'payment_link',
  'webhook_endpoint',
  'webhook_delivery',
  'webhook_attempt',
  'sign_in_address',
  'sign_in_wait',
  'team_member',
  'member_secret',
  'mail',
]

/** Counts of the rows that callers can create. */
export type Counts = Omit<Census, 'elsewhere'>

function add({ elsewhere, ...sum }: Census, more: Partial<Counts>): Census {
  const names = Object.keys(sum) as (keyof Counts)[]
  const counts = Object.fromEntries(names.map((name) => [name, sum[name] + (more[name] ?? 0)]))
  return { ...(counts as unknown as Counts), elsewhere }
}

async function takeCensus(target: FuzzTarget): Promise<Census> {
  const { rows } = await target.database.owner.query<Census>(
    `SELECT (SELECT count(*)::int FROM merchant) AS merchants,
       (SELECT sum(version)::int FROM api_key) AS "keyVersions",
       (SELECT count(*)::int FROM transaction WHERE transaction_type = 'pay') AS payments,
       (SELECT count(*)::int FROM transaction WHERE transaction_type = 'balance_check') AS checks,
       (SELECT count(*)::int FROM transaction WHERE transaction_type = 'deposit') AS deposits,
       (SELECT count(*)::int FROM ledger_entry WHERE step = 'fund') AS funds,
       (SELECT count(*)::int FROM operator_request WHERE transaction_id IS NOT NULL) AS requests,
       (SELECT count(*)::int FROM event WHERE type = 'payment_pending') AS "pendingEvents",
       (SELECT count(*)::int FROM beneficiary) AS beneficiaries,
       (SELECT count(*)::int FROM payout) AS payouts,
       (SELECT count(*)::int FROM batch) AS batches,
       (SELECT count(*)::int FROM payment_link) AS links,
       (SELECT count(*)::int FROM webhook_endpoint) AS webhooks,
       (SELECT count(*)::int FROM team_member) AS members,
       (SELECT count(*)::int FROM session) AS sessions,
       (SELECT count(*)::int FROM idempotency_key) AS keys,
       (SELECT string_agg(relname || ' ' || md5(query_to_xml('SELECT * FROM ' || quote_ident(relname) ||
           ' t ORDER BY t::text', true, false, '')::text), ', ' ORDER BY relname)
         FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'
           AND relname <> ALL ($1)) AS elsewhere`,
    [moving],
  )
  const [row] = rows
  if (!row) throw new Error('no census')
  return row
}

/** The rows that one accepted payment writes. */
export const aPayment: Partial<Counts> = { payments: 1, requests: 1, pendingEvents: 1 }

/** The rows that one accepted deposit or refund writes. */
export const aDeposit: Partial<Counts> = { deposits: 1, requests: 1 }

/** Words that only internals contain. */
const internals = /\n\s+at |node_modules|\.ts:\d|prisma|postgres|violates|syntax error at|duplicate key/i

/** Checks every answer: it shows no internals. */
export function expectNoInternals({ status, text }: Hit): void {
  if (status >= 500 || internals.test(text)) throw new Error(`answered with ${status}: ${text}`)
}

/** One of these tokens comes with a request. */
export function authorization(token: string): fc.Arbitrary<Record<string, string>> {
  return fc.oneof(
    { weight: 12, arbitrary: fc.constant({ authorization: `Bearer ${token}` }) },
    { weight: 1, arbitrary: fc.constant({}) },
    {
      weight: 1,
      arbitrary: fc.constantFrom(
        { authorization: 'Bearer' },
        { authorization: `Bearer ${token}x` },
        { authorization: 'Basic YTpi' },
        { authorization: 'Bearer eyJhbGciOiJub25lIn0.e30.' },
      ),
    },
  )
}

/** An address of the documentation's networks: every request has its own. */
export const address = fc.tuple(fc.nat(255), fc.nat(255), fc.nat(255)).map(([a, b, c]) => `10.${a}.${b}.${c}`)

/**
 * More inputs than this must pass every check: the plain one does with certainty, and in `npm run soak` one
 * in a hundred of the odd ones by chance.
 */
export const reached = isSoak ? Math.max(1, runs / 100) : 0

/** So few inputs may all be refused. Then more are fired, up to a thousand. */
const roundsMax = Math.ceil(1_000 / runs)
