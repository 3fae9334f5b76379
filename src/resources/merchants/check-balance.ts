import { randomBytes } from 'node:crypto'
import { asPlatform } from '../../database/as-platform.ts'
import { actorOf } from '../../identity/callers/actor.ts'
import { recordingOf, recordingType } from '../../audit/audit-log.ts'
import { sqlFunction } from '../../database/sql-function.ts'
import type { Context } from '../../context.ts'
import { DomainError } from '../../shared/errors.ts'
import { invalidInput } from '../../shared/input.ts'
import { limits } from '../../shared/limits.ts'
import type { Xof } from '../../shared/money.ts'
import type { Provider } from '../../shared/providers.ts'

/**
 * Asks an operator for the balance of the platform's account there, and records the question as a transaction
 * `balance_check` of amount 0.
 * @returns whole XOF
 * @throws DomainError FORBIDDEN for a caller with a read-only role, INVALID_INPUT where the operator is not
 *   connected, OPERATOR_UNREACHABLE (recorded as failed)
 */
export async function checkBalance(ctx: Context, provider: Provider): Promise<Xof> {
  const { merchantId, readsOnly } = actorOf(ctx)
  if (readsOnly)
    throw new DomainError(
      'FORBIDDEN',
      'This request is recorded as a transaction, and your role can only read.',
    )
  const operator = ctx.operators.find(provider)
  if (!operator)
    throw invalidInput([
      {
        field: 'paymentMethod',
        message: 'names an operator that this service is not set up for; choose another',
      },
    ])
  const outcome = await operator.balance({
    deadline: new Date(Date.now() + limits.operatorQueryDeadlineMs),
    priority: 'interactive',
    record: ({ status, error, durationMs }) =>
      ctx.log.debug({ provider, status, error, durationMs }, 'asked an operator for its balance'),
  })
  const known = outcome.kind === 'ok'
  const reference = `bc_${randomBytes(16).toString('hex')}`
  const { pool } = asPlatform(ctx, 'the SQL function receives the id of the merchant')
  await recordBalanceCheck(pool, {
    merchant: merchantId,
    operator: provider,
    reference,
    reason: known ? null : 'OPERATOR_UNAVAILABLE',
    recording: recordingOf(ctx, 'balance'),
  })
  if (!known)
    throw new DomainError('OPERATOR_UNREACHABLE', 'The operator could not be reached. Ask again in a moment.')
  return outcome.available ?? outcome.current
}

const recordBalanceCheck = sqlFunction('record_balance_check', {
  takes: {
    merchant: 'int',
    operator: 'provider',
    reference: 'text',
    reason: 'text?',
    recording: recordingType,
  },
  gives: 'void',
})
