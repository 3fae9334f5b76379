import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import { seal, unseal } from '../../access/seal.ts'
import type { MasterSecret } from '../../access/secrets.ts'
import type { OutgoingMail } from '../../mail/mailer.ts'

/** What a letter says, before it is put into words. */
export interface Letter {
  template: 'invitation' | 'password-reset'
  locale: 'fr' | 'en'
  to: { name: string; address: string }
  /** The merchant's name. */
  merchant: string
  /** What only the receiver must have. */
  proof: string
}

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
  await tx.query('INSERT INTO mail (id, merchant_id, template, sealed) VALUES ($1, $2, $3, $4)', [
    id,
    merchantId,
    letter.template,
    sealed,
  ])
}

/** What a sealed letter says. @throws Error where it was altered */
export function openLetter(master: MasterSecret, id: string, sealed: Uint8Array): Letter {
  return JSON.parse(unseal(master.sealingKey, sealed, place(id)).toString()) as Letter
}

/** A letter in words. The proof stands behind a `#`: no server on the way writes that down. */
export function wordLetter(id: string, letter: Letter, publicUrl: string): OutgoingMail {
  const { template, locale, to, merchant, proof } = letter
  const { page, words } = templates[template]
  const { subject, lines } = words[locale]({ merchant, name: to.name })
  const link = `${publicUrl}/${page}?lang=${locale}#${proof}`
  return { id, to, subject, text: lines.join('\n').replace('LINK', link) }
}

interface Words {
  subject: string
  /** `LINK` stands for the address. */
  lines: readonly string[]
}

interface Template {
  /** The page that the letter leads to. */
  page: string
  words: Record<'fr' | 'en', (given: { merchant: string; name: string }) => Words>
}

const templates: Record<Letter['template'], Template> = {
  invitation: {
    page: 'join',
    words: {
      fr: ({ merchant, name }) => ({
        subject: `Invitation : ${merchant}`,
        lines: [
          `Bonjour ${name},`,
          '',
          `${merchant} vous invite à travailler avec son compte de paiements.`,
          'Choisissez votre mot de passe à cette adresse, dans les 72 heures :',
          '',
          'LINK',
          '',
          "Si vous n'attendiez pas cette invitation, ne faites rien.",
        ],
      }),
      en: ({ merchant, name }) => ({
        subject: `Invitation: ${merchant}`,
        lines: [
          `Hello ${name},`,
          '',
          `${merchant} invites you to work with its payments account.`,
          'Choose your password at this address, within 72 hours:',
          '',
          'LINK',
          '',
          'If you did not expect this invitation, do nothing.',
        ],
      }),
    },
  },
  'password-reset': {
    page: 'reset-password',
    words: {
      fr: ({ merchant, name }) => ({
        subject: `Nouveau mot de passe : ${merchant}`,
        lines: [
          `Bonjour ${name},`,
          '',
          `Choisissez un nouveau mot de passe pour le compte de ${merchant} à cette adresse, dans l'heure :`,
          '',
          'LINK',
          '',
          "Si vous n'avez rien demandé, ne faites rien : votre mot de passe reste le même.",
        ],
      }),
      en: ({ merchant, name }) => ({
        subject: `New password: ${merchant}`,
        lines: [
          `Hello ${name},`,
          '',
          `To choose a new password for the account of ${merchant}, open this address within an hour:`,
          '',
          'LINK',
          '',
          'If you asked for nothing, do nothing: your password stays as it is.',
        ],
      }),
    },
  },
}

function place(id: string): string {
  return `mail:${id}`
}
