import type { CallContext } from './operator.ts'

/** Rule 7 of the driver contract: a call that starts later could only make doubt. */
const leastBudgetMs = 500

/** Milliseconds of a call that may be spent on waiting before it must not be sent any more. */
export function spareMs(ctx: CallContext): number {
  return ctx.deadline.getTime() - Date.now() - leastBudgetMs
}

/** By the machine's own clock: the sandbox may move its time, never a timeout. */
export function deadlineIn(ms: number): Date {
  return new Date(Date.now() + ms)
}
