import { mine } from '../../identity/callers/actor.ts'
import type { IssuedKey } from '../../identity/keys/api-keys.ts'
import { orNone } from '../../identity/keys/key-limits.ts'
import { isScope } from '../../identity/callers/scopes.ts'
import { prefixOf } from '../../identity/secrets/secrets.ts'
import { builder } from '../../graphql/builder.ts'
import { inputOf } from '../../graphql/input.ts'
import { Scope } from '../../graphql/enums.ts'
import { refusals } from '../../graphql/errors.ts'
import { connectionType, newestFirst, offsetArg } from '../../graphql/connection.ts'
import { apiKeyNameLengthMax, createMerchantKey, createApiKeyInput } from './create.ts'
import { KeyLimits } from './limits-schema.ts'
import { regenerateMerchantKey } from './regenerate.ts'
import { revokeMerchantKey } from './revoke.ts'
import { readSmallId } from '../../shared/ids.ts'

const keyIdOf = (id: string) => readSmallId('ApiKey', id)

const ApiKey = builder.prismaNode('ApiKey', {
  id: { field: 'id' },
  // Select only the requested columns: no request reads the hash of a secret.
  select: { id: true },
  findUnique: (id, ctx) => ({ ...mine(ctx), id: keyIdOf(id) }),
  nullable: true,
  scope: ['settings'],
  description:
    'An API key with which a program signs in. Its secret is shown once, when the key is ' +
    'created or regenerated.',
  fields: (t) => ({
    databaseId: t.expose('id', {
      type: 'SafeInt',
      description: 'The id of the key in REST; events call it `api_key_id`.',
    }),
    name: t.exposeString('name', {
      description: `The name that its creator gave to the key, 1 to ${apiKeyNameLengthMax} characters.`,
    }),
    prefix: t.string({
      description: 'The first characters of the public part of the key, to recognise it.',
      select: { key: true },
      resolve: ({ key }) => prefixOf(key),
    }),
    lastFour: t.string({
      description: 'The last four characters of the public part of the key.',
      select: { key: true },
      resolve: ({ key }) => key.slice(-4),
    }),
    scopes: t.field({
      type: [Scope],
      description: 'The scopes that tokens of this key may hold.',
      select: { scopes: true },
      resolve: ({ scopes }) => scopes.filter(isScope),
    }),
    limits: t.field({
      type: KeyLimits,
      nullable: true,
      description: 'The limits of the key, which never change; null when it has none.',
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
      description: 'True while the key can be used: it is not revoked, not suspended and not expired.',
      select: { revokedAt: true, suspendedAt: true, expiresAt: true },
      resolve: ({ revokedAt, suspendedAt, expiresAt }) =>
        revokedAt === null &&
        suspendedAt === null &&
        (expiresAt === null || expiresAt.getTime() > Date.now()),
    }),
    isCurrent: t.boolean({
      description: 'True for the key whose token makes this request.',
      resolve: ({ id }, _args, { actor }) => id === actor?.apiKeyId,
    }),
    issuedTo: t.relation('issuedTo', {
      nullable: true,
      description:
        'The member who received the secret, directly or through another API key. The key is ' +
        'revoked when that member is removed. Null when the service knows no such member, as ' +
        'for the first key of an account.',
    }),
    expiresAt: t.expose('expiresAt', {
      type: 'DateTime',
      nullable: true,
      description: 'The moment when the key stops working; null when it never expires.',
    }),
    lastUsedAt: t.expose('lastUsedAt', {
      type: 'DateTime',
      nullable: true,
      description: 'The moment when the key was last used, to the minute; null when it was never used.',
    }),
    lastUsedFrom: t.exposeString('lastUsedFrom', {
      nullable: true,
      description: 'The IP address that last used the key; null when it was never used.',
    }),
    revokedAt: t.expose('revokedAt', {
      type: 'DateTime',
      nullable: true,
      description: 'The moment when the key was revoked; null while it is not.',
    }),
    suspendedAt: t.expose('suspendedAt', {
      type: 'DateTime',
      nullable: true,
      description:
        'The moment from which the secret is refused, because the service was restored from a ' +
        'backup that may hold an old secret. Regenerate the key to use it again. Null when it ' +
        'is not suspended.',
    }),
    createdAt: t.expose('createdAt', {
      type: 'DateTime',
      description: 'The moment when the key was created.',
    }),
  }),
})

