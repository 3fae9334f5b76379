import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import { scopes } from '../../src/identity/callers/scopes.ts'
import { verifyLedger } from '../../src/ledger/verify.ts'
import { limits } from '../../src/shared/limits.ts'
import { providers } from '../../src/shared/providers.ts'
import { mostOpen, operatorCalls } from '../kit/operator-calls.ts'
import { balanceOf, fundedMerchant } from '../kit/money.ts'
import { call, type Home, newHome, type Running, signIn, startOptions, startProgram } from '../kit/program.ts'
import { type CrashOperators, operatorsControlToken } from './operator.ts'
import { randomFrom } from '../kit/random.ts'
import { pick } from './plan.ts'

export interface BulkRunOptions {
  databaseUrl: string
  /** The same database, with the rights of its owner. */
  owner: pg.Pool
  operators: CrashOperators
  recipients: number
  /** How often the sending process is killed (-9), evenly over the run. */
  kills: number
  /** Whether the service runs with the short waits of `short-limits.ts`. */
  isShort: boolean
  say(line: string): void
}

export interface BulkRun {
  /**
   * Sentences about each thing that is wrong; empty where each recipient was paid exactly once or refused.
   */
  violations: string[]
  counts: Readonly<Record<string, number>>
  paid: number
  /** Operator calls beyond the first of their recipient. */
  resends: number
  /**
   * The most operator calls that were open at the same moment: for recipients that were sent once, and for
   * all.
   * A callback that ends a recipient frees its slot before the call is answered; a resend may take that slot.
   */
  atOnce: number
  allAtOnce: number
  /** From `process` to the end of the batch, kills and starts included. */
  ms: number
  /** The highest memory use of any process of the service, in MB. */
  peakMb: number
}

/**
 * Every scenario of a disbursement that ends. The payee is paid at once, soon, late, or less than asked;
 * gives the money back; is refused; gets a lost, late or wrong answer. Our own float is short once or for a
 * day (51, 02), or the operator is never reached (27). No operator recognises a repeated request here
 * (`operator.ts`).
 */
const payees: readonly { value: string; weight: number }[] = [
  { value: '0000', weight: 590 },
  { value: '0001', weight: 60 },
  { value: '0100', weight: 20 },
  { value: '0200', weight: 5 },
  { value: '0400', weight: 20 },
  { value: '0300', weight: 60 },
  { value: '0500', weight: 30 },
  { value: '0600', weight: 3 },
  { value: '0700', weight: 3 },
  { value: '1001', weight: 2 },
  { value: '1201', weight: 2 },
  { value: '2000', weight: 30 },
  { value: '2201', weight: 10 },
  { value: '2300', weight: 30 },
  { value: '2401', weight: 20 },
  { value: '2501', weight: 5 },
  { value: '2601', weight: 10 },
  { value: '2700', weight: 2 },
  { value: '3000', weight: 20 },
  { value: '3103', weight: 20 },
  { value: '3200', weight: 10 },
  { value: '3300', weight: 15 },
  { value: '3400', weight: 10 },
  { value: '3500', weight: 10 },
  { value: '4005', weight: 8 },
  { value: '4140', weight: 20 },
  { value: '5101', weight: 5 },
]
/**
 * Payees that the operator answers after every deadline. They are few, because each occupies a slot of its
 * batch for that long.
 */
const slow = (isShort: boolean) => [{ value: isShort ? '2103' : '2118', weight: isShort ? 5 : 2 }]

const endMaxMs = 15 * 60_000

/**
 * Pays one batch over all four operators by two processes of the service over one database, kills the sending
 * process again and again, and compares the result of each recipient with the operators' own book.
 */
export async function crashBulk(options: BulkRunOptions): Promise<BulkRun> {
  const { owner, operators, recipients, kills } = options
  const nodes = createNodes(options)
  try {
    await operators.misbehave(false)
    await Promise.all([nodes.start(0), nodes.start(1)])
    const people = recipientsOf(options)
    const funds = people.reduce((sum, { amount }) => sum + amount, 0) + 1_000
    const merchant = await fundedMerchant(owner, BigInt(funds))
    const tokens = await signIn(nodes.home(0), merchant.key, merchant.secret.reveal(), scopes)
    const made = await call(nodes.home(0), 'POST', '/bulk/batches', tokens, { recipients: people })
    const id: unknown = made.body['data']?.id
    if (typeof id !== 'number') throw new Error(`no batch: ${JSON.stringify(made).slice(0, 500)}`)
    const begun = performance.now()
    const answers = await Promise.all(
      [0, 1].map((n) => call(nodes.home(n), 'POST', `/bulk/batches/${id}/process`, tokens)),
    )
    const isOnce = [202, 409].every((code) => answers.some(({ status }) => status === code))
    const violations = isOnce ? [] : [`processed twice at once: ${JSON.stringify(answers)}`]
    const wait = watchOf(options, async (minutes) => {
      const document = `mutation { sandboxAdvanceClock(by: "PT${minutes}M") }`
      await fetch(`${nodes.home(0).url}/graphql`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...tokens },
        body: JSON.stringify({ query: document }),
      })
    })
    let victim = 0
    for (let kill = 1; kill <= kills; kill += 1) {
      const ended = await wait((recipients * kill) / (kills + 1), endedOf, id)
      const sender = await senderOf(operators)
      // The process that was killed last sends no more.
      victim = sender === null ? 1 - victim : nodes.at(sender)
      options.say(
        `${Math.round(performance.now() - begun)} ms: ${ended} ended, process ${victim + 1} is killed`,
      )
      await nodes.kill(victim)
      await nodes.start(victim)
    }
    await wait(recipients, endedOf, id)
    const givenBack = people.filter(({ account }) => account.startsWith('+2237040'))
    await wait(givenBack.length, returnedOf, id)
    const ms = performance.now() - begun
    const found = await inspect(options, id, { merchantId: merchant.merchantId, funds })
    const summary = (await call(nodes.home(0), 'GET', `/bulk/batches/${id}`, tokens)).body['data']
    const { success = 0, failed = 0 } = found.counts
    if (
      summary.succeeded_count !== success ||
      summary.failed_count !== failed ||
      summary.paid_amount !== found.paid
    )
      found.violations.push(`its summary says ${JSON.stringify(summary)}`)
    return { ...found, violations: [...violations, ...found.violations], ms, peakMb: nodes.peakMb() }
  } finally {
    await nodes.close()
  }
}

