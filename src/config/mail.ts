import { z } from 'zod'
import { Secret } from '../shared/secret.ts'

/** How letters to people leave. */
export interface MailSettings {
  /** `smtp://user:password@host:port`, or `smtps:`; null where there is no mail server. */
  smtpUrl: Secret | null
  /** Who writes: `Name <address>`. */
  from: string
  /** Where a sandbox without a mail server keeps its letters, as `.eml` files; null in production. */
  folder: string | null
  /** Who may read these letters at `/mail`. They hold links that sign people in. */
  readers: 'loopback' | 'public'
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
  SANDBOX_MAIL: z.enum(['loopback', 'public']).default('loopback'),
}

interface ReadSettings {
  SMTP_URL?: string | undefined
  MAIL_FROM?: string | undefined
  SANDBOX_MAIL: 'loopback' | 'public'
}

/** @param folder of a sandbox, where it keeps letters that no server takes */
export function readMail(
  { SMTP_URL: url, MAIL_FROM: from, SANDBOX_MAIL: readers }: ReadSettings,
  folder: string | null,
): MailSettings {
  return {
    smtpUrl: url ? new Secret(url) : null,
    from: from ?? 'Sandbox <sandbox@localhost>',
    folder: url ? null : folder,
    readers,
  }
}
