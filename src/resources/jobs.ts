import { sweepRateLimits } from '../access/rate-limit.ts'
import { type Services, shareFlight } from '../context.ts'
import type { Job } from '../jobs/schedule.ts'
import { verifyLedger } from '../ledger/verify.ts'
import { claimDue } from '../operators/requests.ts'
import { limits } from '../shared/limits.ts'
import type { Provider } from '../shared/providers.ts'
import { checkRequest } from './settlement.ts'

/** Every periodic job of the service, and what it does. */
export function serviceJobs(services: Services): readonly Job[] {
  return [
    // One lane per operator: one that hangs holds up nobody else.
    ...services.operators.list().map(({ provider }) => ({
      name: resolveJob(provider),
      everyMs: limits.resolveEveryMs,
      run: () => resolveDue(services, provider),
    })),
    {
      name: 'ledger.verify',
      everyMs: limits.ledgerVerifyMs,
      run: async () => {
        const problems = await verifyLedger(services.database.pool)
        if (problems.length > 0)
          services.log.fatal({ problems: problems.slice(0, 20) }, 'the ledger does not add up')
        return false
      },
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

/** The name of the job that asks one operator about its open requests. */
export function resolveJob(provider: Provider): string {
  return `requests.resolve.${provider}`
}

async function resolveDue(services: Services, provider: Provider): Promise<boolean> {
  const requests = await claimDue(services.database.pool, provider, limits.dueRequestsMax)
  const checks = await Promise.allSettled(
    requests.map((request) =>
      shareFlight(services, `check:${request.transactionId}`, () => checkRequest(services, request)),
    ),
  )
  for (const check of checks) {
    if (check.status === 'rejected')
      services.log.error({ err: check.reason }, 'a request could not be checked')
  }
  return requests.length === limits.dueRequestsMax
}
