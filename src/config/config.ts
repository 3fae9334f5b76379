import { isIP } from 'node:net'
import { join, resolve } from 'node:path'
import { z } from 'zod'
import { type ConnectionMaxima, connectionSettings, readConnectionMaxima } from './connections.ts'
import { auditHaltSettings, readAuditHalt } from './audit-halt.ts'
import { deliverySettings, type DeliveryPace, readDeliveryPace } from './delivery-pace.ts'
import { type MailSettings, mailSettings, readMail } from './mail.ts'
import { type NumberRanges, rangeSettings } from './number-ranges.ts'
import { limitSettings, type OperatorLimits, operatorLimits } from './operator-limits.ts'
import { paceSettings, readPace, type RequestPace } from './request-pace.ts'
import { type Provider, providers } from '../shared/providers.ts'
import { Secret } from '../shared/secret.ts'
import { withFiles } from './setting-files.ts'

/** How a push-prompt operator of the GSMA Mobile Money API is reached. */
export interface GsmaSettings {
  driver: 'gsma-mm'
  provider: Provider
  baseUrl: string
  tokenUrl: string
  clientId: string
  clientSecret: Secret
  apiKey: Secret | null
  /** Our own account at the operator, `type:identifier` (`accountid:POOL`). */
  account: string
  /** How it tells outcomes: by callback, by being polled, or at once where it can. */
  flow: 'callback' | 'polling'
  /** Disbursements answer with their final state. */
  disburseIsSynchronous: boolean
  /** The operator's own words for a transaction's status, in lower case. */
  statusMap: Readonly<Record<string, 'settled' | 'pending' | 'refused' | 'reversed'>>
  limits: OperatorLimits
}

/** How a hosted-checkout operator is reached. */
export interface CheckoutSettings {
  driver: 'checkout-session'
  provider: Provider
  baseUrl: string
  apiKey: Secret
  /** Current first; older ones still verify while the operator rotates. */
  webhookSecrets: readonly Secret[]
  signatureHeader: string
  launchUrlField: string
  /** Name of the field that ties a session to one payer's number; null where anyone may pay. */
  payerField: string | null
  limits: OperatorLimits
}

export type OperatorSettings = GsmaSettings | CheckoutSettings

export interface Config {
  mode: 'sandbox' | 'production'
  host: string
  port: number
  /** Absolute folder of the embedded database, the master secret and the simulator's journal. */
  dataDir: string
  /** A PostgreSQL server of the owner's; null means the embedded one. */
  databaseUrl: Secret | null
  /** The epoch that the database must be in (it rises with each restore); null: not checked. */
  databaseEpoch: number | null
  /** The address that merchants and customers use, without a slash at its end; null means host and port. */
  publicUrl: string | null
  /** The address that operators call back; null means the public one. */
  callbackUrl: string | null
  /**
   * Keys, peppers and token signing keys are derived from or sealed with it; null means the file in
   * `dataDir`.
   */
  masterSecret: Secret | null
  /** Networks whose `X-Forwarded-For` is believed. */
  trustedProxies: readonly string[]
  pace: RequestPace
  connections: ConnectionMaxima
  deliveries: DeliveryPace
  mail: MailSettings
  /** Payments out are halted where the books were not proven for so long; 0: never. */
  auditHaltAfterMs: number
  /** Which operator a number suggests where nobody says. */
  numberRanges: NumberRanges
  logLevel: 'debug' | 'info' | 'warn' | 'error' | 'silent'
  /** The operator simulator of the sandbox: started here on this port, or one that runs elsewhere. */
  simulator: {
    url: string | null
    port: number
    controlToken: Secret
    /** What the owner set of the sandbox operators' limits (`OPERATOR_A_RPS`). */
    limits: Readonly<Record<string, string>>
  } | null
  operators: readonly OperatorSettings[]
}

const port = z.coerce.number().int().min(0).max(65_535)
const address = z
  .string()
  .refine((value) => URL.canParse(value) && /^https?:/.test(value), 'must be an http(s) address')
