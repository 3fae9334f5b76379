import { sqlFunction } from '../database/sql-function.ts'
import { auditChainMax, chainAuditLog } from '../audit/verify-chain.ts'
import { idempotencySweepMax, sweepIdempotencyKeys } from '../idempotency/idempotency-keys.ts'
import { hitsSweepMax, sweepRateLimits } from '../limits/window.ts'
import type { Retention } from '../config/retention.ts'
import type { Services } from '../context.ts'
import { asPlatform } from '../database/as-platform.ts'
import { openPieces } from '../database/pieces.ts'
import { compareClocksEveryMs, describeSkew, isSkewed, readClockSkew } from '../database/clock-skew.ts'
import type { Tasks } from '../jobs/catalogue.ts'
import { recoverJobs } from '../jobs/recover.ts'
import type { Job } from '../jobs/schedule.ts'
import { newSliceSize, proveDueSlice, proveRecent } from '../ledger/audit.ts'
import { watchProofAge } from '../ledger/proof-age.ts'
import type { LedgerProblem } from '../ledger/verify.ts'
import { resolveJob } from '../requests/check-slots.ts'
import { resolveDue } from '../requests/due.ts'
import { openWireLogSweep, type WireLog, wireLogSweepMax } from '../requests/wire-log.ts'
import { limits } from '../shared/limits.ts'
import { headEmailsMax, writeHeadEmails } from './audit-log/head-emails.ts'
import { sendDueRecipients } from './batches/send.ts'
import { alarmOpenDifferences } from './differences/alarm.ts'
import { expiriesMax, runDueWork } from './payouts/due.ts'
import { sendDuePayouts } from './payouts/send.ts'
import { sendPasswordReset } from './team/password.ts'
import { sendMail } from './team/send-mail.ts'
import { peopleSweepMax, sweepPeople } from './team/sweep.ts'
import { compactDisbursements } from './stats/read.ts'
import { compactCounts, countChangesMax } from './transactions/list.ts'
import { deliverDue } from './webhooks/deliver.ts'
import { enqueueDueEndpoints, sweepWebhooks, webhooksDueMax, webhookSweepMax } from './webhooks/due.ts'

/** The pauses between two runs of each job, in ms. Tests shorten them. */
export const jobBounds = {
  /**
   * The job that looks for the due requests of one operator: those that other processes left, and those that
   * were put off for long. A process checks callbacks and its own other requests without this pause.
   */
  resolveEveryMs: 1_000,
  /** The job that looks for due payouts and recipients. */
  payoutsDueEveryMs: 1_000,
  /** The job that requeues the jobs of processes that ended. */
  recoverEveryMs: 1_000,
  /** The jobs that prove new entries of the books, and watch how old the last proof is. */
  auditEveryMs: 60_000,
}

/** The time, in ms, for which one run of the job that proves all books begins new slices. */
export const auditSliceTurnMs = 200

/** The pause, in ms, between two runs of the job that proves all books. */
export const auditSliceEveryMs = 2_000

const sweepLinkSlots = sqlFunction('sweep_link_slots', { takes: { most: 'int' }, gives: 'int' })

/** The reason why these jobs bypass row-level security. */
const reason = 'jobs work for all merchants'

/** How often a node checks whether the database was restored. */
const databaseLookEveryMs = 1_000

/** How often idempotency keys that are too old are deleted. */
const idempotencySweepMs = 3_600_000

/** How often new entries of audit logs are added to the chain. */
const auditChainEveryMs = 2_000

/**
 * How often the heads of audit logs are written outside the database (see docs/design/rules.md#audit-log).
 */
const auditHeadsEveryMs = 3_600_000

/** How often the recorded changes are added to the counts of transactions and to the figures. */
const countsCompactMs = 1_000

/** How often exchanges with operators and their callbacks that are too old are deleted. */
const wireLogSweepMs = 3_600_000

/** How often old sessions, e-mails, failed attempts to sign in and client addresses are deleted. */
const peopleSweepMs = 3_600_000

/** How often the service looks for endpoints with deliveries that are due. */
const webhooksDueEveryMs = 1_000

/** How often the service ends or deletes deliveries that are too old. */
const webhookSweepMs = 3_600_000

/** How often the log gets an alarm while amounts that operators did not confirm wait for a decision. */
const differencesAlarmMs = 3_600_000

/** Returns the function that does each kind of enqueued job. */
export function serviceTasks(services: Services): Tasks {
  return {
    'payouts.send': ({ provider }) => sendDuePayouts(services, provider),
    'batches.send': () => sendDueRecipients(services),
    'webhooks.deliver': ({ endpointId }) => deliverDue(services, endpointId),
    'mail.send': ({ mailId }) => sendMail(services, mailId),
    'members.reset-password': ({ email, merchantId }) => sendPasswordReset(services, email, merchantId),
  }
}

