import { sqlFunction } from '../database/sql-function.ts'
import { chainAuditLog } from '../audit/verify-chain.ts'
import { sweepIdempotencyKeys } from '../idempotency/idempotency-keys.ts'
import { sweepRateLimits } from '../limits/window.ts'
import type { Services } from '../context.ts'
import { singleFlight } from '../shared/single-flight.ts'
import { asPlatform } from '../database/as-platform.ts'
import { compareClocksEveryMs, describeSkew, isSkewed, readClockSkew } from '../database/clock-skew.ts'
import type { Tasks } from '../jobs/catalogue.ts'
import { recoverJobs } from '../jobs/recover.ts'
import type { Job } from '../jobs/schedule.ts'
import { newPace, proveDueSlice, proveRecent } from '../ledger/audit.ts'
import { watchProofAge } from '../ledger/proof-age.ts'
import type { LedgerProblem } from '../ledger/verify.ts'
import { originOf } from '../requests/open-request.ts'
import { claimDue } from '../requests/store.ts'
import { limits } from '../shared/limits.ts'
import type { Provider } from '../shared/providers.ts'
import { writeHeadEmails } from './audit-log/head-emails.ts'
import { sendDueRecipients } from './batches/send.ts'
import { seeToDuePayouts } from './payouts/due.ts'
import { sendDuePayouts } from './payouts/send.ts'
import { checkRequest } from '../requests/check.ts'
import { sendPasswordReset } from './team/password.ts'
import { sendMail } from './team/send-mail.ts'
import { sweepPeople } from './team/sweep.ts'
import { compactCounts } from './transactions/list.ts'
import { deliverDue } from './webhooks/deliver.ts'
import { enqueueDueEndpoints, sweepWebhooks } from './webhooks/due.ts'

/** Requests that one job run takes. */
export const dueRequestsMax = 32

/** A turn of the whole proof takes slices for so long. */
export const auditSliceTurnMs = 200

/** All of the books are proven anew by slices, after a pause of so long. */
export const auditSliceEveryMs = 2_000

const sweepLinkSlots = sqlFunction('sweep_link_slots', { takes: {}, gives: 'void' })

/** Why this looks past row-level security. */
const reason = 'jobs work for all merchants'

/** How often a node writes down what it has seen in the database, so that a restore of it is noticed. */
const databaseLookEveryMs = 1_000

/** How often idempotency keys that are too old are deleted. */
const idempotencySweepMs = 3_600_000

/** How often audit logs are sealed (at most 5 s behind: design). */
const auditChainEveryMs = 2_000

/** The heads of audit logs are written outside the database so often (issue 16: at least hourly). */
const auditHeadsEveryMs = 3_600_000

/** How often what changed in the numbers of transactions is added to their counts. */
const countsCompactMs = 1_000

/** How often what is over is forgotten: sessions, letters, failures. */
const peopleSweepMs = 3_600_000

/** How often lanes that are due are looked for. */
const webhooksDueEveryMs = 1_000

/** How often deliveries that are too old are given up or deleted. */
const webhookSweepMs = 3_600_000

/** Who does each job that is enqueued. */
export function serviceTasks(services: Services): Tasks {
  return {
    'payouts.send': ({ provider }) => sendDuePayouts(services, provider),
    'batches.send': () => sendDueRecipients(services),
    'webhooks.deliver': ({ endpointId }) => deliverDue(services, endpointId),
    'mail.send': ({ mailId }) => sendMail(services, mailId),
    'members.reset-password': ({ email, merchantId }) => sendPasswordReset(services, email, merchantId),
  }
}

