import { isIP } from 'node:net'
import { join, resolve } from 'node:path'
import { z } from 'zod'
import { type ConnectionMaxima, connectionSettings, readConnectionMaxima } from './connections.ts'
import { auditHaltSettings, readAuditHalt } from './audit-halt.ts'
import { deliverySettings, type DeliveryPace, readDeliveryPace } from './delivery-pace.ts'
import { type MailSettings, mailSettings, readMail } from './mail.ts'
import { type NumberRanges, rangeSettings } from './number-ranges.ts'
import { type OperatorFaces, readFaces } from './operator-faces.ts'
import { configuredOperators, limitsOf, type OperatorSettings, sandboxOperators } from './operators.ts'
import { ConfigError, flag, parse } from './parse.ts'
import { paceSettings, readPace, type RequestPace } from './request-pace.ts'
import { readRetention, type Retention, retentionSettings } from './retention.ts'
import { parseNetwork } from '../shared/ip-whitelist.ts'
import { Secret } from '../shared/secret.ts'
import { webAddress } from '../shared/web-address.ts'
import { withFiles } from './setting-files.ts'

export interface Config {
  mode: 'sandbox' | 'production'
  host: string
  port: number
  /** Absolute folder of the embedded database, the master secret and the simulator's journal. */
  dataDir: string
  /** The owner's PostgreSQL server; null means the embedded one. */
  databaseUrl: Secret | null
  /** The epoch that the database must be in (it rises with each restore); null: not checked. */
  databaseEpoch: number | null
  /**
   * The address that merchants and customers use, without a slash at its end; null: made from `host` and the
   * port.
   */
  publicUrl: string | null
  /** The address that operators call back; null means the public one. */
  callbackUrl: string | null
  /** The secret that protects all other keys (`MasterSecret`); null means the file in `dataDir`. */
  masterSecret: Secret | null
  /** Networks of proxies: an `X-Forwarded-For` that they send is trusted. */
  trustedProxies: readonly string[]
  pace: RequestPace
  connections: ConnectionMaxima
  deliveries: DeliveryPace
  mail: MailSettings
  /** Payments out are halted if the last successful proof of the books is older than this; 0: never. */
  auditHaltAfterMs: number
  retention: Retention
  /** The operators that the first digits of phone numbers suggest, if the caller names no operator. */
  numberRanges: NumberRanges
  logLevel: 'debug' | 'info' | 'warn' | 'error' | 'silent'
  /**
   * The simulator of the sandbox's operators: started by this process on `port`, or running at `url`. Null in
   * production.
   */
  simulator: {
    url: string | null
    port: number
    controlToken: Secret
    /**
     * Limits of the sandbox operators that the environment sets, by the names of the settings
     * (`OPERATOR_A_RPS`).
     */
    limits: Readonly<Record<string, string>>
  } | null
  operators: readonly OperatorSettings[]
  /** The operators as people know them. */
  faces: OperatorFaces
}

const port = z.coerce.number().int().min(0).max(65_535)

