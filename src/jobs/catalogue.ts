import type { Provider } from '../shared/providers.ts'

/**
 * Every job that is enqueued, and what it carries. SQL enqueues them by these names, in the transaction that
 * makes the work; what is to be done stands in the rows, so that a job that runs twice does nothing twice.
 */
export interface JobPayloads {
  /** Payouts of an operator are due (`enqueue_each`). */
  'payouts.send': { provider: Provider }
  /** Recipients of batches are to be sent their money (`enqueue_batches`). */
  'batches.send': Record<string, never>
  /** There may be something to send to an endpoint (`enqueue_each`). */
  'webhooks.deliver': { endpointId: number }
  /** A letter was written. */
  'mail.send': { mailId: string }
  /** Somebody wants a new password (`request_password_reset`). */
  'members.reset-password': { email: string; merchantId: number | null }
}

/** Who does each job. The compiler refuses a missing row. */
export type Tasks = { readonly [Name in keyof JobPayloads]: (payload: JobPayloads[Name]) => Promise<void> }
