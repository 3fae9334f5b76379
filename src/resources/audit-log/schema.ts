import { mine } from '../../identity/callers/actor.ts'
import type { ChainFault } from '../../audit/audit-chain.ts'
import { type ChainVerdict, readKeptHead, verifyAuditLog } from '../../audit/verify-chain.ts'
import type { Channel } from '../../audit/audit-log.ts'
import { builder } from '../../graphql/builder.ts'
import { wordEnum } from '../../graphql/enums.ts'
import { inputOf } from '../../graphql/input.ts'
import { connectionType, newestFirst } from '../../graphql/connection.ts'
import { readId } from '../../shared/ids.ts'
import { invalidInput } from '../../shared/input.ts'
import { auditFilterInput, auditLogWhere, countAuditLog } from './list.ts'
import { grouped } from '../../shared/money.ts'

/** The most entries that one request verifies. For a longer log, the client goes on from the last of them. */
const auditVerifyMax = 20_000

/** The position up to which a client has verified the log that does not say so. */
const verifiedBefore = 0n

const ChannelEnum = wordEnum<Channel>(
  'AuditChannel',
  {
    graphql: 'GraphQL over HTTP.',
    rest: 'The REST API.',
    service: 'The service itself, for example a job.',
    terminal: 'A command of the people who run the service.',
    websocket: 'GraphQL over a WebSocket.',
  },
  'The channel by which a change was requested.',
)

/** The words for a fault, with underscores where the verification writes spaces. */
const FaultProblem = wordEnum(
  'AuditLogProblem',
  {
    altered: 'An entry was changed after it was written.',
    beyond_the_head: 'An entry stands after the stored end of the log.',
    head_forged: 'The stored end of the log was not written by this installation.',
    head_not_contained: 'The log does not contain the `head` that you kept.',
    missing: 'An entry is gone.',
    repeated: 'An entry stands in the log more than once.',
    truncated: 'Entries at the end of the log are gone.',
    unsealed: 'An entry stands beside the chain: it has no link, and does not wait for one.',
  },
  'The kind of fault in the chain of the audit log.',
)

const Entry = builder.prismaNode('AuditEntry', {
  id: { resolve: ({ id }) => id },
  findUnique: (id, ctx) => ({ merchantId_id: { ...mine(ctx), id: readId('AuditEntry', id) } }),
  nullable: true,
  scope: ['settings'],
  description: 'One change in the audit log. It is written together with the change, and is never modified.',
  fields: (t) => ({
    databaseId: t.field({ type: 'SafeInt', description: 'The id of the entry.', resolve: ({ id }) => id }),
    at: t.expose('at', {
      type: 'DateTime',
      description: 'The moment of the change in real time, also in a sandbox whose clock was moved.',
    }),
    actor: t.exposeString('actor', {
      description:
        'The author of the change: `member:7`, `api_key:12`, or `platform` for the operator of ' +
        'this service.',
    }),
    operation: t.exposeString('operation', {
      description:
        'The name of the operation: a mutation of this schema, also when the request came by ' +
        'REST, or a command.',
    }),
    target: t.exposeString('target', {
      description: 'The object of the change, by its type and its REST id: `webhook:3`.',
    }),
    address: t.exposeString('address', {
      nullable: true,
      description: 'The IP address of the request; null when it did not come over the network.',
    }),
    requestId: t.exposeString('requestId', {
      nullable: true,
      description: 'The `X-Request-Id` of the response; null when there was no request.',
    }),
    channel: t.field({
      type: ChannelEnum,
      description: 'The channel by which the request came.',
      resolve: ({ channel }) => channel as Channel,
    }),
    before: t.field({
      type: 'JSONObject',
      nullable: true,
      description: 'The changed object before the change, without secrets; null when there was none.',
      resolve: ({ before }) => before as object | null,
    }),
    after: t.field({
      type: 'JSONObject',
      nullable: true,
      description: 'The changed object after the change, without secrets; null when there is none.',
      resolve: ({ after }) => after as object | null,
    }),
    isPayment: t.exposeBoolean('isPayment', { description: 'True when the entry records a payment.' }),
  }),
})

const Entries = connectionType(Entry, 'AuditEntry', 'A page of the audit log.')