/** Every setting except those of the operators. */
export const settings = z.object({
  MODE: z
    .enum(['sandbox', 'production'])
    .default('sandbox')
    .describe(
      'sandbox, or production. Production has no simulator and no test money, and its clock cannot be moved.',
    ),
  HOST: z.string().default('127.0.0.1').describe('The address that the service listens on.'),
  PORT: port.default(4000).describe('The port that the service listens on.'),
  DATA_DIR: z
    .string()
    .default('.data')
    .describe(
      'Folder of the embedded database, the master secret and the journal of the simulator. ' +
        'One sandbox at a time uses it.',
    ),
  DATABASE_URL: z
    .string()
    .regex(/^postgres(ql)?:\/\//, 'must begin with postgresql://')
    .optional()
    .meta({
      description: 'Your PostgreSQL: postgresql://... Required in production.',
      usual: 'the embedded PostgreSQL',
    }),
  EMBEDDED_DB: flag
    .default(false)
    .describe('1 lets production use the embedded database; then DATABASE_URL is not required.'),
  DATABASE_EPOCH: z.coerce
    .number()
    .int('must be a whole number')
    .min(1)
    .max(2_000_000_000)
    .optional()
    .describe(
      'For nodes whose DATA_DIR does not last: the start is refused if the database is in ' +
        'another epoch. The epoch is 1 at first and rises by one with each restore.',
    ),
  PUBLIC_URL: webAddress.optional().meta({
    description: 'The address that merchants and customers use. Required in production.',
    usual: 'http://HOST:PORT',
  }),
  CALLBACK_URL: webAddress
    .optional()
    .meta({ description: 'The address that operators call back.', usual: 'PUBLIC_URL' }),
  SECRET_KEY: z
    .string()
    .min(32, 'must have at least 32 characters')
    .optional()
    .meta({
      description:
        'Protects API keys, tokens and stored secrets: 32 characters or more, the same on ' +
        'every node. Required in production.',
      usual: 'a file in DATA_DIR',
    }),
  TRUSTED_PROXIES: z
    .string()
    .default('')
    .describe(
      'Networks of your proxies, such as 10.0.0.0/8,...: the service takes the address of a caller ' +
        'from their X-Forwarded-For.',
    ),
  ...paceSettings,
  ...connectionSettings,
  ...deliverySettings,
  ...mailSettings,
  ...rangeSettings,
  ...auditHaltSettings,
  ...retentionSettings,
  LOG_LEVEL: z
    .enum(['debug', 'info', 'warn', 'error', 'silent'])
    .default('info')
    .describe('debug, info, warn, error or silent.'),
  OPERATORS_PORT: port
    .default(4010)
    .describe('The port of the simulator. If another program uses the port, the simulator takes a free one.'),
  OPERATORS_URL: webAddress.optional().describe('The address of a simulator that runs elsewhere.'),
  OPERATORS_CONTROL_TOKEN: z
    .string()
    .min(8)
    .default('sandbox-control')
    .describe('The token that opens /_sim/ of the simulator.'),
})

/**
 * Reads every setting once; nothing else in the service reads its settings from the environment. Some
 * settings `X` may be given as `X_FILE`, the path of a file that holds the value (`setting-files.ts`).
 * @throws ConfigError that lists wrong settings: first the malformed ones, and when there are none, the
 * missing ones; before both, a file that cannot be read
 */
export function readConfig(environment: Readonly<Record<string, string | undefined>> = process.env): Config {
  const values = withFiles(environment)
  const read = parse(settings, values, '')
  const problems: string[] = []
  const trustedProxies = read.TRUSTED_PROXIES.split(',')
    .map((entry) => entry.trim())
    .filter(Boolean)
  for (const entry of trustedProxies) {
    if (!parseNetwork(entry)) problems.push(`TRUSTED_PROXIES: ${entry} is no address or CIDR range`)
  }
  const production = read.MODE === 'production'
  if (production && !read.SECRET_KEY) problems.push('SECRET_KEY: required in production')
  if (production && !read.PUBLIC_URL) problems.push('PUBLIC_URL: required in production')
  if (production && !read.DATABASE_URL && !read.EMBEDDED_DB) {
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
    retention: readRetention(read),
    numberRanges: read.NUMBER_RANGES,
    mail: readMail(read, production ? null : join(resolve(read.DATA_DIR), 'mail')),
    logLevel: read.LOG_LEVEL,
    simulator,
    operators: production ? configuredOperators(values) : [],
    faces: readFaces(values),
  }
}

/** Returns the addresses at which clients and operators reach the service, after its port is known. */
export function addressesOf(config: Config, boundPort: number): Addresses {
  const publicUrl = config.publicUrl ?? `http://${urlHost(config.host)}:${boundPort}`
  return { publicUrl, callbackUrl: config.callbackUrl ?? publicUrl }
}

export type Addresses = Record<'publicUrl' | 'callbackUrl', string>

function urlHost(host: string): string {
  const reachable = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host
  return isIP(reachable) === 6 ? `[${reachable}]` : reachable
}