/** Every periodic job of the service, and what it does. */
export function serviceJobs(services: Services): readonly Job[] {
  return [
    // One lane per operator: one that hangs holds up nobody else.
    ...services.operators.list().map(({ provider }) => {
      const dueRun: DueRun = { underWay: new Set(), isMoreDue: false }
      return {
        name: resolveJob(provider),
        everyMs: limits.resolveEveryMs,
        run: () => resolveDue(services, provider, dueRun),
      }
    }),
    {
      name: payoutsDueJob,
      everyMs: limits.payoutsDueEveryMs,
      run: () => seeToDuePayouts(services),
    },
    {
      name: webhooksDueJob,
      everyMs: webhooksDueEveryMs,
      run: () => enqueueDueEndpoints(services),
    },
    {
      name: 'webhooks.sweep',
      everyMs: webhookSweepMs,
      run: () => sweepWebhooks(services),
    },
    {
      name: 'jobs.recover',
      everyMs: limits.jobsRecoverEveryMs,
      run: async () => {
        const gone = await recoverJobs(asPlatform(services, reason).pool, {})
        if (gone > 0) services.log.warn({ gone }, 'the jobs of processes that are gone run again')
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
    ...auditLogJobs(services),
    ...sweepJobs(services),
  ]
}

/** The proof of the books: what is new each minute, and all of it in the background. */
function auditJobs(services: Services): readonly Job[] {
  const { database, log } = services
  const recent = newPace()
  const slices = newPace()
  const alarm = (problems: readonly LedgerProblem[]) => {
    if (problems.length === 0) return
    const worst = { found: problems.length, problems: problems.slice(0, 20) }
    log.error(worst, 'alarm: the books do not add up, payments out are halted')
  }
  return [
    {
      name: 'ledger.audit',
      everyMs: limits.auditEveryMs,
      run: async () => {
        const { problems, isEnd } = (await proveRecent(database, recent)) ?? { problems: [], isEnd: true }
        alarm(problems)
        // A halt for the age of the proof ends at once.
        if (isEnd && problems.length === 0) services.notifyJob(watchJob)
        return !isEnd && problems.length === 0
      },
    },
    {
      name: watchJob,
      everyMs: limits.auditEveryMs,
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

/** The audit log: its entries are chained, and its heads are written outside of the database. */
function auditLogJobs(services: Services): readonly Job[] {
  return [
    {
      name: 'audit-log.seal',
      everyMs: auditChainEveryMs,
      run: () => chainAuditLog(asPlatform(services, reason).pool, services.access.master.auditKey),
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
      name: 'audit-log.letters',
      everyMs: auditHeadsEveryMs,
      run: () => writeHeadEmails(services),
    },
  ]
}

/** Deletes what has served its time, and folds what was counted. */
function sweepJobs(services: Services): readonly Job[] {
  return [
    {
      name: 'idempotency-keys.sweep',
      everyMs: idempotencySweepMs,
      run: () => sweepIdempotencyKeys(asPlatform(services, reason).pool),
    },
    {
      name: 'transactions.count',
      everyMs: countsCompactMs,
      run: async () => (await compactCounts(asPlatform(services, reason).pool)) === limits.countsCompactMax,
    },
    {
      name: 'people.sweep',
      everyMs: peopleSweepMs,
      run: () => sweepPeople(asPlatform(services, reason).pool),
    },
    {
      name: 'rate-limits.sweep',
      everyMs: limits.authWindowMs,
      run: async () => {
        await sweepRateLimits(asPlatform(services, reason).pool)
        await sweepLinkSlots(asPlatform(services, reason).pool, {})
        return false
      },
    },
  ]
}

/** The job that looks for payouts that are due. */
export const payoutsDueJob = 'payouts.due'

/** The job that watches when the books were last proven. */
const watchJob = 'ledger.watch'

/** The job that looks for webhooks that are due. */
export const webhooksDueJob = 'webhooks.due'

/** The name of the job that asks one operator about its open requests. */
export function resolveJob(provider: Provider): string {
  return `requests.resolve.${provider}`
}

/** What one process asks one operator at the same time. */
interface DueRun {
  /** Requests that are being checked, at most `dueRequestsMax`. */
  underWay: Set<bigint>
  /** The last look found at least as many due requests as there were free places. */
  isMoreDue: boolean
}

/**
 * Takes as many due requests as there are free places and checks each by itself: none waits for another.
 * A place that becomes free is filled at once while more requests are due. An operator that cannot be reached
 * is asked again only at the next regular run: without calls to wait for, waking would empty the queue.
 * @returns true where places became free during the look and more requests are due
 */
async function resolveDue(services: Services, provider: Provider, dueRun: DueRun): Promise<boolean> {
  const { underWay } = dueRun
  const room = dueRequestsMax - underWay.size
  if (room === 0) return false
  const requests = await claimDue(asPlatform(services, reason).pool, provider, room)
  dueRun.isMoreDue = requests.length === room
  for (const request of requests) {
    underWay.add(request.id)
    const name = `check:${originOf(request)}`
    const check = () => singleFlight(services, name, () => checkRequest(services, request))
    // A question that is under way may be older than what made this one due: it cannot answer for it.
    const before = services.inFlight.get(name)
    const checked = before ? before.then(check, check) : check()
    const end = (reached: boolean) => {
      underWay.delete(request.id)
      if (reached && dueRun.isMoreDue) services.notifyJob(resolveJob(provider))
    }
    checked.then(
      ({ reached }) => end(reached),
      (error: unknown) => {
        services.log.error({ err: error }, 'a request could not be checked')
        end(false)
      },
    )
  }
  return dueRun.isMoreDue && underWay.size < dueRequestsMax
}
