import type { Services } from '../../context.ts'
import { openLetter, wordLetter } from './letters.ts'

/**
 * Sends a letter, and then forgets what it said. One that was sent and not noted goes out once more, under
 * the same id.
 * @throws Error where the mail server does not take it: the job is tried again
 */
export async function sendMail(
  { database, access, addresses, mailer }: Pick<Services, 'database' | 'access' | 'addresses' | 'mailer'>,
  id: string,
): Promise<void> {
  const { rows } = await database.pool.query<{ sealed: Buffer | null }>(
    'SELECT sealed FROM mail WHERE id = $1',
    [id],
  )
  const sealed = rows[0]?.sealed
  if (!sealed) return
  await mailer.send(wordLetter(id, openLetter(access.master, id, sealed), addresses.publicUrl))
  await database.pool.query('UPDATE mail SET sent_at = now(), sealed = NULL WHERE id = $1', [id])
}
