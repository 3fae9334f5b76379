import { z } from 'zod'
import type { Pool } from 'pg'
import type { Context } from '../../context.ts'
import { sqlFunction, sqlType } from '../../database/sql-function.ts'
import { mine } from '../../identity/callers/actor.ts'
import { failureOf, type FailureReason } from '../../operators/failure-reasons.ts'
import { someOf } from '../../shared/filter.ts'
import type { DomainError } from '../../shared/errors.ts'
import { invariant } from '../../shared/invariant.ts'
import { invalidInput, oneOf, provider, readInput } from '../../shared/input.ts'
import type { Xof } from '../../shared/money.ts'
import type { Provider } from '../../shared/providers.ts'
import { time, timeUntil } from '../../shared/time.ts'
import type { PaymentFigures } from './figures.ts'
import { refusingZone, timeZoneName } from '../../shared/time-zone.ts'
import type { TransactionStatus } from '../transactions/states.ts'

/** The kinds of payments that figures tell apart. */
export const paymentKinds = ['pay', 'deposit', 'payout', 'recipient'] as const

/** The lengths of periods, with the most days that one question may span: at most 9,600 periods. */
export const statsPeriods = { hour: 400, day: 4_000, week: 36_500, month: 36_500 } as const

/** The properties by which payments of a period are grouped. */
export const statsProperties = ['operator', 'status', 'type', 'failure'] as const

const dayMs = 24 * 60 * 60 * 1_000
const hourMs = 60 * 60 * 1_000

const paymentStatsInput = z.object({
  from: time,
  to: timeUntil.nullish(),
  groupBy: oneOf(['hour', 'day', 'week', 'month']),
  by: z.array(oneOf(statsProperties)),
  type: someOf(oneOf(paymentKinds)).nullish(),
  paymentMethod: someOf(provider).nullish(),
  timeZone: timeZoneName.nullish(),
})

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

const question = {
  merchant: 'int',
  since: 'timestamptz',
  until: 'timestamptz',
  unit: 'text',
  zone: 'text?',
  groupingBy: 'text[]',
  kinds: sqlType<readonly string[] | null>('payment_kind[]?'),
  methods: sqlType<readonly string[] | null>('provider[]?'),
} as const
const groupColumns = {
  period: sqlType<Date>('timestamptz'),
  kind: sqlType<PaymentGroup['type']>('payment_kind'),
  paymentMethod: 'provider?',
} as const
const paymentStats = sqlFunction('payment_stats', {
  takes: question,
  gives: {
    /** Level 0 is all periods together, 1 a period, 2 a group of a period. */
    level: 'int',
    zoneUsed: 'text',
    period: groupColumns.period,
    stop: sqlType<Date>('timestamptz'),
    kind: groupColumns.kind,
    paymentMethod: groupColumns.paymentMethod,
    status: sqlType<PaymentGroup['status']>('transaction_status'),
    failureReason: 'text?',
    n: 'bigint',
    amount: sqlType<Xof>('bigint'),
    settledAmount: sqlType<Xof>('bigint'),
    succeeded: 'bigint',
    ended: 'bigint',
  },
})
const paymentTimes = sqlFunction('payment_times', {
  takes: question,
  gives: { ...groupColumns, medianMs: 'bigint', p95Ms: 'bigint' },
})
type Row = Awaited<ReturnType<typeof paymentStats>>[number]
type Times = Awaited<ReturnType<typeof paymentTimes>>

/**
 * Reads the figures of the caller's payments, by period of creation. The first period is the one that holds
 * `from`, the last one holds the moment before `to`; all count whole.
 * @param raw.to the end, which is left out; by default now
 * @param raw.timeZone by default that of the settings
 * @param withTimes whether to read the times to settle, which takes longer
 * @throws DomainError INVALID_INPUT, UNAUTHENTICATED
 */
export async function readPaymentStats(
  ctx: Context,
  raw: z.input<typeof paymentStatsInput>,
  withTimes: boolean,
): Promise<PaymentStats> {
  const input = readInput(paymentStatsInput, raw)
  const { from } = input
  const to = input.to ?? ctx.clock.now()
  checkRange(from, to, input.groupBy)
  const asked = {
    merchant: mine(ctx).merchantId,
    since: from,
    until: to,
    unit: input.groupBy,
    zone: input.timeZone,
    groupingBy: input.by,
    kinds: input.type ?? null,
    methods: input.paymentMethod ?? null,
  }
  const { merchantPool } = ctx.database
  const [rows, times] = await refusingZone(() =>
    Promise.all([paymentStats(merchantPool, asked), withTimes ? paymentTimes(merchantPool, asked) : []]),
  )
  return statsOf(rows, times)
}

/**
 * The years that figures have. Choice: before them some time zones differ from UTC by minutes, and after them
 * the end of a period cannot be written.
 */
const statsYears = { first: 2_000, last: 9_998 }

function checkRange(from: Date, to: Date, groupBy: keyof typeof statsPeriods): void {
  const { first, last } = statsYears
  const years = `must be in the years ${first} to ${last}, in UTC`
  if (from.getUTCFullYear() < first) throw invalidInput([{ field: 'from', message: years }])
  if (to.getTime() > Date.UTC(last + 1, 0)) throw invalidInput([{ field: 'to', message: years }])
  const daysMax = statsPeriods[groupBy]
  if (to <= from) throw invalidInput([{ field: 'to', message: 'must be later than `from`' }])
  if (to.getTime() - from.getTime() <= daysMax * dayMs) return
  const message = `must be at most ${daysMax} days after \`from\` when it is grouped by ${groupBy}`
  throw invalidInput([{ field: 'to', message }])
}

/** @throws DomainError INVALID_INPUT where a period does not begin at a whole hour in UTC */
function statsOf(rows: readonly Row[], times: Times): PaymentStats {
  const timesOf = new Map(times.map((row) => [keyOf(row), row]))
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
    if (level > 0 && (start.getTime() % hourMs !== 0 || end.getTime() % hourMs !== 0)) throw notByHours()
    if (level === 1) buckets.set(start.getTime(), { start, end, ...figuresOf(row), groups: [] })
    if (level === 2) buckets.get(start.getTime())?.groups.push({ ...figuresOf(row), ...groupOf(row) })
  }
  return { timeZone: all.zoneUsed, total: figuresOf(all), buckets: [...buckets.values()] }
}

function groupOf({ kind, paymentMethod, status, failureReason }: Row) {
  return { type: kind, paymentMethod, status, failure: failureOf(failureReason || null) }
}

/** A group by neither kind nor operator has the times of its period. */
function keyOf({ period, kind, paymentMethod }: Pick<Row, keyof typeof groupColumns>): string {
  return [period?.getTime(), kind, paymentMethod].join()
}

function notByHours(): DomainError {
  const message = 'must be a time zone that differs from UTC by whole hours'
  return invalidInput([{ field: 'timeZone', message }])
}

const compactDisbursementChanges = sqlFunction('compact_disbursement_changes', {
  takes: { take: 'int' },
  gives: 'int',
})

/** Adds pending changes of payouts and recipients to the figures. @returns whether there may be more */
export async function compactDisbursements(pool: Pool, take: number): Promise<boolean> {
  return (await compactDisbursementChanges(pool, { take })) === take
}
