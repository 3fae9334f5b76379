import { writeHead } from '../../audit/audit-chain.ts'
import type { Services } from '../../context.ts'
import { asPlatform } from '../../database/as-platform.ts'
import { transact } from '../../database/transact.ts'
import { writeEmail } from '../team/emails.ts'
import { locks } from '../../database/locks.ts'
import { sqlFunction, sqlType } from '../../database/sql-function.ts'

/** Notes up to where merchants are told, and gives what to tell them. */
const takeDue = sqlFunction('take_due_audit_emails', {
  takes: { most: 'int' },
  gives: {
    merchantId: 'int',
    position: 'bigint',
    hash: 'bytea',
    proof: 'bytea',
    isFirst: 'boolean',
    merchant: 'text',
    locale: sqlType<'fr' | 'en'>('locale'),
    receivers: sqlType<{ name: string; address: string }[]>('jsonb'),
  },
})

/**
 * Writes the daily letters: each merchant whose audit log has grown since the last one is told its head, at
 * most once a day (UTC). Of a log that is new the first letter comes on the next day. It goes to the address
 * for notifications, else to every owner.
 * @returns whether more merchants wait for theirs
 */
export async function writeHeadEmails(
  services: Pick<Services, 'database' | 'access' | 'config'>,
): Promise<boolean> {
  const { database, access, config } = services
  // Letters that nobody can send would only pile up.
  if (config.mail.smtpUrl === null && config.mail.folder === null) return false
  return transact(asPlatform({ database }, 'a job works for all merchants'), async (tx) => {
    const { rows } = await tx.query<{ free: boolean }>('SELECT pg_try_advisory_xact_lock($1) AS free', [
      locks.auditEmails,
    ])
    if (!rows[0]?.free) return false
    const due = await takeDue(tx, { most: dueMax })
    for (const { merchantId, isFirst, merchant, locale, receivers, ...head } of due) {
      if (isFirst) continue
      for (const to of receivers) {
        const email = { locale, to, merchant, head: writeHead(merchantId, head) }
        const entries = Number(head.position)
        await writeEmail(tx, access.master, merchantId, { template: 'audit-log-head', entries, ...email })
      }
    }
    return due.length === dueMax
  })
}

const dueMax = 100
