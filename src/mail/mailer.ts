import { mkdir, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { MailSettings } from '../config/mail.ts'
import type { Log } from '../telemetry/log.ts'

/** A letter as it leaves. */
export interface OutgoingMail {
  /** A UUID, the same however often it is sent: receivers know a repeat by it. */
  id: string
  to: { name: string; address: string }
  subject: string
  text: string
}

export interface Mailer {
  /** Hands a letter over. @throws Error where it was not taken: it may be tried again */
  send(mail: OutgoingMail): Promise<void>
}

/**
 * Sends letters by SMTP, or puts them into the sandbox's folder. The library loads with the first one. Where
 * there is neither, it says so once in the log.
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

/** Choice: a server that takes longer is asked again by the next try of the job. */
const timeouts = { connectionTimeout: 10_000, greetingTimeout: 10_000, socketTimeout: 20_000 }

/** Written whole, then named: whoever reads the folder sees no half letter. */
async function keep(folder: string, id: string, message: Buffer): Promise<void> {
  await mkdir(folder, { recursive: true })
  const path = join(folder, `${id}.eml`)
  await writeFile(`${path}.new`, message, { mode: 0o600 })
  await rename(`${path}.new`, path)
}
