import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join, relative } from 'node:path'
import { z } from 'zod'
import { settings } from '../config/config.ts'
import { limitSettings } from '../config/operator-limits.ts'
import { faceSettings } from '../config/operator-faces.ts'
import { checkoutSettings, gsmaSettings } from '../config/operators.ts'
import { fileSettings } from '../config/setting-files.ts'
import { events } from '../events/catalogue.ts'
import { idempotencyKeyLengthMax } from '../http/idempotency.ts'
import { payoutScheduleMaxMs } from '../resources/payouts/create.ts'
import { refusals } from '../shared/errors.ts'
import { referenceLengthMax } from '../shared/input.ts'
import { limits } from '../shared/limits.ts'
import { grouped } from '../shared/money.ts'
import { possibleTypesOf, scalarRows, typesWithoutIdOf } from './client-files.ts'
import { printOperations } from './operation-types.ts'
import { adminCommands, adminFlags } from './usage.ts'

const root = join(import.meta.dirname, '../..')
const printed = 'This page is printed from the code by `npm run docs`. Do not edit it by hand.'

/**
 * Makes the files that are printed from tables in the code and the schema, by their paths: the pages of the
 * reference, and the operations of the dashboard.
 */
export function printedFiles(): Record<string, string> {
  const pages = {
    'commands.md': commandsPage(),
    'configuration.md': configurationPage(),
    'errors.md': errorsPage(),
    'events.md': eventsPage(),
    'limits.md': limitsPage(),
    'possibleTypes.json': json(possibleTypesOf()),
    'scalars.md': scalarsPage(),
    'typesWithoutId.json': json(typesWithoutIdOf()),
  }
  const files = Object.entries(pages).map(([name, text]) => [`src/docs/reference/${name}`, text] as const)
  return { ...Object.fromEntries(files), 'src/dashboard/operations.ts': dashboardOperations() }
}

function dashboardOperations(): string {
  const paths = globSync('src/dashboard/operations/*.graphql', { cwd: root }).toSorted()
  const documents = paths.map((path) => [basename(path), readFileSync(join(root, path), 'utf8')] as const)
  return printOperations(Object.fromEntries(documents))
}

