import { z } from 'zod'
import type { Context } from '../../context.ts'
import type { Span } from '../../ledger/statement.ts'
import { invalidInput, readInput } from '../../shared/input.ts'
import { time, timeUntil } from '../../shared/time.ts'

/** The time span of a statement, which leaves out the moment `to`. */
export const spanInput = z.object({ from: time, to: timeUntil.nullish() })

/** Checks the time span of a statement; without an end, it ends now. @throws DomainError INVALID_INPUT */
export function checkSpan(ctx: Context, raw: z.input<typeof spanInput>): Span {
  const { from, to } = readInput(spanInput, raw)
  if (to && to < from) throw invalidInput([{ field: 'to', message: 'must not be earlier than `from`' }])
  if (!to && from > ctx.clock.now())
    throw invalidInput([{ field: 'from', message: 'must not be in the future unless `to` is given' }])
  return { from, to: to ?? null }
}
