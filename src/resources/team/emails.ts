import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import { encrypt, decrypt } from '../../identity/secrets/encrypt.ts'
import type { MasterSecret } from '../../identity/secrets/secrets.ts'
import type { OutgoingMail } from '../../mail/mailer.ts'
import { sqlFunction } from '../../database/sql-function.ts'
import { limits } from '../../shared/limits.ts'

const insertEmail = sqlFunction('write_email', {
  takes: { email: 'uuid', merchant: 'int', namedTemplate: 'text', encryptedText: 'bytea' },
  gives: 'void',
})

/** The content of an e-mail, before it is rendered as text. */
export type EmailContent = {
  locale: 'fr' | 'en'
  to: { name: string; address: string }
  /** The merchant's name. */
  merchant: string
} & (
  | {
      template: 'invitation' | 'password-reset'
      /** The secret token, which only the receiver may see. */
      token: string
    }
  | {
      template: 'new-address'
      /** The address of the new sign-in, and its time (ISO 8601). */
      where: string
      at: string
    }
  | {
      template: 'audit-log-head'
      /** The head of the audit log in one line, and its position in the log. */
      head: string
      entries: number
    }
)

/**
 * Writes an e-mail in the transaction of the change that it reports; after the commit a job sends the e-mail
 * (`mail.send`). Until then it is stored encrypted, because it may contain a token that is stored nowhere
 * else.
 */
export async function writeEmail(
  tx: pg.PoolClient,
  master: MasterSecret,
  merchantId: number,
  email: EmailContent,
): Promise<void> {
  const id = randomUUID()
  const encrypted = encrypt(master.encryptionKey, Buffer.from(JSON.stringify(email)), aadOf(id))
  await insertEmail(tx, {
    email: id,
    merchant: merchantId,
    namedTemplate: email.template,
    encryptedText: encrypted,
  })
}

/** Decrypts the content of an e-mail. @throws Error where it was altered */
export function decryptEmail(master: MasterSecret, id: string, encrypted: Uint8Array): EmailContent {
  return JSON.parse(decrypt(master.encryptionKey, encrypted, aadOf(id)).toString()) as EmailContent
}

/** Renders an e-mail as text. The token stands behind a `#`, so that no server on the way logs it. */
export function renderEmail(id: string, email: EmailContent, publicUrl: string): OutgoingMail {
  const { template, locale, to, merchant } = email
  const { page, words } = templates[template]
  const detail = ((): string => {
    if (email.template === 'new-address') return `${email.where}, ${wordTime(email.at, locale)}`
    if (email.template === 'audit-log-head') return email.head
    return `${publicUrl}/${page}?lang=${locale}#${email.token}`
  })()
  const { subject, lines } = words[locale]({ merchant, name: to.name, detail })
  return { id, to, subject, text: lines.join('\n') }
}

function wordTime(at: string, locale: 'fr' | 'en'): string {
  const format = { dateStyle: 'long', timeStyle: 'short', timeZone: 'UTC' } as const
  return `${new Date(at).toLocaleString(locale === 'fr' ? 'fr' : 'en-GB', format)} (UTC)`
}

interface Given {
  merchant: string
  name: string
  /** The link, or the address and time of a sign-in, or the head of the audit log. */
  detail: string
}

interface Words {
  subject: string
  lines: readonly string[]
}

interface Template {
  /** The page that the e-mail links to, if any. */
  page: string | null
  words: Record<'fr' | 'en', (given: Given) => Words>
}

const templates: Record<EmailContent['template'], Template> = {
  invitation: {
    page: 'join',
    words: {
      fr: ({ merchant, name, detail }) => ({
        subject: `Invitation : ${merchant}`,
        lines: [
          `Bonjour ${name},`,
          '',
          `${merchant} vous invite à rejoindre son compte de paiements.`,
          `Choisissez votre mot de passe à cette adresse dans les ${limits.invitationHours} heures :`,
          '',
          detail,
          '',
          "Si vous n'attendiez pas cette invitation, ne faites rien.",
        ],
      }),
      en: ({ merchant, name, detail }) => ({
        subject: `Invitation: ${merchant}`,
        lines: [
          `Hello ${name},`,
          '',
          `${merchant} invites you to join its payments account.`,
          `Choose your password at this address, within ${limits.invitationHours} hours:`,
          '',
          detail,
          '',
          'If you did not expect this invitation, do nothing.',
        ],
      }),
    },
  },
  'password-reset': {
    page: 'reset-password',
    words: {
      fr: ({ merchant, name, detail }) => ({
        subject: `Nouveau mot de passe : ${merchant}`,
        lines: [
          `Bonjour ${name},`,
          '',
          `Choisissez un nouveau mot de passe pour le compte de ${merchant} à cette adresse, dans l'heure :`,
          '',
          detail,
          '',
          "Si vous n'avez pas fait cette demande, ne faites rien : votre mot de passe reste le même.",
        ],
      }),
      en: ({ merchant, name, detail }) => ({
        subject: `New password: ${merchant}`,
        lines: [
          `Hello ${name},`,
          '',
          `To choose a new password for the account of ${merchant}, open this address within an hour:`,
          '',
          detail,
          '',
          'If you did not ask for this, do nothing: your password stays the same.',
        ],
      }),
    },
  },
  'new-address': {
    page: null,
    words: {
      fr: ({ merchant, name, detail }) => ({
        subject: `Nouvelle connexion : ${merchant}`,
        lines: [
          `Bonjour ${name},`,
          '',
          `Votre accès au compte de ${merchant} a été utilisé depuis une nouvelle adresse :`,
          '',
          detail,
          '',
          "Si c'était vous, ne faites rien. Sinon, changez votre mot de passe et prévenez votre équipe.",
        ],
      }),
      en: ({ merchant, name, detail }) => ({
        subject: `New sign-in: ${merchant}`,
        lines: [
          `Hello ${name},`,
          '',
          `Your access to the account of ${merchant} was used from a new address:`,
          '',
          detail,
          '',
          'If it was you, do nothing. If not, change your password and tell your team.',
        ],
      }),
    },
  },
  'audit-log-head': {
    page: null,
    words: {
      fr: ({ merchant, name, detail }) => ({
        subject: `Journal d'audit : ${merchant}`,
        lines: [
          `Bonjour ${name},`,
          '',
          `Voici la dernière ligne signée du journal d'audit du compte de ${merchant} :`,
          '',
          detail,
          '',
          "Conservez cet e-mail. Pour vérifier plus tard qu'aucune entrée n'a changé ni disparu,",
          "passez cette ligne à verifyAuditLog (head) de l'API GraphQL.",
        ],
      }),
      en: ({ merchant, name, detail }) => ({
        subject: `Audit log: ${merchant}`,
        lines: [
          `Hello ${name},`,
          '',
          `This is the last signed line of the audit log of the account of ${merchant}:`,
          '',
          detail,
          '',
          'Keep this e-mail. To check later that no entry was changed or removed,',
          'pass this line to verifyAuditLog (head) of the GraphQL API.',
        ],
      }),
    },
  },
}

function aadOf(id: string): string {
  return `mail:${id}`
}
