import { writeHead } from '../../audit/audit-chain.ts'
import type { Services } from '../../context.ts'
import { asPlatform } from '../../database/as-platform.ts'
import { transact } from '../../database/transact.ts'
import { writeEmail } from '../team/emails.ts'
import { locks } from '../../database/locks.ts'
import { sqlFunction, sqlType } from '../../database/sql-function.ts'

/** Selects the merchants whose e-mail is due, and records the day of this e-mail. */
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
 * Writes the daily e-mails with the head of the audit log: one to each merchant whose log has grown since the
 * last e-mail, at most once a day (UTC). The first e-mail of a new log comes on the next day at the earliest.
 * An e-mail goes to the address for notifications, or else to every owner.
 * @returns true where more merchants may be due
 */
export async function writeHeadEmails(
  services: Pick<Services, 'database' | 'access' | 'config'>,
  most = headEmailsMax,
): Promise<boolean> {
  const { database, access, config } = services
  // Without a mail server or folder no e-mail can be sent: do not let e-mails pile up.
  if (config.mail.smtpUrl === null && config.mail.folder === null) return false
  return transact(asPlatform({ database }, 'a job works for all merchants'), async (tx) => {
    const { rows } = await tx.query<{ free: boolean }>('SELECT pg_try_advisory_xact_lock($1) AS free', [
      locks.auditEmails,
    ])
    if (!rows[0]?.free) return false
    const due = await takeDue(tx, { most })
    for (const { merchantId, isFirst, merchant, locale, receivers, ...head } of due) {
      if (isFirst) continue
      for (const to of receivers) {
        const email = { locale, to, merchant, head: writeHead(merchantId, head) }
        const entries = Number(head.position)
        await writeEmail(tx, access.master, merchantId, { template: 'audit-log-head', entries, ...email })
      }
    }
    return due.length === most
  })
}

/** The maximum number of merchants that one run takes. */
export const headEmailsMax = 100
