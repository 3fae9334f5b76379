import { z } from 'zod'
import { type Provider, providers } from '../shared/providers.ts'
import { Secret } from '../shared/secret.ts'
import { webAddress } from '../shared/web-address.ts'
import { limitSettings, type OperatorLimits, operatorLimits } from './operator-limits.ts'
import { ConfigError, flag, parse } from './parse.ts'

/** The settings of an operator with the GSMA Mobile Money API, which prompts the customer on the phone. */
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
  /** How the operator reports an outcome that is not in its first answer: it calls us back, or we poll it. */
  flow: 'callback' | 'polling'
  /** True if the operator answers a disbursement with its final state. */
  disburseIsSynchronous: boolean
  /** True if the operator can withdraw a prompt that its customer has not answered yet. */
  canCancel: boolean
  /** The operator's own words for a transaction's status, in lower case. */
  statusMap: Readonly<Record<string, 'settled' | 'pending' | 'refused' | 'reversed'>>
  limits: OperatorLimits
  /**
   * A pattern for customers' phone numbers. For these numbers the sandbox simulates a failing operator, so
   * calls for them do not count for the circuit breaker. Absent for a real operator.
   */
  faultNumbers?: RegExp
}

/** The settings of an operator with a hosted checkout page. */
export interface CheckoutSettings {
  driver: 'checkout-session'
  provider: Provider
  baseUrl: string
  apiKey: Secret
  /** The current secret first; the older ones stay valid while the operator changes its secret. */
  webhookSecrets: readonly Secret[]
  signatureHeader: string
  launchUrlField: string
  /** The name of the field that ties a session to one payer's number; null if any number may pay. */
  payerField: string | null
  limits: OperatorLimits
  /**
   * A pattern for customers' phone numbers. For these numbers the sandbox simulates a failing operator, so
   * calls for them do not count for the circuit breaker. Absent for a real operator.
   */
  faultNumbers?: RegExp
}

export type OperatorSettings = GsmaSettings | CheckoutSettings

/** Settings of an operator with the driver `gsma-mm`, without their prefix. */
export const gsmaSettings = z.object({
  BASE_URL: webAddress.describe('Address of its API.'),
  TOKEN_URL: webAddress.describe('The address at which the service gets an access token.'),
  CLIENT_ID: z.string().min(1).describe('The client id of the service at the operator.'),
  CLIENT_SECRET: z.string().min(1).describe('The client secret of the service at the operator.'),
  API_KEY: z.string().optional().describe('A key that is sent with each call, if the operator requires one.'),
  ACCOUNT: z
    .string()
    .regex(/^[a-z]+:.+$/i, 'must be type:identifier')
    .default('accountid:POOL')
    .describe('Your own account at the operator, as type:identifier.'),
  FLOW: z
    .enum(['callback', 'polling'])
    .default('callback')
    .describe('callback: the operator calls the service; polling: the service asks the operator.'),
  SYNCHRONOUS_DISBURSEMENT: flag
    .default(false)
    .describe('1 or true: the operator answers a payment out with its final state.'),
  CAN_CANCEL: flag
    .default(false)
    .describe('1 or true: the operator can withdraw a prompt that its customer has not answered yet.'),
  STATUS_MAP: z
    .string()
    .default('completed:settled,successful:settled,pending:pending,failed:refused,reversed:reversed')
    .describe(
      'The words of the operator for each status: word:settled, word:pending, word:refused or word:reversed.',
    ),
  ...limitSettings,
})

/** Settings of an operator with the driver `checkout-session`, without their prefix. */
export const checkoutSettings = z.object({
  BASE_URL: webAddress.describe('Address of its API.'),
  API_KEY: z.string().min(1).describe('Sent with each call.'),
  WEBHOOK_SECRETS: z
    .string()
    .min(1)
    .describe('Secrets of its callbacks, separated by commas, the current one first.'),
  SIGNATURE_HEADER: z.string().default('Checkout-Signature').describe('Header of its signature.'),
  LAUNCH_URL_FIELD: z.string().default('launch_url').describe('Field with the address of the payment page.'),
  PAYER_FIELD: z
    .string()
    .default('restrict_payer_mobile')
    .describe('Field that names the only number that may pay.'),
  LOCK_PAYER: flag.default(false).describe("Only the customer's own number may pay."),
  ...limitSettings,
})

/**
 * Returns the settings of the four operators of the sandbox, all played by the simulator at `url`.
 * @param limits limits that the environment sets, by the names of the settings; they replace `sandboxPace`
 * @throws ConfigError if the value of a limit is wrong
 */
export function sandboxOperators(
  url: string,
  limits: Readonly<Record<string, string>> = {},
): readonly OperatorSettings[] {
  const sandbox = (letter: string, path: string, more: Record<string, string>) => ({
    ...gsma(`Operator${letter}` as Provider, {
      BASE_URL: `${url}/op-${letter.toLowerCase()}/${path}/mm`,
      TOKEN_URL: `${url}/op-${letter.toLowerCase()}/oauth/token`,
      CLIENT_ID: `sandbox-${letter.toLowerCase()}`,
      CLIENT_SECRET: `sandbox-secret-${letter.toLowerCase()}`,
      API_KEY: `sandbox-key-${letter.toLowerCase()}`,
      ...sandboxPace,
      ...own(limits, letter),
      ...more,
    }),
    faultNumbers,
  })
  return [
    sandbox('A', 'v1.2', { FLOW: 'callback', CAN_CANCEL: 'true' }),
    {
      ...checkout('OperatorB', {
        BASE_URL: `${url}/op-b`,
        API_KEY: 'sandbox-key-b',
        WEBHOOK_SECRETS: 'sandbox-webhook-secret-b',
        LOCK_PAYER: 'true',
        ...sandboxPace,
        ...own(limits, 'B'),
      }),
      faultNumbers,
    },
    sandbox('C', 'v1.2', { FLOW: 'polling', CAN_CANCEL: 'true' }),
    sandbox('D', 'v1.1', { FLOW: 'callback', SYNCHRONOUS_DISBURSEMENT: 'true' }),
  ]
}

/** The test numbers 20 to 27 of the simulator (`src/simulator/scenarios.ts`); a test compares the two. */
const faultNumbers = /^\+223702[0-7]\d{4}$/

/**
 * The default limits of the sandbox operators. They are high, because the simulator is as fast as the
 * machine.
 */
const sandboxPace = {
  MAX_INTERACTIVE: '64',
  MAX_BACKGROUND: '32',
  MAX_QUERIES: '32',
  MAX_QUEUE: '1000',
  RPS: '2000',
  // Short: after the owner of the sandbox switches an operator on again, the service soon uses it.
  BREAKER_OPEN_MS: '1000',
}

/** Returns the limits of operators that `values` contains, by the names of the settings. */
export function limitsOf(values: Record<string, string | undefined>): Record<string, string> {
  const names = new RegExp(`^OPERATOR_[A-D]_(${Object.keys(limitSettings).join('|')})$`)
  return Object.fromEntries(
    Object.entries(values).flatMap(([name, value]) =>
      value !== undefined && names.test(name) ? [[name, value]] : [],
    ),
  )
}

/** Returns the settings of one operator, without their prefix. */
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

export function configuredOperators(values: Record<string, string | undefined>): OperatorSettings[] {
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
    canCancel: read.CAN_CANCEL,
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
