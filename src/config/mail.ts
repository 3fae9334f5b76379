import { z } from 'zod'
import { Secret } from '../shared/secret.ts'

/** The settings of the e-mails that the service sends. */
export interface MailSettings {
  /** `smtp://user:password@host:port`, or `smtps:`; null if there is no mail server. */
  smtpUrl: Secret | null
  /** The sender: an address, or `Name <address>`. */
  from: string
  /** The folder where a sandbox without a mail server keeps its e-mails as `.eml` files; otherwise null. */
  folder: string | null
  /** The clients that may read these e-mails at `/mail`. The e-mails contain links that sign people in. */
  readers: 'loopback' | 'public'
}

const sandboxSender = 'Sandbox <sandbox@localhost>'

export const mailSettings = {
  SMTP_URL: z
    .string()
    .regex(/^smtps?:\/\//, 'must begin with smtp:// or smtps://')
    .refine((value) => URL.canParse(value), 'must be an address')
    .optional()
    .describe(
      'The mail server: smtp://user:password@host:port, or smtps://. Production without it ' +
        'sends no e-mails: no invitations, no password resets, no notices of new sign-ins. The log says so ' +
        'at the start.',
    ),
  MAIL_FROM: z
    .string()
    .regex(
      /^(?:[^<>\r\n]*<[^<>@\s]+@[^<>@\s]+>|[^<>@\s]+@[^<>@\s]+)$/,
      'must be an address, or Name <address>',
    )
    .optional()
    .meta({
      description: 'The sender of e-mails: an address, or Name <address>. Required with SMTP_URL.',
      usual: sandboxSender,
    }),
  SANDBOX_MAIL: z
    .enum(['loopback', 'public'])
    .default('loopback')
    .describe(
      'A sandbox without SMTP_URL shows its e-mails at /mail. loopback: only to clients on the same ' +
        'machine, if HOST is loopback too. public: to all clients. The e-mails contain links that sign ' +
        'people in.',
    ),
}

interface ReadSettings {
  SMTP_URL?: string | undefined
  MAIL_FROM?: string | undefined
  SANDBOX_MAIL: 'loopback' | 'public'
}

/**
 * Reads these settings.
 * @param folder where a sandbox without a mail server keeps its e-mails; null in production
 */
export function readMail(
  { SMTP_URL: url, MAIL_FROM: from, SANDBOX_MAIL: readers }: ReadSettings,
  folder: string | null,
): MailSettings {
  return {
    smtpUrl: url ? new Secret(url) : null,
    from: from ?? sandboxSender,
    folder: url ? null : folder,
    readers,
  }
}
