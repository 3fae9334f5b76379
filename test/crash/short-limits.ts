import { limits } from '../../src/shared/limits.ts'

// Loaded into the service before its own modules (`node --import`): the same program with every wait of an
// operator's shortened about tenfold, in the same proportions, so that a life of a few seconds outlasts the
// longest of them.
Object.assign(limits, {
  collectDeadlineMs: 1_000,
  operatorQueryDeadlineMs: 1_000,
  operatorQueryIntervalMs: 400,
  disburseDeadlineMs: 1_000,
  disburseSyncDeadlineMs: 1_000,
  depositWaitMs: 2_000,
  depositUnsentForMs: 7_000,
  payoutUnsentForMs: 60_000,
  payoutsDueEveryMs: 200,
  jobsRecoverEveryMs: 200,
  firstCheckMs: 1_200,
  // The deadline, and the 2.5 s that a broken call may still be on its way.
  operatorFenceMs: 4_000,
  resendForMs: 7_000,
  resolveEveryMs: 200,
  collectionLifetimeMs: 9_000,
  lateCheckMs: 1_000,
  // Longer than a storm on a slow machine.
  lateChecksForMs: 600_000,
  reversalChecksMs: [1_000, 3_000, 8_000],
  auditEveryMs: 2_000,
  idempotencyLeaseMs: 2_000,
  eventPollMs: 300,
} satisfies { [Name in keyof typeof limits]?: number | number[] })
