import { asPlatform } from '../../database/as-platform.ts'
import { exchangeCredentials, type ExchangeResult } from '../../identity/authenticate.ts'
import { recordChange, recordingOf } from '../../audit/audit-log.ts'
import { type RateLimitState, tellRateLimit } from '../../limits/window.ts'
import type { Context } from '../../context.ts'
import { builder } from '../../graphql/builder.ts'
import { refusals } from '../../graphql/errors.ts'
import { DomainError } from '../../shared/errors.ts'
import { KeyLimits, KeyLimitsInput } from './limits-schema.ts'

const AccessToken = builder.objectRef<ExchangeResult>('AccessToken').implement({
  description: 'A short-lived bearer token.',
  fields: (t) => ({
    token: t.exposeString('token', {
      isSecret: true,
      description: 'Send it as `Authorization: Bearer …`; keep it on your server.',
    }),
    tokenType: t.string({ resolve: () => 'Bearer' }),
    expiresIn: t.exposeInt('expiresIn', { description: 'Seconds.' }),
    expiresAt: t.expose('expiresAt', { type: 'DateTime' }),
    scopes: t.stringList({ resolve: ({ scopes }) => [...scopes] }),
    limits: t.field({
      type: KeyLimits,
      nullable: true,
      description: 'What the token is limited to; null where to nothing.',
      resolve: ({ caps }) => caps,
    }),
  }),
})

const AuthenticateInput = builder.inputType('AuthenticateInput', {
  description: 'An API key and its secret (specification: POST /auth).',
  fields: (t) => ({
    apiKey: t.string(),
    apiSecret: t.string(),
    scopes: t.stringList({
      description: "Part of the key's scopes; pay, deposit and balance where left out.",
    }),
    expiresInHours: t.float({ description: 'Whole hours from 1 to 720; 24 where left out.' }),
    limits: t.field({
      type: KeyLimitsInput,
      description: "None wider than the key's, which the token has where they are left out.",
    }),
  }),
})

builder.mutationField('authenticate', (t) =>
  t.field({
    type: AccessToken,
    nullable: true,
    scope: 'public',
    description: 'Exchanges an API key and its secret for an access token. 20 tries in 15 minutes.',
    errors: refusals(
      'INVALID_INPUT',
      'CREDENTIALS_REJECTED',
      'ACCOUNT_INACTIVE',
      'ADDRESS_NOT_ALLOWED',
      'FORBIDDEN',
      'RATE_LIMITED',
    ),
    args: { input: t.arg({ type: AuthenticateInput, required: true }) },
    resolve: (_root, { input }, ctx) => authenticate(ctx, input),
  }),
)

/** Whatever comes of it, the answer's headers say how many tries are left. */
async function authenticate(
  ctx: Context,
  input: {
    apiKey?: string | null | undefined
    apiSecret?: string | null | undefined
    scopes?: unknown
    expiresInHours?: unknown
    limits?: unknown
  },
): Promise<ExchangeResult> {
  const noteLimit = (state: RateLimitState) => tellRateLimit(ctx.responseHeaders, 'auth', state)
  try {
    const result = await exchangeCredentials(ctx.access, {
      key: input.apiKey ?? undefined,
      secret: input.apiSecret ?? undefined,
      scopes: input.scopes,
      expiresInHours: input.expiresInHours,
      limits: input.limits,
      clientAddress: ctx.clientAddress,
    })
    noteLimit(result.rateLimit)
    await recordToken(ctx, result)
    return result
  } catch (error) {
    const state = error instanceof DomainError ? error.detail['rateLimit'] : undefined
    if (state) noteLimit(state as RateLimitState)
    throw error
  }
}

/** A token that is not on record is handed to nobody. */
function recordToken(
  ctx: Context,
  { merchantId, apiKeyId, scopes, expiresAt, caps }: ExchangeResult,
): Promise<void> {
  const recording = recordingOf(ctx, 'authenticate', { merchantId, apiKeyId, memberId: null })
  const after = { scopes, expires_at: expiresAt, limits: caps }
  const change = { target: ['api_key', apiKeyId], after } as const
  return recordChange(
    asPlatform(ctx, 'nobody is signed in yet: the API key names the merchant').pool,
    recording,
    change,
  )
}
