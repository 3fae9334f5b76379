import { expect, test } from 'vitest'
import { readConfig } from '../../src/config/config.ts'
import { openMailer } from '../../src/mail/mailer.ts'

const production = {
  MODE: 'production',
  SECRET_KEY: 'k'.repeat(32),
  PUBLIC_URL: 'https://pay.example',
  DATABASE_URL: 'postgresql://user:hidden@db.example/payments',
}
const server = { SMTP_URL: 'smtp://mail.example', MAIL_FROM: 'Shop <shop@pay.example>' }

test.each<[string, Record<string, string>, number]>([
  ['production without SMTP_URL logs at the start that no email is sent', production, 1],
  ['production with a mail server logs nothing', { ...production, ...server }, 0],
  ['a sandbox keeps its emails and logs nothing', {}, 0],
])('%s', (_what, environment, lines) => {
  const logged: string[] = []
  const log = { warn: (line: string) => logged.push(line) } as unknown as Parameters<typeof openMailer>[1]
  openMailer(readConfig(environment).mail, log)
  expect(logged).toHaveLength(lines)
  for (const line of logged) expect(line).toContain('SMTP_URL is not set')
})