/**
 * Makes the same recipients for the same count, with at least one of each scenario where the count allows it.
 */
function recipientsOf({ recipients, isShort }: BulkRunOptions) {
  const random = randomFrom(recipients)
  const mix = [...payees, ...slow(isShort)].map(({ value, weight }) => ({ value, weight }))
  const every = Math.max(1, Math.floor(recipients / mix.length))
  return Array.from({ length: recipients }, (_, n) => {
    const scenario = (n % every === 0 && mix[n / every]?.value) || pick(random, mix)
    return {
      name: `Awa ${n}`,
      account: `+22370${scenario}${String(n % 100).padStart(2, '0')}`,
      amount: 1_000 + (n % 977),
      payment_method: providers[n % providers.length],
    }
  })
}

/** The two processes of the service; they share the secret under which tests create merchants. */
function createNodes({ databaseUrl, operators, isShort }: BulkRunOptions) {
  const nodes: { home: Home; running: Running | null }[] = []
  let peakKb = 0
  const at = (n: number) => {
    const node = nodes[n]
    if (!node) throw new Error(`there is no process ${n}`)
    return node
  }
  const look = ({ running }: { running: Running | null }) => {
    if (!running?.child.pid) return
    const said = readFileSync(`/proc/${running.child.pid}/status`, 'utf8')
    peakKb = Math.max(peakKb, Number(/VmHWM:\s+(\d+) kB/.exec(said)?.[1] ?? 0))
  }
  return {
    home: (n: number) => at(n).home,
    at: (url: string) => nodes.findIndex(({ home }) => new URL(home.url).port === new URL(url).port),
    async start(n: number): Promise<void> {
      nodes[n] ??= {
        home: await newHome({
          DATABASE_URL: databaseUrl,
          OPERATORS_URL: operators.url,
          OPERATORS_CONTROL_TOKEN: operatorsControlToken,
          SECRET_KEY: '\u0007'.repeat(32),
          LOG_LEVEL: 'error',
        }),
        running: null,
      }
      const short = isShort ? ['--import', join(import.meta.dirname, 'short-limits.ts')] : []
      at(n).running = await startProgram(at(n).home, ['node', ...startOptions, ...short, 'src/main.ts'])
    },
    async kill(n: number): Promise<void> {
      look(at(n))
      await at(n).running?.end('SIGKILL')
    },
    peakMb() {
      for (const node of nodes) look(node)
      return Math.round(peakKb / 1_024)
    },
    async close(): Promise<void> {
      await Promise.all(nodes.map(async ({ running }) => running?.end('SIGTERM')))
      for (const { running } of nodes) running?.destroy()
      await Promise.all(nodes.map(({ home }) => home.remove()))
    },
  }
}

/** Finds the process that sends: it names its own address for callbacks to every operator that calls back. */
async function senderOf(operators: CrashOperators): Promise<string | null> {
  const answer = await fetch(`${operators.url}/_sim/requests`, {
    headers: { 'x-control-token': operatorsControlToken },
  })
  const seen = (await answer.json()) as { method: string; headers: Record<string, string> }[]
  const last = seen.findLast(({ method, headers }) => method === 'POST' && headers['x-callback-url'])
  return last?.headers['x-callback-url'] ?? null
}

const endedOf = 'SELECT succeeded_count + failed_count AS n FROM batch WHERE id = $1'
const returnedOf =
  'SELECT count(*)::int AS n FROM batch_recipient WHERE batch_id = $1 AND reversed_at IS NOT NULL'

/**
 * Waits until the query counts that many rows. When the count stands still, moves the time on, each time by
 * eight times as much, because some recipients wait a day.
 */