const ApiKeys = connectionType(ApiKey, 'ApiKey', 'A page of API keys.')

builder.queryField('apiKeys', (t) =>
  t.field({
    type: ApiKeys,
    scope: ['settings'],
    description: 'The API keys of the merchant, newest first, expired and revoked ones included.',
    args: {
      ...t.arg.connectionArgs(),
      offset: t.arg.int(offsetArg),
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
  description: 'An API key with both its parts. The secret is shown only here: keep it on your server.',
  fields: (t) => ({
    apiKey: t.prismaField({
      type: ApiKey,
      nullable: true,
      description: 'The record of the key; null when it can no longer be read.',
      resolve: (query, { apiKeyId }, _args, ctx) =>
        ctx.database.prisma.apiKey.findFirst({ ...query, where: { ...mine(ctx), id: apiKeyId } }),
    }),
    key: t.exposeString('key', { description: 'The public part. Send it as `X-API-Key` to POST /auth.' }),
    secret: t.string({
      isSecret: true,
      description: 'The secret part. Send it as `X-API-Secret` to POST /auth.',
      resolve: ({ secret }) => secret.reveal(),
    }),
  }),
})

const CreateApiKeyInput = inputOf('CreateApiKeyInput', createApiKeyInput, {
  description: 'A new API key.',
  fields: {
    name: `A name for the key, 1 to ${apiKeyNameLengthMax} characters.`,
    scopes: 'The permissions (scopes) of the key. You can give only scopes that you have.',
    expiresAt:
      'The moment when the key stops working, within ten years. A key created with an API key ' +
      'cannot outlive that key. Default: never.',
    limits:
      'Limits of the key and its tokens. They can never be changed, also not when the key is ' +
      'regenerated.',
  },
})

builder.mutationFields((t) => ({
  createApiKey: t.field({
    type: IssuedApiKey,
    nullable: true,
    scope: ['settings'],
    description:
      'Creates an API key. The key cannot grant a scope that its creator does not hold, and a ' +
      'caller with limits cannot create keys.',
    errors: refusals('INVALID_INPUT', 'FORBIDDEN', 'STATE_CONFLICT', 'RATE_LIMITED'),
    args: {
      input: t.arg({
        type: CreateApiKeyInput,
        description: 'The name, scopes and limits of the key.',
        required: true,
      }),
    },
    resolve: (_root, { input }, ctx) => createMerchantKey(ctx, input),
  }),
  regenerateApiKey: t.field({
    type: IssuedApiKey,
    nullable: true,
    scope: ['settings'],
    description:
      'Replaces both parts of an API key. The old parts and their tokens stop working within a second.',
    errors: refusals('NOT_FOUND', 'FORBIDDEN', 'RATE_LIMITED'),
    args: {
      id: t.arg.id({ required: true, description: 'The API key: its global id, or its `databaseId`.' }),
    },
    resolve: (_root, { id }, ctx) => regenerateMerchantKey(ctx, keyIdOf(id)),
  }),
  revokeApiKey: t.prismaField({
    type: ApiKey,
    nullable: true,
    scope: ['settings'],
    description: 'Revokes an API key and its tokens for ever. It can be the key that makes this request.',
    errors: refusals('NOT_FOUND', 'RATE_LIMITED'),
    args: {
      id: t.arg.id({ required: true, description: 'The API key: its global id, or its `databaseId`.' }),
    },
    resolve: async (query, _root, args, ctx) => {
      const id = await revokeMerchantKey(ctx, keyIdOf(args.id))
      return ctx.database.prisma.apiKey.findFirst({ ...query, where: { ...mine(ctx), id } })
    },
  }),
}))
