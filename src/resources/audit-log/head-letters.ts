import type { PoolClient } from 'pg'
import { type Head, writeHead } from '../../audit/audit-chain.ts'
import type { Services } from '../../context.ts'
import { transact } from '../../database/transact.ts'
import { writeLetter } from '../team/letters.ts'
import { locks } from '../../database/locks.ts'

/**
 * Writes the daily letters: each merchant whose audit log has grown since the last one is told its head, at
 * most once a day (UTC). Of a log that is new the first letter comes on the next day. It goes to the address
 * for notifications, else to every owner.
 * @returns whether more merchants wait for theirs
 */
export async function writeHeadLetters(
  services: Pick<Services, 'database' | 'access' | 'config'>,
): Promise<boolean> {
  const { database, access, config } = services
  // Letters that nobody can send would only pile up.
  if (config.mail.smtpUrl === null && config.mail.folder === null) return false
  return transact(database, async (tx) => {
    const { rows } = await tx.query<{ free: boolean }>('SELECT pg_try_advisory_xact_lock($1) AS free', [
      locks.auditLetters,
    ])
    if (!rows[0]?.free) return false
    const due = await takeDue(tx)
    for (const { merchantId, head, isFirst, merchant, locale, receivers } of due) {
      if (isFirst) continue
      for (const to of receivers) {
        const letter = { locale, to, merchant, head: writeHead(merchantId, head) }
        const entries = Number(head.position)
        await writeLetter(tx, access.master, merchantId, { template: 'audit-log-head', entries, ...letter })
      }
    }
    return due.length === dueMax
  })
}

const dueMax = 100

interface Due {
  merchantId: number
  head: Head
  /** No letter yet: the day is only noted. */
  isFirst: boolean
  merchant: string
  locale: 'fr' | 'en'
  receivers: { name: string; address: string }[]
}

/** Notes up to where merchants are told, and gives what to tell them. */
async function takeDue(tx: PoolClient): Promise<Due[]> {
  const { rows } = await tx.query<Omit<Due, 'head'> & Head>(
    `WITH due AS (
       SELECT h.*, l.merchant_id IS NULL AS is_first
       FROM audit_head h LEFT JOIN audit_letter l USING (merchant_id)
       WHERE l.merchant_id IS NULL OR l.day < current_date AND l.position < h.position
       ORDER BY h.merchant_id LIMIT ${dueMax}
     ), noted AS (
       INSERT INTO audit_letter (merchant_id, position, day)
       SELECT merchant_id, CASE WHEN is_first THEN 0 ELSE position END, current_date FROM due
       ON CONFLICT (merchant_id) DO UPDATE SET position = excluded.position, day = excluded.day
     )
     SELECT d.merchant_id AS "merchantId", d.position, d.hash, d.proof, d.is_first AS "isFirst",
       m.name AS merchant, m.locale, CASE WHEN m.notification_email IS NOT NULL
         THEN jsonb_build_array(jsonb_build_object('name', m.name, 'address', m.notification_email))
         ELSE coalesce((
           SELECT jsonb_agg(jsonb_build_object('name', t.name, 'address', t.email) ORDER BY t.id)
           FROM team_member t
           WHERE t.merchant_id = m.id AND t.role = 'owner' AND t.status = 'active'), '[]') END AS receivers
     FROM due d JOIN merchant m ON m.id = d.merchant_id ORDER BY d.merchant_id`,
  )
  return rows.map(({ position, hash, proof, ...due }) => ({ ...due, head: { position, hash, proof } }))
}