function watchOf({ owner, isShort }: BulkRunOptions, passTime: (minutes: number) => Promise<void>) {
  return async function wait(count: number, question: string, id: number): Promise<number> {
    let seen = -1
    let since = performance.now()
    let minutes = 2
    for (const deadline = since + endMaxMs; ; await sleep(50)) {
      const { rows } = await owner.query<{ n: number }>(question, [id])
      const { n = 0 } = rows[0] ?? {}
      if (n >= count) return n
      if (n !== seen) {
        since = performance.now()
        minutes = 2
      }
      seen = n
      if (performance.now() - since > (isShort ? 500 : 2_000)) {
        await passTime(minutes)
        since = performance.now()
        minutes = Math.min(8 * minutes, 24 * 60)
      }
      if (performance.now() > deadline) throw new Error(`after ${endMaxMs} ms ${n} of ${count}: ${question}`)
    }
  }
}

interface Row {
  id: bigint
  status: string
  amount: number
  settled: number | null
  reversed: boolean
  operator: string
  identity: string | null
  attempt: number | null
}

/** Compares each recipient with the operators' book, and the batch with its recipients. */
async function inspect(
  { owner, operators }: BulkRunOptions,
  id: number,
  { merchantId, funds }: { merchantId: number; funds: number },
): Promise<Omit<BulkRun, 'ms' | 'peakMb'>> {
  const { rows } = await owner.query<Row>(
    `SELECT r.id, r.status, r.amount::float8 AS amount, r.settled_amount::float8 AS settled,
       r.reversed_at IS NOT NULL AS reversed, r.payment_method AS operator, q.correlation_id AS identity,
       q.attempt
     FROM batch_recipient r LEFT JOIN operator_request q ON q.recipient_id = r.id WHERE r.batch_id = $1`,
    [id],
  )
  const calls = await operatorCalls(operators.url, operatorsControlToken, 'disburse')
  const sentOnce = new Set(rows.map(({ identity, attempt }) => (attempt === 1 ? identity : null)))
  const atOnce = mostOpen(calls, ({ clientReference }) => sentOnce.has(clientReference)).get(true) ?? 0
  const allAtOnce = mostOpen(calls, () => true).get(true) ?? 0
  const book = operators.book()
  const known = new Set(rows.map(({ identity }) => identity))
  const violations = [
    ...rows.flatMap((row) => disagreement(row, book)),
    ...[...book.keys()].flatMap((name) =>
      known.has(name) ? [] : [`${name} belongs to no recipient of this batch`],
    ),
    ...(atOnce > limits.batchInFlightMax ? [`${atOnce} calls were open at once`] : []),
    ...(await operators.problems()),
    ...(await verifyLedger(owner)).map(({ invariant, problem }) => `${invariant}: ${problem}`),
  ]
  const counts: Record<string, number> = {}
  for (const { status } of rows) counts[status] = (counts[status] ?? 0) + 1
  const paid = rows.reduce((sum, { settled }) => sum + (settled ?? 0), 0)
  const returned = rows.reduce((sum, { settled, reversed }) => sum + (reversed ? (settled ?? 0) : 0), 0)
  const theirs = [...book.values()].flat()
  const ofState = (wanted: string) =>
    theirs.reduce((sum, { state, amount }) => sum + (state === wanted ? amount : 0), 0)
  const [kept, back] = [ofState('completed'), ofState('reversed')]
  if (kept + back !== paid || back !== returned)
    violations.push(`the operators paid ${kept} and took ${back} back, we say ${paid}, and ${returned} back`)
  const { available, reserved } = await balanceOf(owner, merchantId)
  if (Number(available) !== funds - paid + returned || reserved !== 0n)
    violations.push(
      `${available} available, ${reserved} reserved, of ${funds}: ${paid} paid, ${returned} back`,
    )
  const events = await owner.query<{ data: Record<string, unknown> }>(
    `SELECT data FROM event WHERE type = 'bulk_pay_done' AND data->>'batch_id' = $1`,
    [id],
  )
  const [done, ...more] = events.rows.map(({ data }) => data)
  if (!done || more.length > 0 || done['paid_amount'] !== paid)
    violations.push(`bulk_pay_done: ${JSON.stringify(events.rows)}`)
  const resends = rows.reduce((total, { attempt }) => total + (attempt ?? 1) - 1, 0)
  return { violations, counts, paid, resends, atOnce, allAtOnce }
}

function disagreement(row: Row, book: ReturnType<CrashOperators['book']>): string[] {
  const executions = (row.identity === null ? null : book.get(row.identity)) ?? []
  const paid = executions.filter(({ state }) => state === 'completed' || state === 'reversed')
  const isOpen = executions.some(({ state }) => state === 'pending')
  const [payment] = paid
  const isRight =
    row.status === 'success'
      ? paid.length === 1 &&
        payment?.amount === row.settled &&
        payment?.operator === row.operator &&
        (payment.state === 'reversed') === row.reversed &&
        !isOpen
      : row.status === 'failed' && paid.length === 0 && !isOpen
  return isRight
    ? []
    : [`recipient ${row.id} is ${row.status}, paid ${row.settled}: ${JSON.stringify(executions)}`]
}
