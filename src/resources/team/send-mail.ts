import type { Services } from '../../context.ts'
import { decryptEmail, renderEmail } from './emails.ts'
import { asPlatform } from '../../database/as-platform.ts'
import { sqlFunction } from '../../database/sql-function.ts'

/** The reason to read without row-level security. */
const reason = 'a job works for all merchants'

const recordSent = sqlFunction('record_email_sent', { takes: { email: 'uuid' }, gives: 'void' })

/**
 * Sends an e-mail, and then deletes its content. If the process dies after it sent the e-mail and before it
 * recorded that, the e-mail is sent once more, under the same id.
 * @throws Error where the mail server does not accept it: the job is tried again
 */
export async function sendMail(
  { database, access, addresses, mailer }: Pick<Services, 'database' | 'access' | 'addresses' | 'mailer'>,
  id: string,
): Promise<void> {
  const { rows } = await asPlatform({ database }, reason).pool.query<{ encrypted: Buffer | null }>(
    'SELECT encrypted FROM mail WHERE id = $1',
    [id],
  )
  const encrypted = rows[0]?.encrypted
  if (!encrypted) return
  await mailer.send(renderEmail(id, decryptEmail(access.master, id, encrypted), addresses.publicUrl))
  await recordSent(asPlatform({ database }, reason).pool, { email: id })
}
