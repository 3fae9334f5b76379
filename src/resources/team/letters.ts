import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import { seal, unseal } from '../../identity/seal.ts'
import type { MasterSecret } from '../../identity/secrets.ts'
import type { OutgoingMail } from '../../mail/mailer.ts'
import { sqlFunction } from '../../database/sql-function.ts'

const keepLetter = sqlFunction('write_letter', {
  takes: { letter: 'uuid', merchant: 'int', namedTemplate: 'text', sealedText: 'bytea' },
  gives: 'void',
})

/** What a letter says, before it is put into words. */
export type Letter = {
  locale: 'fr' | 'en'
  to: { name: string; address: string }
  /** The merchant's name. */
  merchant: string
} & (
  | {
      template: 'invitation' | 'password-reset'
      /** What only the receiver must have. */
      proof: string
    }
  | {
      template: 'new-address'
      /** The address that somebody signed in from, and when (ISO 8601). */
      where: string
      at: string
    }
  | {
      template: 'audit-log-head'
      /** The head of the audit log in one line, and how many entries lie before it. */
      head: string
      entries: number
    }
)

/**
 * Writes a letter in the transaction of what it tells of; once that is committed a job sends it
 * (`mail.send`). It is kept sealed until it was sent: what it proves is in no other place.
 */
export async function writeLetter(
  tx: pg.PoolClient,
  master: MasterSecret,
  merchantId: number,
  letter: Letter,
): Promise<void> {
  const id = randomUUID()
  const sealed = seal(master.sealingKey, Buffer.from(JSON.stringify(letter)), place(id))
  await keepLetter(tx, {
    letter: id,
    merchant: merchantId,
    namedTemplate: letter.template,
    sealedText: sealed,
  })
}

/** What a sealed letter says. @throws Error where it was altered */
export function openLetter(master: MasterSecret, id: string, sealed: Uint8Array): Letter {
  return JSON.parse(unseal(master.sealingKey, sealed, place(id)).toString()) as Letter
}

/** A letter in words. The proof stands behind a `#`: no server on the way writes that down. */
export function wordLetter(id: string, letter: Letter, publicUrl: string): OutgoingMail {
  const { template, locale, to, merchant } = letter
  const { page, words } = templates[template]
  const told = ((): string => {
    if (letter.template === 'new-address') return `${letter.where}, ${wordTime(letter.at, locale)}`
    if (letter.template === 'audit-log-head') return letter.head
    return `${publicUrl}/${page}?lang=${locale}#${letter.proof}`
  })()
  const { subject, lines } = words[locale]({ merchant, name: to.name, told })
  return { id, to, subject, text: lines.join('\n') }
}

function wordTime(at: string, locale: 'fr' | 'en'): string {
  const format = { dateStyle: 'long', timeStyle: 'short', timeZone: 'UTC' } as const
  return `${new Date(at).toLocaleString(locale === 'fr' ? 'fr' : 'en-GB', format)} (UTC)`
}

interface Given {
  merchant: string
  name: string
  /** The link, or where and when it happened, or the head of the audit log. */
  told: string
}

interface Words {
  subject: string
  lines: readonly string[]
}

interface Template {
  /** The page that the letter leads to, if any. */
  page: string | null
  words: Record<'fr' | 'en', (given: Given) => Words>
}

const templates: Record<Letter['template'], Template> = {
  invitation: {
    page: 'join',
    words: {
      fr: ({ merchant, name, told }) => ({
        subject: `Invitation : ${merchant}`,
        lines: [
          `Bonjour ${name},`,
          '',
          `${merchant} vous invite à travailler avec son compte de paiements.`,
          'Choisissez votre mot de passe à cette adresse, dans les 72 heures :',
          '',
          told,
          '',
          "Si vous n'attendiez pas cette invitation, ne faites rien.",
        ],
      }),
      en: ({ merchant, name, told }) => ({
        subject: `Invitation: ${merchant}`,
        lines: [
          `Hello ${name},`,
          '',
          `${merchant} invites you to work with its payments account.`,
          'Choose your password at this address, within 72 hours:',
          '',
          told,
          '',
          'If you did not expect this invitation, do nothing.',
        ],
      }),
    },
  },
  'password-reset': {
    page: 'reset-password',
    words: {
      fr: ({ merchant, name, told }) => ({
        subject: `Nouveau mot de passe : ${merchant}`,
        lines: [
          `Bonjour ${name},`,
          '',
          `Choisissez un nouveau mot de passe pour le compte de ${merchant} à cette adresse, dans l'heure :`,
          '',
          told,
          '',
          "Si vous n'avez rien demandé, ne faites rien : votre mot de passe reste le même.",
        ],
      }),
      en: ({ merchant, name, told }) => ({
        subject: `New password: ${merchant}`,
        lines: [
          `Hello ${name},`,
          '',
          `To choose a new password for the account of ${merchant}, open this address within an hour:`,
          '',
          told,
          '',
          'If you asked for nothing, do nothing: your password stays as it is.',
        ],
      }),
    },
  },
  'new-address': {
    page: null,
    words: {
      fr: ({ merchant, name, told }) => ({
        subject: `Nouvelle connexion : ${merchant}`,
        lines: [
          `Bonjour ${name},`,
          '',
          `Une connexion à votre accès au compte de ${merchant} vient d'une adresse nouvelle :`,
          '',
          told,
          '',
          "Si c'était vous, ne faites rien. Sinon, changez votre mot de passe et prévenez votre équipe.",
        ],
      }),
      en: ({ merchant, name, told }) => ({
        subject: `New sign-in: ${merchant}`,
        lines: [
          `Hello ${name},`,
          '',
          `Somebody signed in as you to the account of ${merchant}, from a new address:`,
          '',
          told,
          '',
          'If it was you, do nothing. If not, change your password and tell your team.',
        ],
      }),
    },
  },
  'audit-log-head': {
    page: null,
    words: {
      fr: ({ merchant, name, told }) => ({
        subject: `Journal d'audit : ${merchant}`,
        lines: [
          `Bonjour ${name},`,
          '',
          `Voici la fin du journal d'audit du compte de ${merchant}, à ce jour :`,
          '',
          told,
          '',
          "Gardez cette lettre. La ligne montre plus tard que rien avant elle n'a été changé ni retiré :",
          "donnez-la à verifyAuditLog (head) de l'API GraphQL.",
        ],
      }),
      en: ({ merchant, name, told }) => ({
        subject: `Audit log: ${merchant}`,
        lines: [
          `Hello ${name},`,
          '',
          `This is the end of the audit log of the account of ${merchant}, as of today:`,
          '',
          told,
          '',
          'Keep this letter. The line shows later that nothing before it was changed or taken away:',
          'give it to verifyAuditLog (head) of the GraphQL API.',
        ],
      }),
    },
  },
}

function place(id: string): string {
  return `mail:${id}`
}
