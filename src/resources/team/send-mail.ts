import type { Services } from '../../context.ts'
import { openLetter, wordLetter } from './letters.ts'
import { asPlatform } from '../../database/as-platform.ts'
import { sqlFunction } from '../../database/sql-function.ts'

/** Why this looks past row-level security. */
const reason = 'a job works for all merchants'

const noteSent = sqlFunction('note_letter_sent', { takes: { letter: 'uuid' }, gives: 'void' })

/**
 * Sends a letter, and then forgets what it said. One that was sent and not noted goes out once more, under
 * the same id.
 * @throws Error where the mail server does not take it: the job is tried again
 */
export async function sendMail(
  { database, access, addresses, mailer }: Pick<Services, 'database' | 'access' | 'addresses' | 'mailer'>,
  id: string,
): Promise<void> {
  const { rows } = await asPlatform({ database }, reason).pool.query<{ sealed: Buffer | null }>(
    'SELECT sealed FROM mail WHERE id = $1',
    [id],
  )
  const sealed = rows[0]?.sealed
  if (!sealed) return
  await mailer.send(wordLetter(id, openLetter(access.master, id, sealed), addresses.publicUrl))
  await noteSent(asPlatform({ database }, reason).pool, { letter: id })
}
