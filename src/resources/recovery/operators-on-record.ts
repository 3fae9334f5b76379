import type { Pool } from 'pg'
import type { OperatorRegistry } from '../../operators/registry.ts'
import type { Provider } from '../../shared/providers.ts'
import { identityOf } from './reconcile.ts'
import { dayOf, readDay } from './statements.ts'

/** The most days of one operator whose statements are read as proof. Choice: one is enough as a rule. */
const proofDaysMax = 3
/** The number of settled requests of an operator, newest first, of which its statements must name one. */
const proofRequestsMax = 100

/** Says which operators may be left out of a comparison, and why. */
export interface LeftOut {
  providers: readonly Provider[]
  reason: string
}

interface Options {
  pool: Pool
  operators: OperatorRegistry
  /** Service time of the last event in the backup. */
  since: Date
  leftOut: LeftOut | null
}

/**
 * Makes sure, before anything is recorded, that the statements of all operators with payments on record can
 * be read, and that they come from the operators of this installation and not from another account or
 * simulator. The proof: a statement names a transfer that this database had as settled before the backup, by
 * its identity, which only the service and the operator know.
 * @throws Error in one sentence that names the operators without a proof
 */
export async function proveOperators(options: Options): Promise<void> {
  const { pool, operators, leftOut } = options
  const needed = (await operatorsOnRecord(pool)).filter((provider) => !leftOut?.providers.includes(provider))
  const missing = needed.filter((provider) => !operators.find(provider))
  if (missing.length > 0)
    throw new Error(
      `Payments of ${listed(missing)} are on record, and this command has no settings for ` +
        `${them(missing)}: give it the settings of the service (OPERATOR_..._DRIVER and so on). ` +
        otherwise(missing),
    )
  const unproven: Provider[] = []
  for (const provider of needed) if (!(await isProven(options, provider))) unproven.push(provider)
  if (unproven.length > 0)
    throw new Error(
      `The statements of ${listed(unproven)} name no payment that was settled here before the backup, so ` +
        `nothing proves that they come from the right account or sandbox: check the settings of this ` +
        `command. ${otherwise(unproven)}`,
    )
  if (operators.list().length === 0 && !leftOut)
    throw new Error(
      'This command has no settings for any operator, so it cannot read what they paid: give it the ' +
        'settings of the service.',
    )
}

const listed = (names: readonly Provider[]) => names.join(', ')
const them = (names: readonly Provider[]) => (names.length === 1 ? 'it' : 'them')
const otherwise = (names: readonly Provider[]) =>
  `If ${them(names)} cannot be asked or prove nothing: --without ${names.join(',')} --reason "why". ` +
  'Until then nothing is accepted.'

/** Returns the operators that were asked for a payment, will be asked for one, or made an unknown one. */
async function operatorsOnRecord(pool: Pool): Promise<Provider[]> {
  const { rows } = await pool.query<{ provider: Provider }>(
    `SELECT p.provider FROM unnest(enum_range(NULL::provider)) AS p (provider)
     WHERE EXISTS (SELECT FROM operator_request r WHERE r.provider = p.provider)
       OR EXISTS (SELECT FROM operator_orphan o WHERE o.provider = p.provider)
       OR EXISTS (SELECT FROM payout w WHERE w.payment_method = p.provider AND w.status = 'pending')
       OR EXISTS (SELECT FROM batch_recipient b
         WHERE b.payment_method = p.provider AND b.status = 'pending')
       OR EXISTS (SELECT FROM deposit_approval a JOIN transaction t ON t.id = a.transaction_id
         WHERE t.payment_method = p.provider AND a.approval = 'pending')
     ORDER BY p.provider`,
  )
  return rows.map(({ provider }) => provider)
}

/** Reads the statements of the newest days on which payments were settled before the backup. */
async function isProven({ pool, operators, since }: Options, provider: Provider): Promise<boolean> {
  const { rows } = await pool.query<{ identity: string; settledAt: Date }>(
    `SELECT r.correlation_id AS identity, (r.evidence->>'settled_at')::timestamptz AS "settledAt"
     FROM operator_request r
     WHERE r.provider = $1 AND r.state = 'settled' AND r.created_at <= $2
       AND (r.evidence->>'settled_at')::timestamptz <= $2
     ORDER BY r.id DESC LIMIT $3`,
    [provider, since, proofRequestsMax],
  )
  const identities = new Set(rows.map(({ identity }) => identity))
  const days = [...new Set(rows.map(({ settledAt }) => dayOf(settledAt)))].slice(0, proofDaysMax)
  for (const day of days) {
    const lines = await readDay(operators, provider, day)
    if (lines.some((line) => identities.has(identityOf(line) ?? ''))) return true
  }
  return false
}