const AuditLogFilter = inputOf('AuditLogFilter', auditFilterInput, {
  description: 'Selects entries of the audit log. An entry must match all fields that are given.',
  fields: {
    actor: 'The author of the change: `member:7`, `api_key:12` or `platform`.',
    operation: 'The name of a mutation, for example `updateSettings`.',
    isPayment:
      'True for payments only, false for all other changes. False finds the other changes of ' +
      'an actor fast among many payments.',
    target: 'The object of the change, for example `webhook:3`.',
    from: 'Start of the period; entries of this moment are included.',
    to: 'End of the period; entries of this moment are not included, but those of a date are.',
  },
})

const FaultType = builder.objectRef<ChainFault>('AuditLogFault').implement({
  description: 'The first place where the chain of the audit log is broken.',
  fields: (t) => ({
    sequence: t.field({
      type: 'SafeInt',
      description: 'The position in the log where the fault is, counted from 1.',
      resolve: ({ position }) => position,
    }),
    databaseId: t.field({
      type: 'SafeInt',
      nullable: true,
      description: 'The id of the broken entry; null when it is not known.',
      resolve: ({ entryId }) => entryId,
    }),
    problem: t.field({
      type: FaultProblem,
      description: 'The kind of the fault.',
      resolve: ({ problem }) => problem.replaceAll(' ', '_') as typeof FaultProblem.$inferType,
    }),
  }),
})

const Verdict = builder.objectRef<ChainVerdict>('AuditLogVerdict').implement({
  description: 'The result of a verification of the audit log.',
  fields: (t) => ({
    isIntact: t.boolean({
      description: 'True when no verified entry was changed, removed or added since it was written.',
      resolve: ({ fault }) => fault === null,
    }),
    fault: t.field({
      type: FaultType,
      nullable: true,
      description: 'The first fault; null when none was found.',
      resolve: ({ fault }) => fault,
    }),
    upTo: t.field({
      type: 'SafeInt',
      description: 'The position of the last entry that was verified.',
      resolve: ({ upTo }) => upTo,
    }),
    isComplete: t.exposeBoolean('isComplete', {
      description:
        'True when the verification reached the end of the log. Otherwise call again with ' +
        '`after: upTo`.',
    }),
    sealedAt: t.expose('chainedAt', {
      type: 'DateTime',
      nullable: true,
      description: 'The moment when the last entry was added to the chain; null while there is none.',
    }),
    head: t.exposeString('head', {
      nullable: true,
      description:
        'The end of the log in one line. Keep it outside the service: `verifyAuditLog(head:)` ' +
        'later checks that the log still contains it. Null while the log is empty.',
    }),
  }),
})

builder.queryFields((t) => ({
  auditLog: t.field({
    type: Entries,
    nullable: true,
    scope: ['settings'],
    description: 'The audit log: who changed what, from where and when, newest first.',
    args: {
      ...t.arg.connectionArgs(),
      filter: t.arg({ type: AuditLogFilter, description: 'Conditions that the entries must match.' }),
    },
    resolve: (_root, { filter, ...args }, ctx, info) =>
      newestFirst(ctx, info, {
        type: 'AuditEntry',
        args,
        table: ctx.database.prisma.auditEntry,
        where: auditLogWhere(ctx, filter),
        count: () => countAuditLog(ctx, filter),
      }),
  }),
  verifyAuditLog: t.field({
    type: Verdict,
    nullable: true,
    scope: ['settings'],
    description: `Verifies the chain of the audit log, up to ${grouped(auditVerifyMax)} entries per call.`,
    args: {
      after: t.arg({
        type: 'SafeInt',
        defaultValue: verifiedBefore,
        description: 'The position up to which you have verified the log.',
      }),
      head: t.arg.string({
        description:
          'A `head` that you kept, from this query, the daily e-mail or a log line. It is a fault ' +
          'when the log no longer contains it.',
      }),
    },
    resolve: (_root, { after, head }, ctx) => {
      const from = after ?? verifiedBefore
      if (from < 0n) throw invalidInput([{ field: 'after', message: 'must be 0 or more' }])
      const { auditKey } = ctx.access.master
      const { merchantId } = mine(ctx)
      const kept = head == null ? null : readKeptHead(auditKey, merchantId, head)
      const options = { after: from, most: auditVerifyMax, kept }
      return verifyAuditLog(ctx.database.merchantPool, auditKey, merchantId, options)
    },
  }),
}))
