import { limits } from '../../src/shared/limits.ts'

// Loaded into the service before its own modules (`node --import`): shortens every wait for an operator about
// tenfold, in the same proportions, so that a run between two kills outlasts the longest of them. The limits
// come first, because some modules read them when they are loaded.
Object.assign(limits, {
  collectDeadlineMs: 1_000,
  operatorQueryDeadlineMs: 1_000,
  disburseSyncDeadlineMs: 1_000,
  depositWaitMs: 2_000,
  payoutUnsentForMs: 60_000,
  firstCheckMs: 1_200,
  // The deadline, and 2.5 s in which a call that was broken off may still arrive.
  operatorFenceMs: 4_000,
  resendForMs: 7_000,
  collectionLifetimeMs: 9_000,
  lateCheckMs: 1_000,
  eventPollMs: 300,
} satisfies { [Name in keyof typeof limits]?: number })

const { idempotencyBounds } = await import('../../src/idempotency/idempotency-keys.ts')
const { scheduleBounds } = await import('../../src/requests/schedule.ts')
const { sendBounds } = await import('../../src/requests/send.ts')
const { claimBounds } = await import('../../src/requests/store.ts')
const { jobBounds } = await import('../../src/resources/jobs.ts')
const { subjects } = await import('../../src/resources/subjects.ts')

Object.assign(claimBounds, { operatorQueryIntervalMs: 400 } satisfies typeof claimBounds)
Object.assign(idempotencyBounds, { leaseMs: 2_000 } satisfies typeof idempotencyBounds)
Object.assign(jobBounds, {
  resolveEveryMs: 200,
  payoutsDueEveryMs: 200,
  recoverEveryMs: 200,
  auditEveryMs: 2_000,
} satisfies typeof jobBounds)
Object.assign(scheduleBounds, {
  firstPollMs: 200,
  reversalChecksMs: [1_000, 3_000, 8_000],
  // Longer than a run on a slow machine.
  lateChecksForMs: 600_000,
} satisfies typeof scheduleBounds)
Object.assign(sendBounds, { disburseDeadlineMs: 1_000 } satisfies typeof sendBounds)
Object.assign(subjects.deposit, { unsentForMs: 7_000 })
