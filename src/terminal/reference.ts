import { writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { z } from 'zod'
import { settings } from '../config/config.ts'
import { limitSettings } from '../config/operator-limits.ts'
import { checkoutSettings, gsmaSettings } from '../config/operators.ts'
import { fileSettings } from '../config/setting-files.ts'
import { events } from '../events/catalogue.ts'
import { authAttemptsMax } from '../identity/authenticate.ts'
import { refusals } from '../shared/errors.ts'
import { limits } from '../shared/limits.ts'
import { adminCommands, adminFlags } from './usage.ts'

const folder = join(import.meta.dirname, '../docs/reference')
const printed = 'This page is printed from the code by `npm run docs`. Do not edit it by hand.'

/** Makes the pages of `src/docs/reference` from tables in the code, by their file names. */
export function referencePages(): Record<string, string> {
  return {
    'commands.md': commandsPage(),
    'configuration.md': configurationPage(),
    'errors.md': errorsPage(),
    'events.md': eventsPage(),
    'limits.md': limitsPage(),
  }
}

/** Writes the pages. @returns their paths */
export function writePages(): string[] {
  return Object.entries(referencePages()).map(([name, text]) => {
    writeFileSync(join(folder, name), text)
    return relative(process.cwd(), join(folder, name))
  })
}

function page(title: string, ...parts: readonly string[]): string {
  return `${[`# ${title}`, printed, ...parts].join('\n\n')}\n`
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const row = (cells: readonly string[]) =>
    `| ${cells.map((cell) => cell.replaceAll('|', String.raw`\|`)).join(' | ')} |`
  return [row(head), `|${'---|'.repeat(head.length)}`, ...rows.map(row)].join('\n')
}

const code = (text: string) => `\`${text}\``

function commandsPage(): string {
  return page(
    'Commands of administration',
    [
      'Each runs as `npm run admin -- COMMAND`, beside the running service or without it, with the same',
      '`DATA_DIR` or `DATABASE_URL`. The exit code is 0 when it is done, 1 when it was refused or a proof',
      'failed, and 2 when the command was not understood. How they are used:',
      '[administration](../guide/administration.md).',
    ].join('\n'),
    table(
      ['Command', 'What it does'],
      adminCommands.map(({ call, does }) => [code(call), does]),
    ),
    table(
      ['Flag', 'Meaning'],
      adminFlags.map(({ call, does }) => [code(call), does]),
    ),
    'What developers run (`npm test` and others): [contributing](../contributing.md).',
  )
}

/** The facts of a setting: those that zod knows, and those that its schema adds for this page. */
interface SettingFacts {
  description?: string
  default?: string | number | boolean
  usual?: string | { production: number; sandbox: number }
  minimum?: number
  maximum?: number
}

/** Makes the rows of a table of settings. @throws Error if a setting has no description */
export function settingRows(schema: z.ZodObject, prefix = ''): string[][] {
  const { properties = {} } = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' })
  return Object.entries(properties).map(([name, property]) => {
    const facts = property as SettingFacts
    if (!facts.description) throw new Error(`The setting ${name} has no description.`)
    return [code(`${prefix}${name}`), usualValue(facts), `${facts.description}${rangeOf(facts)}`]
  })
}

function usualValue({ usual, default: value }: SettingFacts): string {
  if (typeof usual === 'object') return `${usual.production}; sandbox ${usual.sandbox}`
  return String(usual ?? value ?? '')
}

function rangeOf({ minimum, maximum }: SettingFacts): string {
  return minimum === undefined || maximum === undefined || minimum < 0 ? '' : ` ${minimum} to ${maximum}.`
}

function configurationPage(): string {
  const shared = new Set(Object.keys(limitSettings))
  const operator = (schema: z.ZodObject, prefix: string) =>
    settingRows(schema, prefix).filter(([name = '']) => !shared.has(name.slice(1 + prefix.length, -1)))
  const head = ['Setting', 'If not set', 'Meaning']
  return page(
    'Configuration',
    'The service reads environment variables at its start. A wrong one stops it with a sentence.\n' +
      `${fileSettings.map(code).join(', ')} and all \`OPERATOR_...\` may be given as \`NAME_FILE\`: ` +
      'the path of a file that holds the value.',
    table(head, settingRows(settings)),
    '## Operators',
    [
      'X is A, B, C or D. In production an operator without `OPERATOR_X_DRIVER` is not connected; the',
      'sandbox has all four. `OPERATOR_X_DRIVER` is `gsma-mm` (a prompt on the phone) or',
      '`checkout-session` (a hosted payment page).',
    ].join('\n'),
    'How many calls one process makes. The sandbox reads these too, and allows more if they are not set.',
    table(head, settingRows(z.object(limitSettings), 'OPERATOR_X_')),
    'With the driver `gsma-mm`:',
    table(head, operator(gsmaSettings, 'OPERATOR_X_')),
    'With the driver `checkout-session`:',
    table(head, operator(checkoutSettings, 'OPERATOR_X_')),
  )
}

function errorsPage(): string {
  return page(
    'Errors',
    [
      'REST answers an error with its status and `{ "success": false, "message": "...", "request_id":',
      '"..." }`; branch on the status. A GraphQL mutation returns a refusal as a type of its result, with',
      '`code` and `message`; errors of the whole request stand in `errors`, with the code in',
      '`extensions.code`. 429 and 503 say in `Retry-After` when another try makes sense. A refusal writes',
      'nothing, except where the table says that it is recorded.',
    ].join('\n'),
    table(
      ['Code', 'REST', 'GraphQL type', 'Message'],
      Object.entries(refusals).map(([name, row]) => [
        code(name),
        String(row.status),
        code(row.type),
        'isOnRecord' in row ? `${row.message} (It is recorded.)` : row.message,
      ]),
    ),
    '## Details beside the message',
    '- `errors: [{ field, message }]` (400; GraphQL `problems`): every wrong field, ' +
      'such as `recipients[3].amount`.\n' +
      '- `required_scopes` (403): the scopes that the token lacks.\n' +
      '- `limit` (403): which limit of the API key or token it is.\n' +
      '- `existing_transaction`, `existing_payout` (409): `id` and `status` of what has this reference.',
  )
}

function eventsPage(): string {
  return page(
    'Events',
    [
      'An endpoint names the events that it wants (see [webhooks](../guide/webhooks.md)). `data` has the',
      'fields that are listed, where they apply to the event. Every delivery also has `id`, `event`,',
      '`sequence`, `merchant_id` and `timestamp`.',
    ].join('\n'),
    table(
      ['Event', 'Sent when', 'Fields of `data`'],
      Object.entries(events).map(([name, { tells, webhook }]) => [
        code(name),
        tells,
        webhook.map(code).join(', '),
      ]),
    ),
    '`test` is the sample of `POST /webhooks/{id}/test`; it is not part of the log.',
  )
}

const minute = 60_000
const francs = (amount: number) => `${amount.toLocaleString('en')} F`
const bytes = (count: number) => (count < 1_048_576 ? `${count / 1_024} KiB` : `${count / 1_048_576} MiB`)

function limitsPage(): string {
  const rows: [string, string][] = [
    ['Smallest collection', francs(limits.collectAmountMinXof)],
    ['Smallest deposit, payout or recipient of a batch', francs(limits.disburseAmountMinXof)],
    ['Largest collection or deposit', francs(limits.amountMaxXof)],
    ['Largest payout', francs(limits.payoutAmountMaxXof)],
    ['Sign-ins by API key', `${authAttemptsMax} in ${limits.authWindowMs / minute} minutes per key`],
    [
      'Lifetime of a token',
      `${limits.tokenHoursMin} to ${limits.tokenHoursMax} hours, ${limits.tokenHoursDefault} if not given`,
    ],
    ['Time until an unconfirmed collection expires', `${limits.collectionLifetimeMs / (60 * minute)} hours`],
    [
      'Time until a payment that waits for approval is cancelled',
      `${limits.approvalLifetimeMs / (1_440 * minute)} days`,
    ],
    ['Longest answer of `POST /deposit`', `${limits.depositWaitMs / 1_000} seconds`],
    ['Page of a list', `1 to ${limits.pageSizeMax}, ${limits.pageSizeDefault} if not given`],
    ['Recipients of a batch, and of one call', String(limits.batchRecipientsMax)],
    ['Body of a request', bytes(limits.bodyMaxBytes)],
    ['Body of a request with recipients', bytes(limits.recipientsBodyMaxBytes)],
    ['Webhook endpoints of a merchant', String(limits.webhooksPerMerchantMax)],
    ['Answer of a webhook endpoint', `within ${limits.webhookDeadlineMs / 1_000} seconds`],
    ['API keys of a merchant', String(limits.apiKeysMax)],
    ['Password', `${limits.passwordLengthMin} to ${limits.passwordLengthMax} characters`],
    ['Session of a person without a request', `${limits.sessionIdleMs / minute} minutes`],
    ['Sessions of one person', String(limits.sessionsPerMemberMax)],
    ['Length of a description', `${limits.descriptionLengthMax} characters`],
    ['Address of a payment link', `${limits.linkSlugLengthMin} to ${limits.linkSlugLengthMax} characters`],
    ['Objects that one GraphQL operation may give', String(limits.graphqlCostMax)],
    ['Fields and fragments of a GraphQL document', String(limits.graphqlSelectionsMax)],
    ['Subscriptions of one token', String(limits.subscriptionsPerTokenMax)],
    ['Subscriptions of a merchant', String(limits.subscriptionsPerMerchantMax)],
    ['WebSocket connections of one token', String(limits.webSocketsPerTokenMax)],
  ]
  return page(
    'Limits',
    [
      'These do not depend on settings. How many requests may come in a second or minute:',
      '`RATE_LIMIT_...` in [configuration](configuration.md). Each answer of a limited path says what is',
      'left (`RateLimit-Policy`, `RateLimit`), each GraphQL answer what it took (`extensions.cost`); 429',
      'has `Retry-After`.',
    ].join('\n'),
    table(['Limit', 'Value'], rows),
    [
      'Requests are counted in the database, in windows that begin with the first request. While the',
      'database does not answer, each process counts by itself.',
    ].join('\n'),
  )
}
