import type { Provider } from '../shared/providers.ts'

/**
 * The payload of every kind of job. SQL functions enqueue jobs by these names, in the transaction that makes
 * the work. The work itself is stored in rows, so a job that runs again does only the work that is left.
 * After a crash, an e-mail or a webhook may be sent twice.
 */
export interface JobPayloads {
  /** Sends the due payouts of an operator (`enqueue_each`). */
  'payouts.send': { provider: Provider }
  /** Pays recipients of batches (`enqueue_batches`). */
  'batches.send': Record<string, never>
  /** Sends waiting events to an endpoint (`enqueue_each`). */
  'webhooks.deliver': { endpointId: number }
  /** Sends an e-mail that was written. */
  'mail.send': { mailId: string }
  /** Makes a password reset that a person requested (`request_password_reset`). */
  'members.reset-password': { email: string; merchantId: number | null }
}

/** The periodic jobs that other code starts at once, as soon as it made work for them. */
export type NotifiedJob = 'payouts.due' | 'webhooks.due' | 'ledger.watch' | `requests.resolve.${Provider}`

/** The function that does each job. The compiler refuses a missing one. */
export type Tasks = { readonly [Name in keyof JobPayloads]: (payload: JobPayloads[Name]) => Promise<void> }