/** Returns every periodic job of the service. */
export function serviceJobs(services: Services): readonly Job[] {
  return [
    // One job per operator: an operator that does not answer does not delay the requests to the others.
    ...services.operators.list().map(({ provider }) => ({
      name: resolveJob(provider),
      everyMs: jobBounds.resolveEveryMs,
      run: () => resolveDue(services, provider),
    })),
    {
      name: 'payouts.due',
      everyMs: jobBounds.payoutsDueEveryMs,
      run: inPieces(expiriesMax, (take) => runDueWork(services, take)),
    },
    {
      name: 'webhooks.due',
      everyMs: webhooksDueEveryMs,
      run: inPieces(webhooksDueMax, (most) => enqueueDueEndpoints(services, most)),
    },
    {
      name: 'webhooks.sweep',
      everyMs: webhookSweepMs,
      run: inPieces(webhookSweepMax, (take) => sweepWebhooks(services, take)),
    },
    {
      name: 'jobs.recover',
      everyMs: jobBounds.recoverEveryMs,
      run: async () => {
        const gone = await recoverJobs(asPlatform(services, reason).pool, {})
        if (gone > 0) services.log.warn({ gone }, 'requeued the jobs of processes that ended')
        return false
      },
    },
    ...auditJobs(services),
    {
      name: 'clock.compare',
      everyMs: compareClocksEveryMs,
      run: async () => {
        const skewMs = await readClockSkew(asPlatform(services, reason).pool)
        if (isSkewed(skewMs)) {
          const words = `alarm: the clock of this process is ${describeSkew(skewMs)} the database's`
          services.log.error({ skewMs }, words)
        }
        return false
      },
    },
    {
      name: 'database.look',
      everyMs: databaseLookEveryMs,
      run: async () => {
        await services.restores.look()
        return false
      },
    },
    {
      name: 'differences.alarm',
      everyMs: differencesAlarmMs,
      run: async () => {
        await alarmOpenDifferences(services)
        return false
      },
    },
    ...auditLogJobs(services),
    ...sweepJobs(services),
    wireLogJob(services, 'exchanges', 'exchangeDays'),
    wireLogJob(services, 'callbacks', 'callbackDays'),
  ]
}

/** Jobs that prove the books: new entries each minute, and all entries slowly in the background. */
function auditJobs(services: Services): readonly Job[] {
  const { database, log } = services
  const recent = newSliceSize()
  const slices = newSliceSize()
  const alarm = (problems: readonly LedgerProblem[]) => {
    if (problems.length === 0) return
    const worst = { found: problems.length, problems: problems.slice(0, 20) }
    log.error(worst, 'alarm: the ledger does not add up; payments out are halted')
  }
  return [
    {
      name: 'ledger.audit',
      everyMs: jobBounds.auditEveryMs,
      run: async () => {
        const { problems, isEnd } = (await proveRecent(database, recent)) ?? { problems: [], isEnd: true }
        alarm(problems)
        // The new proof ends a halt that began because the last proof was too old: check that at once.
        if (isEnd && problems.length === 0) services.notifyJob('ledger.watch')
        return !isEnd && problems.length === 0
      },
    },
    {
      name: 'ledger.watch',
      everyMs: jobBounds.auditEveryMs,
      run: async () => {
        const haltAfterMs = services.config.auditHaltAfterMs
        await watchProofAge(services, { haltAfterMs, upMs: services.upMs() })
        return false
      },
    },
    {
      name: 'ledger.audit-slices',
      everyMs: auditSliceEveryMs,
      run: async () => {
        const end = performance.now() + auditSliceTurnMs
        do {
          const proven = await proveDueSlice(database, slices)
          if (!proven) break
          alarm(proven.problems)
        } while (performance.now() < end)
        return false
      },
    },
  ]
}

/** Jobs of the audit log: they chain its entries, and write its heads outside the database. */
function auditLogJobs(services: Services): readonly Job[] {
  return [
    {
      name: 'audit-log.chain',
      everyMs: auditChainEveryMs,
      run: inPieces(auditChainMax, (most) =>
        chainAuditLog(asPlatform(services, reason).pool, services.access.master.auditKey, most),
      ),
    },
    {
      name: 'audit-log.heads',
      everyMs: auditHeadsEveryMs,
      run: async () => {
        await services.auditHeads.write()
        return false
      },
    },
    {
      name: 'audit-log.emails',
      everyMs: auditHeadsEveryMs,
      run: inPieces(headEmailsMax, (most) => writeHeadEmails(services, most)),
    },
  ]
}

/**
 * Makes the run of a job that takes at most `max` rows at once, and fewer while the database is slow.
 * @param work returns whether there is more to do
 */
function inPieces(max: number, work: (rows: number) => Promise<boolean>): () => Promise<boolean> {
  const runPiece = openPieces({ max })
  return () => runPiece(work)
}

/** A job that deletes the old rows of a log, as the owner's setting says. */
function wireLogJob(services: Services, wireLog: WireLog, setting: keyof Retention): Job {
  const sweep = openWireLogSweep(wireLog)
  return {
    name: `${wireLog}.sweep`,
    everyMs: wireLogSweepMs,
    run: inPieces(wireLogSweepMax, (take) =>
      sweep(asPlatform(services, reason).pool, services.config.retention[setting], take),
    ),
  }
}

/** Jobs that delete expired rows and compact the counts of transactions. */
function sweepJobs(services: Services): readonly Job[] {
  return [
    {
      name: 'idempotency-keys.sweep',
      everyMs: idempotencySweepMs,
      run: inPieces(idempotencySweepMax, (most) =>
        sweepIdempotencyKeys(asPlatform(services, reason).pool, most),
      ),
    },
    {
      name: 'transactions.count',
      everyMs: countsCompactMs,
      run: inPieces(countChangesMax, async (take) => {
        const { pool } = asPlatform(services, reason)
        const compacted = [await compactCounts(pool, take), await compactDisbursements(pool, take)]
        return compacted.includes(true)
      }),
    },
    {
      name: 'people.sweep',
      everyMs: peopleSweepMs,
      run: inPieces(peopleSweepMax, (most) => sweepPeople(asPlatform(services, reason).pool, most)),
    },
    {
      name: 'rate-limits.sweep',
      everyMs: limits.authWindowMs,
      run: inPieces(hitsSweepMax, async (most) => {
        const { pool } = asPlatform(services, reason)
        const swept = [await sweepRateLimits(pool, most), await sweepLinkSlots(pool, { most })]
        return swept.includes(most)
      }),
    },
  ]
}
