import { sqlFunction } from '../../database/sql-function.ts'
import { platformRecording, recordedChange } from '../../audit/audit-log.ts'
import type { Services } from '../../context.ts'
import { asPlatform } from '../../database/as-platform.ts'
import { transact } from '../../database/transact.ts'
import { DomainError } from '../../shared/errors.ts'

/**
 * Gives a deactivated merchant its access back, within a second on every node. Its keys work again as they
 * did before, and so do tokens and sessions that have not expired.
 * @throws DomainError NOT_FOUND
 */
export async function activateMerchant(
  services: Pick<Services, 'database'>,
  merchantId: number,
): Promise<void> {
  const recording = platformRecording(merchantId, 'merchant activate')
  const isThere = await transact(asPlatform(services, 'an administrator names the merchant'), (tx) =>
    recordedChange(tx, recording, ['merchant', merchantId], () => activate(tx, { merchant: merchantId })),
  )
  if (!isThere) throw new DomainError('NOT_FOUND', `There is no merchant ${merchantId}.`)
}

const activate = sqlFunction('activate_merchant', { takes: { merchant: 'int' }, gives: 'boolean' })
