import type { Pool } from 'pg'
import type { Context } from '../../context.ts'
import { sqlFunction, sqlType } from '../../database/sql-function.ts'
import { mine } from '../../identity/callers/actor.ts'
import { failureOf, type FailureReason } from '../../operators/failure-reasons.ts'
import { invariant } from '../../shared/invariant.ts'
import type { Xof } from '../../shared/money.ts'
import type { Provider } from '../../shared/providers.ts'
import { refusingZone, wholeHours, zoneRefused } from '../../shared/time-zone.ts'
import type { TransactionStatus } from '../transactions/states.ts'
import type { PaymentFigures } from './figures.ts'
import { inTurn, outOfOrder, type paymentKinds, readQuestion, type StatsInput } from './question.ts'

const hourMs = 60 * 60 * 1_000

/** The payments of a period that share the asked properties; the other properties are null. */
export interface PaymentGroup extends PaymentFigures {
  type: (typeof paymentKinds)[number] | null
  paymentMethod: Provider | null
  /** `success` where a payout is completed. */
  status: TransactionStatus | null
  failure: FailureReason | null
}

export interface StatsBucket extends PaymentFigures {
  start: Date
  /** The first moment of the next period. */
  end: Date
  groups: readonly PaymentGroup[]
}

export interface PaymentStats {
  timeZone: string
  total: PaymentFigures
  buckets: readonly StatsBucket[]
}

const paymentStats = sqlFunction('payment_stats', {
  takes: {
    merchant: 'int',
    since: 'timestamptz',
    until: 'timestamptz',
    sinceDay: 'boolean',
    untilDay: 'boolean',
    unit: 'text',
    zone: 'text?',
    groupingBy: 'text[]',
    kinds: sqlType<readonly string[] | null>('payment_kind[]?'),
    methods: sqlType<readonly string[] | null>('provider[]?'),
    withTimes: 'boolean',
  },
  gives: {
    /**
     * Level 0 is all periods together, 1 a period, 2 a group of a period. Level 3 has the times of one of
     * these. Columns that a level does not have are null.
     */
    level: 'int',
    zoneUsed: 'text',
    period: sqlType<Date>('timestamptz'),
    stop: sqlType<Date>('timestamptz'),
    kind: sqlType<PaymentGroup['type']>('payment_kind'),
    paymentMethod: 'provider?',
    status: sqlType<PaymentGroup['status']>('transaction_status'),
    failureReason: 'text?',
    n: 'bigint',
    amount: sqlType<Xof>('bigint'),
    settledAmount: sqlType<Xof>('bigint'),
    succeeded: 'bigint',
    ended: 'bigint',
    medianMs: 'bigint?',
    p95Ms: 'bigint?',
  },
})
type Row = Awaited<ReturnType<typeof paymentStats>>[number]

/**
 * Reads the figures of the caller's payments, by period of creation. The first period is the one that holds
 * `from`, the last one holds the moment before `to`; all count whole.
 * @param raw.to the end, which is left out; by default now
 * @param raw.timeZone by default that of the settings
 * @param withTimes whether to read the times to settle, which takes longer
 * @throws DomainError INVALID_INPUT, UNAUTHENTICATED
 */
export function readPaymentStats(ctx: Context, raw: StatsInput, withTimes: boolean): Promise<PaymentStats> {
  const { merchantId } = mine(ctx)
  return inTurn(ctx, readQuestion(raw, ctx.clock.now()), async (asked) => {
    const rows = await refusingZone(() =>
      paymentStats(ctx.database.merchantPool, {
        merchant: merchantId,
        since: asked.from,
        until: asked.to,
        sinceDay: asked.isDay.from,
        untilDay: asked.isDay.to,
        unit: asked.groupBy,
        zone: asked.timeZone,
        groupingBy: asked.by,
        kinds: asked.type ?? null,
        methods: asked.paymentMethod ?? null,
        withTimes,
      }),
    )
    // A day may have begun in UTC and not yet in the time zone.
    if (rows.length === 1) throw outOfOrder(raw)
    return statsOf(rows)
  })
}

/** @throws DomainError INVALID_INPUT where a period does not begin at a whole hour in UTC */
function statsOf(rows: readonly Row[]): PaymentStats {
  const timesOf = new Map(rows.flatMap((row) => (row.level === 3 ? [[keyOf(row), row]] : [])))
  const figuresOf = (row: Row): PaymentFigures => {
    // Only payments that succeeded have a time, and they have no reason of a failure.
    const isTimed = (row.status ?? 'success') === 'success' && !row.failureReason
    const { medianMs = null, p95Ms = null } = (isTimed && timesOf.get(keyOf(row))) || {}
    const { n: count, amount, settledAmount, succeeded, ended } = row
    return { count, amount, settledAmount, succeeded, ended, medianMs, p95Ms }
  }
  const [all] = rows
  invariant(all?.level === 0, 'the first row of figures has the sums of all')
  const buckets = new Map<number, StatsBucket & { groups: PaymentGroup[] }>()
  for (const row of rows) {
    const { level, period: start, stop: end } = row
    if (level === 3) break
    if (level > 0 && (start.getTime() % hourMs !== 0 || end.getTime() % hourMs !== 0))
      throw zoneRefused(wholeHours)
    if (level === 1) buckets.set(start.getTime(), { start, end, ...figuresOf(row), groups: [] })
    if (level === 2) buckets.get(start.getTime())?.groups.push({ ...figuresOf(row), ...groupOf(row) })
  }
  return { timeZone: all.zoneUsed, total: figuresOf(all), buckets: [...buckets.values()] }
}

function groupOf({ kind, paymentMethod, status, failureReason }: Row) {
  return { type: kind, paymentMethod, status, failure: failureOf(failureReason || null) }
}

/** A group by neither kind nor operator has the times of its period. */
function keyOf({ period, kind, paymentMethod }: Row): string {
  return [period?.getTime(), kind, paymentMethod].join()
}

const compactDisbursementChanges = sqlFunction('compact_disbursement_changes', {
  takes: { take: 'int' },
  gives: 'int',
})

/** Adds pending changes of payouts and recipients to the figures. @returns whether there may be more */
export async function compactDisbursements(pool: Pool, take: number): Promise<boolean> {
  return (await compactDisbursementChanges(pool, { take })) === take
}
