import { mine } from '../../identity/actor.ts'
import type { IssuedKey } from '../../identity/api-keys.ts'
import { orNone } from '../../identity/caps.ts'
import { isScope } from '../../identity/scopes.ts'
import { prefixOf } from '../../identity/secrets.ts'
import { builder } from '../../graphql/builder.ts'
import { inputOf } from '../../graphql/input.ts'
import { Scope } from '../../graphql/enums.ts'
import { refusals } from '../../graphql/errors.ts'
import { countedConnectionType, newestFirst } from '../../graphql/connection.ts'
import { createMerchantKey, createApiKeyInput } from './create.ts'
import { KeyLimits } from './limits-schema.ts'
import { regenerateMerchantKey } from './regenerate.ts'
import { revokeMerchantKey } from './revoke.ts'
import { readSmallId } from '../../shared/ids.ts'

const keyIdOf = (id: string) => readSmallId('ApiKey', id)

const ApiKey = builder.prismaNode('ApiKey', {
  id: { field: 'id' },
  // Only what is asked for: no request reads a secret's hash.
  select: { id: true },
  findUnique: (id, ctx) => ({ ...mine(ctx), id: keyIdOf(id) }),
  nullable: true,
  scope: ['settings'],
  description: 'What a program signs in with. Its secret half is shown once, when it is made.',
  fields: (t) => ({
    databaseId: t.expose('id', { type: 'SafeInt', description: 'The `api_key_id` of events.' }),
    name: t.exposeString('name'),
    prefix: t.string({
      description: 'How its public half begins.',
      select: { key: true },
      resolve: ({ key }) => prefixOf(key),
    }),
    lastFour: t.string({
      description: 'How its public half ends.',
      select: { key: true },
      resolve: ({ key }) => key.slice(-4),
    }),
    scopes: t.field({
      type: [Scope],
      description: 'What its tokens may be allowed to do.',
      select: { scopes: true },
      resolve: ({ scopes }) => scopes.filter(isScope),
    }),
    limits: t.field({
      type: KeyLimits,
      nullable: true,
      description: 'What its tokens are limited to, for ever; null where to nothing.',
      select: { maxPerPayment: true, maxPerDay: true, paymentMethods: true, addresses: true },
      resolve: ({ maxPerPayment, maxPerDay, paymentMethods, addresses }) =>
        orNone({
          maxPerPayment,
          maxPerDay,
          paymentMethods: paymentMethods.length > 0 ? paymentMethods : null,
          addresses: addresses.length > 0 ? addresses : null,
        }),
    }),
    isActive: t.boolean({
      description: 'Whether it is neither revoked nor suspended and has not expired.',
      select: { revokedAt: true, suspendedAt: true, expiresAt: true },
      resolve: ({ revokedAt, suspendedAt, expiresAt }) =>
        revokedAt === null &&
        suspendedAt === null &&
        (expiresAt === null || expiresAt.getTime() > Date.now()),
    }),
    isCurrent: t.boolean({
      description: 'The one whose token asks.',
      resolve: ({ id }, _args, { actor }) => id === actor?.apiKeyId,
    }),
    issuedTo: t.relation('issuedTo', {
      nullable: true,
      description:
        'The member who was shown its secret, also by way of another key. When that member is removed, the ' +
        'key is revoked. null where the service does not know a member, as of the first key of an account.',
    }),
    expiresAt: t.expose('expiresAt', { type: 'DateTime', nullable: true }),
    lastUsedAt: t.expose('lastUsedAt', {
      type: 'DateTime',
      nullable: true,
      description: 'To the minute.',
    }),
    lastUsedFrom: t.exposeString('lastUsedFrom', { nullable: true, description: 'The address.' }),
    revokedAt: t.expose('revokedAt', { type: 'DateTime', nullable: true }),
    suspendedAt: t.expose('suspendedAt', {
      type: 'DateTime',
      nullable: true,
      description:
        'Since when its secret is refused: the service was restored from a backup, which may hold an old ' +
        'secret. Regenerate the key to use it again. Null where it is not suspended.',
    }),
    createdAt: t.expose('createdAt', { type: 'DateTime' }),
  }),
})

const ApiKeys = countedConnectionType(ApiKey, 'ApiKey', 'A page of API keys.')

builder.queryField('apiKeys', (t) =>
  t.field({
    type: ApiKeys,
    scope: ['settings'],
    description: 'The API keys, newest first, also those that ended.',
    args: {
      ...t.arg.connectionArgs(),
      offset: t.arg.int({ description: 'Rows to pass over; cursors are faster.' }),
    },
    resolve: (_root, args, ctx, info) =>
      newestFirst(ctx, info, {
        type: 'ApiKey',
        args,
        table: ctx.database.prisma.apiKey,
        where: mine(ctx),
        hasSmallIds: true,
      }),
  }),
)

const IssuedApiKey = builder.objectRef<IssuedKey>('IssuedApiKey').implement({
  description: 'An API key with both its halves. The secret is shown this once: keep it on your server.',
  fields: (t) => ({
    apiKey: t.prismaField({
      type: ApiKey,
      nullable: true,
      resolve: (query, { apiKeyId }, _args, ctx) =>
        ctx.database.prisma.apiKey.findFirst({ ...query, where: { ...mine(ctx), id: apiKeyId } }),
    }),
    key: t.exposeString('key', { description: '`X-API-Key` of POST /auth.' }),
    secret: t.string({
      isSecret: true,
      description: '`X-API-Secret` of POST /auth.',
      resolve: ({ secret }) => secret.reveal(),
    }),
  }),
})

const CreateApiKeyInput = inputOf('CreateApiKeyInput', createApiKeyInput, {
  description: 'An API key to be.',
  fields: {
    name: '1 to 100 characters.',
    scopes: 'Some of those that you hold.',
    expiresAt: 'Within ten years. Of a key that an API key makes, no later than that; else never.',
    limits: 'They never change, also where the key is regenerated.',
  },
})

const idArgument = 'Its global id, or its id.'

builder.mutationFields((t) => ({
  createApiKey: t.field({
    type: IssuedApiKey,
    nullable: true,
    scope: ['settings'],
    description:
      'Makes an API key. It grants nothing that its maker does not hold; whoever is limited makes none.',
    errors: refusals('INVALID_INPUT', 'FORBIDDEN', 'STATE_CONFLICT', 'RATE_LIMITED'),
    args: { input: t.arg({ type: CreateApiKeyInput, required: true }) },
    resolve: (_root, { input }, ctx) => createMerchantKey(ctx, input),
  }),
  regenerateApiKey: t.field({
    type: IssuedApiKey,
    nullable: true,
    scope: ['settings'],
    description: 'Replaces both halves of a key. The old pair and its tokens are dead within a second.',
    errors: refusals('NOT_FOUND', 'FORBIDDEN', 'RATE_LIMITED'),
    args: { id: t.arg.id({ required: true, description: idArgument }) },
    resolve: (_root, { id }, ctx) => regenerateMerchantKey(ctx, keyIdOf(id)),
  }),
  revokeApiKey: t.prismaField({
    type: ApiKey,
    nullable: true,
    scope: ['settings'],
    description: 'Ends a key and its tokens for ever, also the one that calls.',
    errors: refusals('NOT_FOUND', 'RATE_LIMITED'),
    args: { id: t.arg.id({ required: true, description: idArgument }) },
    resolve: async (query, _root, args, ctx) => {
      const id = await revokeMerchantKey(ctx, keyIdOf(args.id))
      return ctx.database.prisma.apiKey.findFirst({ ...query, where: { ...mine(ctx), id } })
    },
  }),
}))