const flag = z.enum(['true', 'false', '1', '0']).transform((value) => value === 'true' || value === '1')

const settings = z.object({
  MODE: z.enum(['sandbox', 'production']).default('sandbox'),
  HOST: z.string().default('127.0.0.1'),
  PORT: port.default(4000),
  DATA_DIR: z.string().default('.data'),
  DATABASE_URL: z
    .string()
    .regex(/^postgres(ql)?:\/\//, 'must begin with postgresql://')
    .optional(),
  DATABASE_EPOCH: z.coerce.number().int('must be a whole number').min(1).max(2_000_000_000).optional(),
  PUBLIC_URL: address.optional(),
  CALLBACK_URL: address.optional(),
  SECRET_KEY: z.string().min(32, 'must have at least 32 characters').optional(),
  TRUSTED_PROXIES: z.string().default(''),
  ...paceSettings,
  ...connectionSettings,
  ...deliverySettings,
  ...mailSettings,
  ...rangeSettings,
  ...auditHaltSettings,
  LOG_LEVEL: z.enum(['debug', 'info', 'warn', 'error', 'silent']).default('info'),
  OPERATORS_PORT: port.default(4010),
  OPERATORS_URL: address.optional(),
  OPERATORS_CONTROL_TOKEN: z.string().min(8).default('sandbox-control'),
})

const gsmaSettings = z.object({
  BASE_URL: address,
  TOKEN_URL: address,
  CLIENT_ID: z.string().min(1),
  CLIENT_SECRET: z.string().min(1),
  API_KEY: z.string().optional(),
  ACCOUNT: z
    .string()
    .regex(/^[a-z]+:.+$/i, 'must be type:identifier')
    .default('accountid:POOL'),
  FLOW: z.enum(['callback', 'polling']).default('callback'),
  SYNCHRONOUS_DISBURSEMENT: flag.default(false),
  STATUS_MAP: z
    .string()
    .default('completed:settled,successful:settled,pending:pending,failed:refused,reversed:reversed'),
  ...limitSettings,
})

const checkoutSettings = z.object({
  BASE_URL: address,
  API_KEY: z.string().min(1),
  WEBHOOK_SECRETS: z.string().min(1),
  SIGNATURE_HEADER: z.string().default('Checkout-Signature'),
  LAUNCH_URL_FIELD: z.string().default('launch_url'),
  PAYER_FIELD: z.string().default('restrict_payer_mobile'),
  LOCK_PAYER: flag.default(false),
  ...limitSettings,
})

/** One or more settings are wrong; `message` names every one of them. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
}

/**
 * Reads every setting once; nothing else in the service reads the environment.
 * A setting `X` may be given as `X_FILE`, the path of a file that holds the value.
 * @throws ConfigError that lists every wrong setting
 */
export function readConfig(environment: Readonly<Record<string, string | undefined>> = process.env): Config {
  const values = withFiles(environment)
  const read = parse(settings, values, '')
  const problems: string[] = []
  const trustedProxies = read.TRUSTED_PROXIES.split(',')
    .map((entry) => entry.trim())
    .filter(Boolean)
  for (const entry of trustedProxies) {
    if (!isNetwork(entry)) problems.push(`TRUSTED_PROXIES: ${entry} is no address or CIDR range`)
  }
  const production = read.MODE === 'production'
  if (production && !read.SECRET_KEY) problems.push('SECRET_KEY: required in production')
  if (production && !read.PUBLIC_URL) problems.push('PUBLIC_URL: required in production')
  if (production && !read.DATABASE_URL && values['EMBEDDED_DB'] !== '1') {
    problems.push('DATABASE_URL: required in production (EMBEDDED_DB=1 keeps the embedded database)')
  }
  if (read.SMTP_URL && !read.MAIL_FROM) problems.push('MAIL_FROM: required with SMTP_URL')
  if (problems.length > 0) throw new ConfigError(problems.join('\n'))
  const simulator = production
    ? null
    : {
        url: read.OPERATORS_URL?.replace(/\/+$/, '') ?? null,
        port: read.OPERATORS_PORT,
        controlToken: new Secret(read.OPERATORS_CONTROL_TOKEN),
        limits: limitsOf(values),
      }
  if (simulator) sandboxOperators('http://sandbox.invalid', simulator.limits)
  return {
    mode: read.MODE,
    host: read.HOST,
    port: read.PORT,
    dataDir: resolve(read.DATA_DIR),
    databaseUrl: read.DATABASE_URL ? new Secret(read.DATABASE_URL) : null,
    databaseEpoch: read.DATABASE_EPOCH ?? null,
    publicUrl: read.PUBLIC_URL?.replace(/\/+$/, '') ?? null,
    callbackUrl: read.CALLBACK_URL?.replace(/\/+$/, '') ?? null,
    masterSecret: read.SECRET_KEY ? new Secret(read.SECRET_KEY) : null,
    trustedProxies,
    pace: readPace(read.MODE, read),
    connections: readConnectionMaxima(read.MODE, read),
    deliveries: readDeliveryPace(read),
    auditHaltAfterMs: readAuditHalt(read),
    numberRanges: read.NUMBER_RANGES,
    mail: readMail(read, production ? null : join(resolve(read.DATA_DIR), 'mail')),
    logLevel: read.LOG_LEVEL,
    simulator,
    operators: production ? configuredOperators(values) : [],
  }
}

/** The addresses that others reach the service by, once it is known which port it has. */
export function addressesOf(config: Config, boundPort: number): Addresses {
  const publicUrl = config.publicUrl ?? `http://${urlHost(config.host)}:${boundPort}`
  return { publicUrl, callbackUrl: config.callbackUrl ?? publicUrl }
}

export type Addresses = Record<'publicUrl' | 'callbackUrl', string>

/**
 * The four operators of the sandbox, all played by the simulator at `url`.
 * @param limits settings that differ from the sandbox's own, by their names
 * @throws ConfigError where a limit is none
 */
export function sandboxOperators(
  url: string,
  limits: Readonly<Record<string, string>> = {},
): readonly OperatorSettings[] {
  const sandbox = (letter: string, path: string, more: Record<string, string>) =>
    gsma(`Operator${letter}` as Provider, {
      BASE_URL: `${url}/op-${letter.toLowerCase()}/${path}/mm`,
      TOKEN_URL: `${url}/op-${letter.toLowerCase()}/oauth/token`,
      CLIENT_ID: `sandbox-${letter.toLowerCase()}`,
      CLIENT_SECRET: `sandbox-secret-${letter.toLowerCase()}`,
      API_KEY: `sandbox-key-${letter.toLowerCase()}`,
      ...sandboxPace,
      ...own(limits, letter),
      ...more,
    })
  return [
    sandbox('A', 'v1.2', { FLOW: 'callback' }),
    checkout('OperatorB', {
      BASE_URL: `${url}/op-b`,
      API_KEY: 'sandbox-key-b',
      WEBHOOK_SECRETS: 'sandbox-webhook-secret-b',
      LOCK_PAYER: 'true',
      ...sandboxPace,
      ...own(limits, 'B'),
    }),
    sandbox('C', 'v1.2', { FLOW: 'polling' }),
    sandbox('D', 'v1.1', { FLOW: 'callback', SYNCHRONOUS_DISBURSEMENT: 'true' }),
  ]
}

/** The simulator takes what one machine can give; real operators grant far less. */
const sandboxPace = {
  MAX_INTERACTIVE: '64',
  MAX_BACKGROUND: '32',
  MAX_QUERIES: '32',
  MAX_QUEUE: '1000',
  RPS: '2000',
  // Five of the test numbers that play faults look like an operator that is down: it is soon tried again.
  BREAKER_OPEN_MS: '1000',
}

/** The limits of all operators as they stand in the environment. */
function limitsOf(values: Record<string, string | undefined>): Record<string, string> {
  const names = new RegExp(`^OPERATOR_[A-D]_(${Object.keys(limitSettings).join('|')})$`)
  return Object.fromEntries(
    Object.entries(values).flatMap(([name, value]) =>
      value !== undefined && names.test(name) ? [[name, value]] : [],
    ),
  )
}

/** The settings of one operator, without their prefix. */
function own<T extends string | undefined>(
  values: Readonly<Record<string, T>>,
  letter: string,
): Record<string, T> {
  const prefix = `OPERATOR_${letter}_`
  return Object.fromEntries(
    Object.entries(values)
      .filter(([name]) => name.startsWith(prefix))
      .map(([name, value]) => [name.slice(prefix.length), value]),
  )
}

function configuredOperators(values: Record<string, string | undefined>): OperatorSettings[] {
  return providers.flatMap((provider): OperatorSettings[] => {
    const letter = provider.slice(-1)
    const given = own(values, letter)
    if (given['DRIVER'] === undefined) return []
    if (given['DRIVER'] === 'gsma-mm') return [gsma(provider, given)]
    if (given['DRIVER'] === 'checkout-session') return [checkout(provider, given)]
    throw new ConfigError(`OPERATOR_${letter}_DRIVER: must be gsma-mm or checkout-session`)
  })
}

function gsma(provider: Provider, values: Record<string, string | undefined>): GsmaSettings {
  const read = parse(gsmaSettings, values, `OPERATOR_${provider.slice(-1)}_`)
  return {
    driver: 'gsma-mm',
    provider,
    baseUrl: read.BASE_URL,
    tokenUrl: read.TOKEN_URL,
    clientId: read.CLIENT_ID,
    clientSecret: new Secret(read.CLIENT_SECRET),
    apiKey: read.API_KEY ? new Secret(read.API_KEY) : null,
    account: read.ACCOUNT,
    flow: read.FLOW,
    disburseIsSynchronous: read.SYNCHRONOUS_DISBURSEMENT,
    statusMap: statusMap(provider, read.STATUS_MAP),
    limits: operatorLimits(read),
  }
}

function checkout(provider: Provider, values: Record<string, string | undefined>): CheckoutSettings {
  const read = parse(checkoutSettings, values, `OPERATOR_${provider.slice(-1)}_`)
  return {
    driver: 'checkout-session',
    provider,
    baseUrl: read.BASE_URL,
    apiKey: new Secret(read.API_KEY),
    webhookSecrets: read.WEBHOOK_SECRETS.split(',').map((secret) => new Secret(secret.trim())),
    signatureHeader: read.SIGNATURE_HEADER,
    launchUrlField: read.LAUNCH_URL_FIELD,
    payerField: read.LOCK_PAYER ? read.PAYER_FIELD : null,
    limits: operatorLimits(read),
  }
}

function statusMap(provider: Provider, text: string): GsmaSettings['statusMap'] {
  const pairs = text.split(',').map((pair) => pair.trim().toLowerCase().split(':'))
  const known = new Set(['settled', 'pending', 'refused', 'reversed'])
  for (const [word, meaning] of pairs) {
    if (!word || !meaning || !known.has(meaning)) {
      throw new ConfigError(
        `OPERATOR_${provider.slice(-1)}_STATUS_MAP: each entry is word:settled|pending|refused|reversed`,
      )
    }
  }
  return Object.fromEntries(pairs) as GsmaSettings['statusMap']
}

function parse<T extends z.ZodType>(
  schema: T,
  values: Record<string, string | undefined>,
  prefix: string,
): z.infer<T> {
  const result = schema.safeParse(values)
  if (result.success) return result.data
  throw new ConfigError(
    result.error.issues.map((issue) => `${prefix}${issue.path.join('.')}: ${issue.message}`).join('\n'),
  )
}

function isNetwork(entry: string): boolean {
  const [host = '', bits, ...rest] = entry.split('/')
  const family = isIP(host)
  if (family === 0 || rest.length > 0) return false
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (family === 4 ? 32 : 128))
}

function urlHost(host: string): string {
  const reachable = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host
  return isIP(reachable) === 6 ? `[${reachable}]` : reachable
}
