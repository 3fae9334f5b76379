import type { IncomingMessage } from 'node:http'
import { mine } from '../../identity/callers/actor.ts'
import { takeSlots } from '../../limits/slot.ts'
import type { Context } from '../../context.ts'
import { afterOthers } from '../../shared/single-flight.ts'
import { DomainError } from '../../shared/errors.ts'
import { limits } from '../../shared/limits.ts'
import type { FormFields } from '../rest/route.ts'
import { readForm } from './form.ts'
import { readRecipients } from './recipients.ts'

/**
 * Reads the form of `POST /bulk/batches/import`: the recipients in its file, and the fields `title`,
 * `payment_method`, `currency` and `dry_run`. The process reads one file at a time, so that the memory holds
 * only one unpacked file.
 * @throws DomainError RATE_LIMITED, UNSUPPORTED_MEDIA_TYPE, BODY_TOO_LARGE, INVALID_INPUT
 */
export async function readBatchForm(ctx: Context, message: IncomingMessage): Promise<FormFields> {
  const free = takeSlots(ctx.streams, [
    { key: `imports:${mine(ctx).merchantId}`, max: limits.importsPerMerchantMax, whose: 'merchant' },
  ])
  if (typeof free !== 'function') throw tooMany()
  try {
    const { texts, file } = await readForm(message)
    const { recipients, locate, warnings } = await afterOthers(ctx, 'imports', () => readRecipients(file))
    return { fields: { ...Object.fromEntries(texts), recipients }, locate, warnings }
  } finally {
    free()
  }
}

function tooMany(): DomainError {
  const message = `A merchant can import ${limits.importsPerMerchantMax} files at once. Wait until one ends.`
  return new DomainError('RATE_LIMITED', message, { retryAfterS: limits.overloadRetryS })
}