/** Writes the files. @returns their paths */
export function writePrinted(): string[] {
  return Object.entries(printedFiles()).map(([path, text]) => {
    writeFileSync(join(root, path), text)
    return relative(process.cwd(), join(root, path))
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

const json = (value: unknown) => `${JSON.stringify(value, null, 2)}\n`

const code = (text: string) => `\`${text}\``

function commandsPage(): string {
  return page(
    'Commands of administration',
    [
      'Run a command as `npm run admin -- COMMAND` with the `DATA_DIR` or `DATABASE_URL` of the service.',
      'Unless the table says otherwise, the service may be running or stopped. The exit code is 0 if the',
      'command succeeded, 1 if it was refused or a proof failed, and 2 if the command does not exist or has',
      'a wrong flag. The guide is [administration](../guide/administration.md).',
    ].join('\n'),
    table(
      ['Command', 'What it does'],
      adminCommands.map(({ call, does }) => [code(call), does]),
    ),
    table(
      ['Flag', 'Meaning'],
      adminFlags.map(({ call, does }) => [code(call), does]),
    ),
    'The commands for developers, such as `npm test`: [contributing](../contributing.md).',
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
    'The service reads these environment variables at its start. A wrong value stops the start, with a ' +
      'sentence that says why.\n' +
      `Instead of ${fileSettings.map(code).join(', ')} or an \`OPERATOR_...\` you can set \`NAME_FILE\` ` +
      '(such as `SECRET_KEY_FILE`): the path of a file that contains the value.',
    table(head, settingRows(settings)),
    '## Operators',
    [
      'In the names, X is A, B, C or D. In production an operator without `OPERATOR_X_DRIVER` is not',
      'connected; the sandbox has all four. `OPERATOR_X_DRIVER` is `gsma-mm` (a prompt on the phone) or',
      '`checkout-session` (a hosted payment page).',
    ].join('\n'),
    'These settings bound the calls of one process. The sandbox reads them too, and allows more if they ' +
      'are not set.',
    table(head, settingRows(z.object(limitSettings), 'OPERATOR_X_')),
    'These settings say how payers and merchants know an operator, on pages and in GraphQL:',
    table(head, settingRows(faceSettings, 'OPERATOR_X_')),
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
      'REST answers an error with its status and `{ "success": false, "message": "...", "code": "...",',
      '"docs": "...", "request_id": "..." }`. `docs` is the address of the explanation of the code on',
      '`/docs/errors`, a page of the service. Your program should look at the status and the code, because',
      'messages may change. 401 also has `WWW-Authenticate`: its `error_description` says whether the token',
      'is malformed, has expired or was revoked; without a token it has no error. A GraphQL mutation',
      'returns a refusal as one of the types of its result, with `code` and `message`. Errors of the whole',
      'request are in `errors`, with the code in `extensions.code`. 429 and 503 say in `Retry-After` when to',
      'try again. A refusal writes nothing, except where the table says that it is recorded.',
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
      'such as `recipients[3].amount`. ' +
      'A GraphQL variable of a wrong type is an error whose message and `extensions.problems` name ' +
      '`input.recipients[3].amount`.\n' +
      '- `required_scopes` (403): the scopes that the token lacks.\n' +
      '- `limit` (403): the limit of the API key or token that the payment exceeds.\n' +
      '- `existing_transaction`, `existing_payout` (409): `id` and `status` of the payment with ' +
      'this reference.',
  )
}

function eventsPage(): string {
  return page(
    'Events',
    [
      'A webhook endpoint receives the events that you name when you register it (see',
      '[webhooks](../guide/webhooks.md)). `data` has the fields of the table, without those that have no',
      'value. Every delivery also has `id`, `event`, `sequence`, `merchant_id` and `timestamp`.',
    ].join('\n'),
    table(
      ['Event', 'Sent when', 'Fields of `data`'],
      Object.entries(events).map(([name, { tells, webhook }]) => [
        code(name),
        tells,
        webhook.map(code).join(', '),
      ]),
    ),
    '`POST /webhooks/{id}/test` sends the sample event `test`, which is not part of the log.',
  )
}

function scalarsPage(): string {
  return page(
    'Scalars',
    [
      'The GraphQL schema has these scalars beside `ID`, `String`, `Int`, `Float` and `Boolean`. A code',
      'generator needs their types in your language: the guide',
      '[GraphQL clients](../guide/graphql-clients.md) has a configuration with those of TypeScript.',
    ].join('\n'),
    table(
      ['Scalar', 'In JSON', 'TypeScript', 'Meaning', 'Specified by'],
      scalarRows().map((row) => [
        code(row.name),
        row.json,
        code(row.typescript),
        row.description,
        row.specifiedBy,
      ]),
    ),
  )
}

const minute = 60_000
const francs = (amount: number) => `${grouped(amount)} F`
const bytes = (count: number) => (count < 1_048_576 ? `${count / 1_024} KiB` : `${count / 1_048_576} MiB`)

/** The limits of sign-ins by API key, for the page of the limits. */
function keyRows(): [string, string][] {
  const within = (max: number, ms: number) => `${max} in ${ms / minute} minutes`
  const wrong = within(limits.keyFailuresMax, limits.keyFailuresWindowMs)
  return [
    ['Sign-ins by API key', `${within(limits.authAttemptsMax, limits.authWindowMs)} per key and address`],
    ['Wrong secrets of an API key', `${wrong}, over all addresses from which the key never signed in`],
  ]
}

function limitsPage(): string {
  const rows: [string, string][] = [
    ['Smallest collection', francs(limits.collectAmountMinXof)],
    ['Smallest deposit, payout or recipient of a batch', francs(limits.disburseAmountMinXof)],
    ['Largest collection or deposit', francs(limits.amountMaxXof)],
    ['Largest payout or recipient of a batch', francs(limits.payoutAmountMaxXof)],
    ['Time of a scheduled payout', `at most ${payoutScheduleMaxMs / (1_440 * minute)} days ahead`],
    ['Length of `reference`', `1 to ${referenceLengthMax} characters`],
    ['Length of `Idempotency-Key`', `1 to ${idempotencyKeyLengthMax} characters`],
    ...keyRows(),
    [
      'Lifetime of a token',
      `${limits.tokenHoursMin} to ${limits.tokenHoursMax} hours, ${limits.tokenHoursDefault} if not given`,
    ],
    ['Time until an unconfirmed collection expires', `${limits.collectionLifetimeMs / (60 * minute)} hours`],
    [
      'Time until a payment that waits for approval is cancelled',
      `${limits.approvalLifetimeMs / (1_440 * minute)} days`,
    ],
    ['Answer of `POST /deposit`', `within ${limits.depositWaitMs / 1_000} seconds`],
    ['Page of a list', `1 to ${limits.pageSizeMax}, ${limits.pageSizeDefault} if not given`],
    ['Recipients of a batch', grouped(limits.batchRecipientsMax)],
    ['Body of a request', bytes(limits.bodyMaxBytes)],
    ['Body of a request with recipients', bytes(limits.recipientsBodyMaxBytes)],
    ['Webhook endpoints of a merchant', String(limits.webhooksPerMerchantMax)],
    ['Answer of a webhook endpoint', `within ${limits.webhookDeadlineMs / 1_000} seconds`],
    ['API keys of a merchant', String(limits.apiKeysMax)],
    ['Password', `${limits.passwordLengthMin} to ${limits.passwordLengthMax} characters`],
    ['Time without a request that ends the session of a person', `${limits.sessionIdleMs / minute} minutes`],
    ['Sessions of one person', String(limits.sessionsPerMemberMax)],
    ['Name of a beneficiary', `1 to ${limits.beneficiaryNameLengthMax} characters`],
    ['Length of a description', `${limits.descriptionLengthMax} characters`],
    ['Address of a payment link', `${limits.linkSlugLengthMin} to ${limits.linkSlugLengthMax} characters`],
    ['Objects that one GraphQL operation may give', grouped(limits.graphqlCostMax)],
    ['Fields and fragments of a GraphQL document', grouped(limits.graphqlSelectionsMax)],
    ['Subscriptions of one token', String(limits.subscriptionsPerTokenMax)],
    ['Subscriptions of a merchant', grouped(limits.subscriptionsPerMerchantMax)],
    ['Different subscriptions of a merchant to many objects', String(limits.subscriptionKindsPerMerchantMax)],
    ['Different subscriptions of a merchant to one object', String(limits.subscriptionKindsPerObjectMax)],
    ['Different subscriptions of a merchant to single objects', String(limits.subscriptionKindsOfObjectsMax)],
    ['WebSocket connections of one token', String(limits.webSocketsPerTokenMax)],
    ['WebSocket connections of one address', String(limits.webSocketsPerAddressMax)],
  ]
  return page(
    'Limits',
    [
      'These limits do not depend on settings. The settings `RATE_LIMIT_...` limit the number of requests in',
      'a second or minute: see [configuration](configuration.md). The headers `RateLimit-Policy` and',
      '`RateLimit` of an answer say how many requests are left. `extensions.cost` of a GraphQL answer says',
      'how many objects it counted. A 429 says in `Retry-After` when to try again.',
    ].join('\n'),
    table(['Limit', 'Value'], rows),
    [
      'All nodes count requests together, in the database. A window begins with its first request. While the',
      'database does not answer, each process counts its own requests.',
    ].join('\n'),
  )
}
