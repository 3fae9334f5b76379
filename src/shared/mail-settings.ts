import { z } from 'zod'
import { Secret } from './secret.ts'

/** How letters to people leave. */
export interface MailSettings {
  /** `smtp://user:password@host:port`, or `smtps:`; null where there is no mail server. */
  smtpUrl: Secret | null
  /** Who writes: `Name <address>`. */
  from: string
  /** Where a sandbox without a mail server keeps its letters, as `.eml` files; null in production. */
  folder: string | null
}

/** The settings of the environment. */
export const mailSettings = {
  SMTP_URL: z
    .string()
    .regex(/^smtps?:\/\//, 'must begin with smtp:// or smtps://')
    .refine((value) => URL.canParse(value), 'must be an address')
    .optional(),
  MAIL_FROM: z
    .string()
    .regex(
      /^(?:[^<>\r\n]*<[^<>@\s]+@[^<>@\s]+>|[^<>@\s]+@[^<>@\s]+)$/,
      'must be an address, or Name <address>',
    )
    .optional(),
}

interface ReadSettings {
  SMTP_URL?: string | undefined
  MAIL_FROM?: string | undefined
}

/** @param folder of a sandbox, where it keeps letters that no server takes */
export function readMail(
  { SMTP_URL: url, MAIL_FROM: from }: ReadSettings,
  folder: string | null,
): MailSettings {
  return {
    smtpUrl: url ? new Secret(url) : null,
    from: from ?? 'Sandbox <sandbox@localhost>',
    folder: url ? null : folder,
  }
}
