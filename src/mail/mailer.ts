import { mkdir, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { MailSettings } from '../config/mail.ts'
import type { Log } from '../telemetry/log.ts'

/** An e-mail that is ready to be sent. */
export interface OutgoingMail {
  /** A UUID, the same each time the e-mail is sent again: receivers recognise a repetition by it. */
  id: string
  to: { name: string; address: string }
  subject: string
  text: string
}

export interface Mailer {
  /** Sends an e-mail. @throws Error if the e-mail was not accepted: the caller may try again */
  send(mail: OutgoingMail): Promise<void>
}

/**
 * Opens a mailer that sends e-mails by SMTP, or writes them into the sandbox's folder. The mail library loads
 * with the first e-mail. If there is neither a server nor a folder, the log says so once.
 */
export function openMailer({ smtpUrl, from, folder }: MailSettings, log: Pick<Log, 'warn'>): Mailer {
  const hasServer = smtpUrl !== null
  if (!hasServer && folder === null) {
    log.warn('no mail server: SMTP_URL is not set. Invitations, password resets and alerts are not sent')
  }
  const open = async () => {
    const { createTransport } = await import('nodemailer')
    const guards = { disableFileAccess: true, disableUrlAccess: true }
    return smtpUrl === null
      ? createTransport({ ...guards, streamTransport: true, buffer: true })
      : createTransport({ ...guards, ...timeouts, url: smtpUrl.reveal() })
  }
  let transport: ReturnType<typeof open> | null = null

  return {
    async send({ id, ...email }) {
      if (!hasServer && folder === null) throw new Error('There is no mail server: set SMTP_URL.')
      transport ??= open()
      const sent: { message?: unknown } = await (await transport).sendMail({
        ...email,
        from,
        messageId: `<${id}@${/@([\w.-]+)/.exec(from)?.[1] ?? 'localhost'}>`,
        textEncoding: 'quoted-printable',
        headers: { 'Auto-Submitted': 'auto-generated' },
      })
      if (folder !== null && Buffer.isBuffer(sent.message)) await keep(folder, id, sent.message)
    },
  }
}

/** The time limits of a mail server. Choice: if a server takes longer, the job tries again later. */
const timeouts = { connectionTimeout: 10_000, greetingTimeout: 10_000, socketTimeout: 20_000 }

/** Writes an e-mail to a file and then renames it, so that a reader of the folder never sees half a file. */
async function keep(folder: string, id: string, message: Buffer): Promise<void> {
  await mkdir(folder, { recursive: true })
  const path = join(folder, `${id}.eml`)
  await writeFile(`${path}.new`, message, { mode: 0o600 })
  await rename(`${path}.new`, path)
}
