import { z } from 'zod'
import { type Context, loader } from '../../context.ts'
import type { DomainError } from '../../shared/errors.ts'
import { someOf } from '../../shared/filter.ts'
import { invalidInput, oneOf, provider, readInput } from '../../shared/input.ts'
import { time, timeUntil } from '../../shared/time.ts'
import { timeZoneName } from '../../shared/time-zone.ts'

/** The kinds of payments that figures tell apart. */
export const paymentKinds = ['pay', 'deposit', 'payout', 'recipient'] as const

/** The properties by which payments of a period are grouped. */
export const statsProperties = ['operator', 'status', 'type', 'failure'] as const

const dayMs = 24 * 60 * 60 * 1_000

/** The periods of figures, with the shortest length of each. */
export const statsPeriods = { hour: dayMs / 24, day: dayMs, week: 7 * dayMs, month: 28 * dayMs } as const

const paymentStatsInput = z.object({
  from: time,
  to: timeUntil.nullish(),
  groupBy: oneOf(['hour', 'day', 'week', 'month']),
  by: z.array(oneOf(statsProperties)).transform((names) => [...new Set(names)]),
  type: someOf(oneOf(paymentKinds)).nullish(),
  paymentMethod: someOf(provider).nullish(),
  timeZone: timeZoneName.nullish(),
})
export type StatsInput = z.input<typeof paymentStatsInput>

/** A question for figures that was read and checked. */
export interface StatsQuestion extends Omit<z.output<typeof paymentStatsInput>, 'to'> {
  to: Date
  /** Whether `from` or `to` is a day of the time zone, written here as one in UTC. */
  isDay: { from: boolean; to: boolean }
}

/**
 * Reads a question for figures.
 * @param now the end where the question has none
 * @throws DomainError INVALID_INPUT
 */
export function readQuestion(raw: StatsInput, now: Date): StatsQuestion {
  const input = readInput(paymentStatsInput, raw)
  const to = input.to ?? now
  checkYears(input.from, to)
  if (to <= input.from) throw outOfOrder(raw)
  if (input.groupBy === 'hour' && to.getTime() - input.from.getTime() > hourDaysMax * dayMs)
    throw refused('to', `must be at most ${hourDaysMax} days after \`from\` when it is grouped by hour`)
  return { ...input, to, isDay: { from: isDay(raw.from), to: isDay(raw.to) } }
}

function isDay(given: unknown): boolean {
  return typeof given === 'string' && /^[\d-]+$/.test(given)
}

/**
 * The years that figures have. Choice: before them some time zones differ from UTC by minutes, and after them
 * the end of a period cannot be written.
 */
const statsYears = { first: 2_000, last: 9_998 }
const hourDaysMax = 400

function checkYears(from: Date, to: Date): void {
  const { first, last } = statsYears
  const years = `must be in the years ${first} to ${last}, in UTC`
  if (from.getUTCFullYear() < first) throw refused('from', years)
  if (to.getTime() > Date.UTC(last + 1, 0)) throw refused('to', years)
}

/** Makes the refusal of a period that ends before it begins. */
export function outOfOrder({ to }: StatsInput): DomainError {
  return to
    ? refused('to', 'must be later than `from`')
    : refused('from', 'must be in the past, or needs a `to`')
}

/**
 * The most periods of all questions of an operation together; a period counts once more for each property by
 * which it is divided. Choice: 400 days by the hour, which the database adds up within a second.
 */
const periodsMax = 10_000

/**
 * Answers the questions of an operation one after the other, so that a document with many keeps no more than
 * one connection.
 * @param answer reads one answer
 * @throws DomainError INVALID_INPUT where the questions have too many periods
 */
export function inTurn<Answer>(
  ctx: Context,
  question: StatsQuestion,
  answer: (question: StatsQuestion) => Promise<Answer>,
): Promise<Answer> {
  const read = async (questions: readonly StatsQuestion[]) => {
    const answers: (Answer | Error)[] = []
    let periods = 0
    for (const asked of questions) {
      periods += periodsOf(asked) * (1 + asked.by.length)
      if (periods > periodsMax) answers.push(refused('to', tooMany))
      else answers.push(await answer(asked).catch((error: Error) => error))
    }
    return answers
  }
  return loader(ctx, 'payment stats', read).load(question)
}

const tooMany =
  `must be nearer to \`from\`: all questions of an operation have at most ${periodsMax} periods, ` +
  'each counted once more for each property of `by`'

function periodsOf({ from, to, groupBy }: StatsQuestion): number {
  return Math.floor((to.getTime() - from.getTime()) / statsPeriods[groupBy]) + 1
}

function refused(field: string, message: string): DomainError {
  return invalidInput([{ field, message }])
}
