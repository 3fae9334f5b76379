import { mine } from '../../identity/callers/actor.ts'
import { recordChange, recordingOf } from '../../audit/audit-log.ts'
import { sandboxOf } from '../../context.ts'
import { builder } from '../../graphql/builder.ts'
import { invalidInput } from '../../shared/input.ts'
import { fundMerchant } from '../merchants/fund.ts'

/** The longest step of the sandbox clock: longer than schedules, which reach 366 days ahead. */
const clockStepMs = 400 * 24 * 3_600_000

/**
 * The end of the sandbox clock. Choice: a thousand years before the last time that can be read, so that every
 * time which follows from the clock can be read too.
 */
const clockEndMs = Date.UTC(9_000, 0)

builder.mutationFields((t) => ({
  sandboxAdvanceClock: t.field({
    type: 'DateTime',
    nullable: true,
    scope: 'authenticated',
    description:
      'Moves the clock of the sandbox forward and answers its new time. Expiry, schedules and ' +
      'simulated customers follow; lifetimes of tokens do not.',
    args: {
      by: t.arg({
        type: 'Duration',
        description: 'The time to move forward, for example PT25H for 25 hours.',
        required: true,
      }),
    },
    resolve: (_root, { by }, ctx) => {
      if (by <= 0 || by > clockStepMs)
        throw invalidInput([{ field: 'by', message: 'must be more than zero and at most 400 days' }])
      if (ctx.clock.now().getTime() + by > clockEndMs)
        throw invalidInput([{ field: 'by', message: 'must not move the clock beyond the year 8999' }])
      return sandboxOf(ctx).advanceClock(by, ctx.idempotentOperation?.id, (tx, before, after) =>
        recordChange(tx, recordingOf(ctx, 'sandboxAdvanceClock'), {
          target: ['sandbox', 'clock'],
          before: { ahead_ms: before },
          after: { ahead_ms: after },
        }),
      )
    },
  }),
  sandboxFund: t.field({
    type: 'Amount',
    nullable: true,
    scope: 'authenticated',
    description:
      "Adds money to the merchant's balance in the sandbox. Returns the new available amount " +
      'in whole XOF.',
    args: {
      amount: t.arg({ type: 'Amount', description: 'The amount to add, in whole XOF.', required: true }),
    },
    resolve: async (_root, { amount }, ctx) => {
      sandboxOf(ctx)
      const options = { id: ctx.idempotentOperation?.id, recording: recordingOf(ctx, 'sandboxFund') }
      return (await fundMerchant(ctx, mine(ctx).merchantId, { amount }, options)).available
    },
  }),
}))
