import { asPlatform } from '../../database/as-platform.ts'
import {
  authenticateInput,
  exchangeCredentials,
  type AuthenticateInput,
  type ExchangeResult,
} from '../../identity/callers/authenticate.ts'
import { recordChange, recordingOf } from '../../audit/audit-log.ts'
import { type RateLimitState, setRateLimitHeaders } from '../../limits/window.ts'
import type { Context } from '../../context.ts'
import { builder } from '../../graphql/builder.ts'
import { inputOf } from '../../graphql/input.ts'
import { refusals } from '../../graphql/errors.ts'
import { DomainError } from '../../shared/errors.ts'
import { KeyLimits } from './limits-schema.ts'
import { limits } from '../../shared/limits.ts'

const AccessToken = builder.objectRef<ExchangeResult>('AccessToken').implement({
  description: 'An access token: a program sends it with each request.',
  fields: (t) => ({
    token: t.exposeString('token', {
      isSecret: true,
      description: 'The token. Send it as `Authorization: Bearer <token>`, and keep it on your server.',
    }),
    tokenType: t.string({ description: 'The type of the token: always `Bearer`.', resolve: () => 'Bearer' }),
    expiresIn: t.exposeInt('expiresIn', {
      description: 'Lifetime of the token in seconds, for example 86400 for 24 hours.',
    }),
    expiresAt: t.expose('expiresAt', {
      type: 'DateTime',
      description: 'The moment when the token stops working.',
    }),
    scopes: t.stringList({
      description: 'The scopes that the token grants, for example `pay` and `balance`.',
      resolve: ({ scopes }) => [...scopes],
    }),
    limits: t.field({
      type: KeyLimits,
      nullable: true,
      description: 'The limits of the token; null when it has none.',
      resolve: ({ keyLimits }) => keyLimits,
    }),
  }),
})

const AuthenticateInputType = inputOf('AuthenticateInput', authenticateInput, {
  description: 'An API key with its secret, and the options of the token. Same as POST /auth in REST.',
  fields: {
    apiKey: 'The public part of the API key.',
    apiSecret: 'The secret part of the API key.',
    scopes: 'Scopes of the token, each one that the key holds.',
    expiresInHours: `Lifetime in whole hours, ${limits.tokenHoursMin} to ${limits.tokenHoursMax}.`,
    limits: "Limits of the token, each at most as wide as the key's own. Default: the limits of the key.",
  },
})

builder.mutationField('authenticate', (t) =>
  t.field({
    type: AccessToken,
    nullable: true,
    scope: 'public',
    description:
      'Exchanges an API key and its secret for an access token. An API key has 20 sign-ins ' +
      'in 15 minutes from one address, failed ones included.',
    errors: refusals(
      'INVALID_INPUT',
      'CREDENTIALS_REJECTED',
      'ACCOUNT_INACTIVE',
      'ADDRESS_NOT_ALLOWED',
      'FORBIDDEN',
      'RATE_LIMITED',
    ),
    args: {
      input: t.arg({
        type: AuthenticateInputType,
        description: 'The API key with its secret, and the options of the token.',
        required: true,
      }),
    },
    resolve: (_root, { input }, ctx) => authenticate(ctx, input),
  }),
)

/** Exchanges an API key for a token. The headers say how many tries are left, even if the exchange fails. */
async function authenticate(ctx: Context, input: AuthenticateInput): Promise<ExchangeResult> {
  const describeLimit = (state: RateLimitState) => setRateLimitHeaders(ctx.responseHeaders, 'auth', state)
  try {
    const result = await exchangeCredentials(ctx.access, input, ctx.clientAddress)
    describeLimit(result.rateLimit)
    await recordToken(ctx, result)
    return result
  } catch (error) {
    const state = error instanceof DomainError ? error.detail['rateLimit'] : undefined
    if (state) describeLimit(state as RateLimitState)
    throw error
  }
}

/** Records a new token in the audit log. The caller receives the token only after that has succeeded. */
function recordToken(
  ctx: Context,
  { merchantId, apiKeyId, scopes, expiresAt, keyLimits }: ExchangeResult,
): Promise<void> {
  const recording = recordingOf(ctx, 'authenticate', { merchantId, apiKeyId, memberId: null })
  const after = { scopes, expires_at: expiresAt, limits: keyLimits }
  const change = { target: ['api_key', apiKeyId], after } as const
  return recordChange(
    asPlatform(ctx, 'the caller has no token yet: the API key names the merchant').pool,
    recording,
    change,
  )
}
