import { sealAuditLog } from '../access/audit-seal.ts'
import { sweepIdempotencyKeys } from '../access/idempotency-keys.ts'
import { sweepRateLimits } from '../access/rate-limit.ts'
import { type Services, shareFlight } from '../context.ts'
import type { Tasks } from '../jobs/catalogue.ts'
import { recoverJobs } from '../jobs/recover.ts'
import type { Job } from '../jobs/schedule.ts'
import { auditLedger } from '../ledger/audit.ts'
import { causeOf, claimDue } from '../operators/requests.ts'
import { limits } from '../shared/limits.ts'
import type { Provider } from '../shared/providers.ts'
import { sendDueRecipients } from './batches/send.ts'
import { seeToDuePayouts } from './payouts/due.ts'
import { sendDuePayouts } from './payouts/send.ts'
import { checkRequest } from './settlement.ts'
import { sendPasswordReset } from './team/password.ts'
import { sendMail } from './team/send-mail.ts'
import { sweepPeople } from './team/sweep.ts'
import { foldCounts } from './transactions/list.ts'
import { deliverDue } from './webhooks/deliver.ts'
import { enqueueDueLanes, sweepWebhooks } from './webhooks/due.ts'

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
      const underWay = new Set<bigint>()
      return {
        name: resolveJob(provider),
        everyMs: limits.resolveEveryMs,
        run: () => resolveDue(services, provider, underWay),
      }
    }),
    {
      name: payoutsDueJob,
      everyMs: limits.payoutsDueEveryMs,
      run: () => seeToDuePayouts(services),
    },
    {
      name: webhooksDueJob,
      everyMs: limits.webhooksDueEveryMs,
      run: () => enqueueDueLanes(services),
    },
    {
      name: 'webhooks.sweep',
      everyMs: limits.webhookSweepMs,
      run: () => sweepWebhooks(services),
    },
    {
      name: 'jobs.recover',
      everyMs: limits.jobsRecoverEveryMs,
      run: async () => {
        const gone = await recoverJobs(services.database.pool)
        if (gone > 0) services.log.warn({ gone }, 'the jobs of processes that are gone run again')
        return false
      },
    },
    {
      name: 'ledger.audit',
      everyMs: limits.auditEveryMs,
      run: async () => {
        const { problems = [] } = (await auditLedger(services.database, { whole: false })) ?? {}
        if (problems.length > 0) {
          const worst = { found: problems.length, problems: problems.slice(0, 20) }
          services.log.error(worst, 'alarm: the books do not add up, payments out are halted')
        }
        return false
      },
    },
    {
      name: 'audit-log.seal',
      everyMs: limits.auditSealEveryMs,
      run: () => sealAuditLog(services.database.pool, services.access.master.auditKey),
    },
    {
      name: 'idempotency-keys.sweep',
      everyMs: limits.idempotencySweepMs,
      run: () => sweepIdempotencyKeys(services.database.pool),
    },
    {
      name: 'transactions.count',
      everyMs: limits.countsFoldMs,
      run: async () => (await foldCounts(services.database.pool)) === limits.countsFoldMax,
    },
    {
      name: 'people.sweep',
      everyMs: limits.peopleSweepMs,
      run: () => sweepPeople(services.database.pool),
    },
    {
      name: 'rate-limits.sweep',
      everyMs: limits.authWindowMs,
      run: async () => {
        await sweepRateLimits(services.database.pool)
        return false
      },
    },
  ]
}

/** The job that looks for payouts that are due. */
export const payoutsDueJob = 'payouts.due'

/** The job that looks for webhooks that are due. */
export const webhooksDueJob = 'webhooks.due'

/** The name of the job that asks one operator about its open requests. */
export function resolveJob(provider: Provider): string {
  return `requests.resolve.${provider}`
}

/** Takes as many due requests as the operator has room for; none waits for the answer to another. */
async function resolveDue(services: Services, provider: Provider, underWay: Set<bigint>): Promise<boolean> {
  const room = limits.dueRequestsMax - underWay.size
  if (room === 0) return false
  const requests = await claimDue(services.database.pool, provider, room)
  for (const request of requests) {
    underWay.add(request.id)
    const name = `check:${causeOf(request)}`
    const check = () => shareFlight(services, name, () => checkRequest(services, request))
    // A question that is under way may be older than what made this one due: it cannot answer for it.
    const before = services.flights.get(name)
    const checked = before ? before.then(check, check) : check()
    checked
      .catch((error: unknown) => services.log.error({ err: error }, 'a request could not be checked'))
      .finally(() => {
        const wasFull = underWay.size === limits.dueRequestsMax
        underWay.delete(request.id)
        if (wasFull) services.wakeJob(resolveJob(provider))
      })
  }
  return false
}
