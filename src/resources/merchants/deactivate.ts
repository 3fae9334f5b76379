import { sqlFunction } from '../../database/sql-function.ts'
import { platformRecording, recordedChange } from '../../audit/audit-log.ts'
import type { Services } from '../../context.ts'
import { asPlatform } from '../../database/as-platform.ts'
import { transact } from '../../database/transact.ts'
import { DomainError } from '../../shared/errors.ts'

/**
 * Ends a merchant's access: every key and token becomes invalid within a second on every node. Payments that
 * operators already have are still settled.
 * @throws DomainError NOT_FOUND
 */
export async function deactivateMerchant(
  services: Pick<Services, 'database'>,
  merchantId: number,
): Promise<void> {
  const recording = platformRecording(merchantId, 'merchant deactivate')
  const isThere = await transact(asPlatform(services, 'an administrator names the merchant'), (tx) =>
    recordedChange(tx, recording, ['merchant', merchantId], () => deactivate(tx, { merchant: merchantId })),
  )
  if (!isThere) throw new DomainError('NOT_FOUND', `There is no merchant ${merchantId}.`)
}

const deactivate = sqlFunction('deactivate_merchant', { takes: { merchant: 'int' }, gives: 'boolean' })
