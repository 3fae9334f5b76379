import { mine } from '../../identity/actor.ts'
import type { Fault } from '../../audit/audit-chain.ts'
import { type ChainVerdict, readKeptHead, verifyAuditLog } from '../../audit/audit-seal.ts'
import { builder } from '../../graphql/builder.ts'
import { inputOf } from '../../graphql/input.ts'
import { connectionType } from '../../graphql/connection.ts'
import { invalidInput } from '../../shared/input.ts'
import { listAuditLog, auditFilterInput } from './list.ts'

/** Entries that one request follows; whoever has more goes on from there. */
const auditVerifyMax = 20_000

const Entry = builder.prismaObject('AuditEntry', {
  scope: ['settings'],
  description: 'A change that somebody made. It was written with the change, and never changes itself.',
  fields: (t) => ({
    databaseId: t.field({ type: 'SafeInt', resolve: ({ id }) => id }),
    at: t.expose('at', { type: 'DateTime', description: "Real time, whatever a sandbox's clock says." }),
    actor: t.exposeString('actor', {
      description: 'Who: `member:7`, `api_key:12`, or `platform`, which runs this service.',
    }),
    operation: t.exposeString('operation', {
      description: 'What was asked for: a mutation of this schema, whatever the way in, or a command.',
    }),
    target: t.exposeString('target', { description: 'What it was done to, by its id in REST: `webhook:3`.' }),
    address: t.exposeString('address', { nullable: true, description: 'From where.' }),
    requestId: t.exposeString('requestId', {
      nullable: true,
      description: 'The `X-Request-Id` of the answer.',
    }),
    door: t.exposeString('door', {
      description: 'The way in: rest, graphql, websocket, terminal or service.',
    }),
    before: t.field({
      type: 'JSONObject',
      nullable: true,
      description: 'Of what changed, as it was. Secrets are never shown.',
      resolve: ({ before }) => before as object | null,
    }),
    after: t.field({
      type: 'JSONObject',
      nullable: true,
      description: 'The same as it is since.',
      resolve: ({ after }) => after as object | null,
    }),
    isPayment: t.exposeBoolean('isPayment', { description: 'Whether a payment was made.' }),
  }),
})

const Entries = connectionType(Entry, 'AuditEntry', 'A page of the audit log.')

const AuditLogFilter = inputOf('AuditLogFilter', auditFilterInput, {
  description: 'Which entries; all that is given holds.',
  fields: {
    actor: '`member:7`, `api_key:12`, `platform`.',
    operation: 'The name of a mutation.',
    isPayment: 'Only payments, or all else: among many payments an actor is found quickly without them.',
    target: '`webhook:3`.',
    from: 'The first moment.',
    to: 'The first moment after.',
  },
})

const FaultType = builder.objectRef<Fault>('AuditLogFault').implement({
  description: 'The first place at which an audit log is broken.',
  fields: (t) => ({
    sequence: t.field({ type: 'SafeInt', resolve: ({ position }) => position }),
    databaseId: t.field({
      type: 'SafeInt',
      nullable: true,
      description: 'Of the entry, where it is known.',
      resolve: ({ entryId }) => entryId,
    }),
    problem: t.exposeString('problem', {
      description:
        'missing, altered, repeated, truncated, beyond the head, head forged, unsealed, head not contained.',
    }),
  }),
})

const Verdict = builder.objectRef<ChainVerdict>('AuditLogVerdict').implement({
  description: 'What came of following the chain of an audit log.',
  fields: (t) => ({
    isIntact: t.boolean({
      description: 'Whether all that was followed is as it was written.',
      resolve: ({ fault }) => fault === null,
    }),
    fault: t.field({ type: FaultType, nullable: true, resolve: ({ fault }) => fault }),
    upTo: t.field({
      type: 'SafeInt',
      description: 'The place of the last entry that was found right.',
      resolve: ({ upTo }) => upTo,
    }),
    isComplete: t.exposeBoolean('isComplete', {
      description: 'Whether the end was reached; else ask again, with `after: upTo`.',
    }),
    sealedAt: t.expose('sealedAt', {
      type: 'DateTime',
      nullable: true,
      description: 'When the last entry was sealed.',
    }),
    head: t.exposeString('head', {
      nullable: true,
      description:
        'The end of the log in one line, to be kept elsewhere: `verifyAuditLog(head:)` says whether the ' +
        'log still contains it.',
    }),
  }),
})

builder.queryFields((t) => ({
  auditLog: t.field({
    type: Entries,
    nullable: true,
    scope: ['settings'],
    description: 'Who changed what, from where and when; newest first.',
    args: {
      first: t.arg.int({ description: '1 to 100; 20 where left out.' }),
      after: t.arg.string({ description: 'Cursor of the last entry that you have.' }),
      filter: t.arg({ type: AuditLogFilter }),
    },
    resolve: (_root, args, ctx) => listAuditLog(ctx, args),
  }),
  verifyAuditLog: t.field({
    type: Verdict,
    nullable: true,
    scope: ['settings'],
    description: `Computes the chain of the audit log anew, ${auditVerifyMax} entries at a time.`,
    args: {
      after: t.arg({ type: 'SafeInt', description: 'A place up to which you have proven it; else 0.' }),
      head: t.arg.string({
        description:
          'A head that you kept, from the field `head`, the daily letter or a log line. Where the log no ' +
          'longer contains it, that is a fault.',
      }),
    },
    resolve: (_root, { after, head }, ctx) => {
      const from = BigInt(after ?? 0)
      if (from < 0n) throw invalidInput([{ field: 'after', message: 'must be 0 or more' }])
      const { auditKey } = ctx.access.master
      const { merchantId } = mine(ctx)
      const kept = head == null ? null : readKeptHead(auditKey, merchantId, head)
      const options = { after: from, most: auditVerifyMax, kept }
      return verifyAuditLog(ctx.database.merchantPool, auditKey, merchantId, options)
    },
  }),
}))
