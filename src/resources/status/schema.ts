import type { QueryConfig } from 'pg'
import { asPlatform } from '../../database/as-platform.ts'
import type { Context } from '../../context.ts'
import { shareFlight } from '../../shared/flights.ts'
import { builder } from '../../graphql/builder.ts'
import { PaymentMethod, wordEnum } from '../../graphql/enums.ts'
import { judgeProofAge, type ProofAge, proofAgeColumns } from '../../ledger/proof-age.ts'
import type { OperatorStatus } from '../../operators/registry.ts'
import { apiVersion } from '../../shared/version.ts'
import { takesWrites } from './probe-write.ts'

type Health = 'operational' | 'degraded' | 'down'
type HaltReason = 'restored' | 'halted' | 'unproven'
const HaltReasonEnum = wordEnum(
  'PaymentsOutHaltReason',
  ['restored', 'halted', 'unproven'],
  'Why no money may leave: the database was restored and nobody has accepted that; a halt that a person ' +
    'lifts; or the books were not proven for too long, and it ends when they are.',
)
const HealthEnum = wordEnum('Health', ['operational', 'degraded', 'down'], 'How well something works.')

interface ServiceStatus {
  status: Health
  components: { database: Health; jobs: Health; paymentsOut: Health; paymentsOutReason: HaltReason | null }
  ledger: ProofAge & { status: Health }
  operators: readonly OperatorStatus[]
}

const Operator = builder.objectRef<OperatorStatus>('Operator').implement({
  description: 'A mobile-money operator, as it can be used now.',
  fields: (t) => ({
    paymentMethod: t.field({ type: PaymentMethod, resolve: ({ provider }) => provider }),
    collect: t.expose('collect', { type: HealthEnum }),
    disburse: t.expose('disburse', { type: HealthEnum }),
    since: t.expose('since', { type: 'DateTime', description: 'When it became so.' }),
  }),
})

const Components = builder.objectRef<ServiceStatus['components']>('ServiceComponents').implement({
  fields: (t) => ({
    database: t.expose('database', {
      type: HealthEnum,
      description: '`down` where it does not answer or takes no writes: its disk is full, for example.',
    }),
    jobs: t.expose('jobs', { type: HealthEnum }),
    paymentsOut: t.expose('paymentsOut', {
      type: HealthEnum,
      description: 'Whether money may leave; `down` where it was halted; the reason says until when.',
    }),
    paymentsOutReason: t.expose('paymentsOutReason', {
      type: HaltReasonEnum,
      nullable: true,
      description: 'Why money may not leave; null where it may, and while the database does not answer.',
    }),
  }),
})

const Ledger = builder.objectRef<ServiceStatus['ledger']>('LedgerStatus').implement({
  description: 'When the books were last proven. They are proven each minute.',
  fields: (t) => ({
    status: t.expose('status', {
      type: HealthEnum,
      description:
        '`degraded` where the last proof is older than five minutes, `down` where payments out halt for it.',
    }),
    provenAt: t.expose('provenAt', {
      type: 'DateTime',
      nullable: true,
      description: 'Every movement and event up to then was found right. Null before the first proof.',
    }),
    ageSeconds: t.int({
      nullable: true,
      description: 'How long ago that was, by the clock of the database.',
      resolve: ({ ageMs }) => (ageMs === null ? null : Math.floor(ageMs / 1_000)),
    }),
  }),
})

const Status = builder.objectRef<ServiceStatus>('ServiceStatus').implement({
  description: 'How the service is.',
  fields: (t) => ({
    status: t.expose('status', { type: HealthEnum }),
    version: t.string({ resolve: () => apiVersion }),
    environment: t.string({ resolve: (_status, _args, ctx) => ctx.config.mode }),
    time: t.field({ type: 'DateTime', resolve: (_status, _args, ctx) => ctx.clock.now() }),
    components: t.field({ type: Components, resolve: ({ components }) => components }),
    ledger: t.field({ type: Ledger, resolve: ({ ledger }) => ledger }),
    operators: t.field({ type: [Operator], resolve: ({ operators }) => [...operators] }),
  }),
})

builder.queryFields((t) => ({
  serviceStatus: t.field({
    type: Status,
    scope: 'public',
    description: 'How the service and its operators are.',
    resolve: (_root, _args, ctx) => shareFlight(ctx, 'status', () => readStatus(ctx)),
  }),
  operators: t.field({
    type: [Operator],
    scope: 'public',
    description: 'The operators that are connected.',
    resolve: (_root, _args, ctx) => [...ctx.operators.list()],
  }),
}))

const databaseAnswerMs = 2_000
const unknownBooks = { provenAt: null, ageMs: null, reason: null }
const booksQuestion = `SELECT CASE
    WHEN EXISTS (SELECT FROM installation WHERE restored_at IS NOT NULL) THEN 'restored'
    WHEN EXISTS (SELECT FROM payments_out_halt WHERE lifted_at IS NULL AND NOT lifts_itself) THEN 'halted'
    WHEN EXISTS (SELECT FROM payments_out_halt WHERE lifted_at IS NULL) THEN 'unproven' END AS reason,
  ${proofAgeColumns} FROM (VALUES (true)) AS one LEFT JOIN audit_point ON true`

async function readStatus(ctx: Context): Promise<ServiceStatus> {
  // A database that does not answer is as good as none.
  const question: QueryConfig & { query_timeout: number } = {
    text: booksQuestion,
    query_timeout: databaseAnswerMs,
  }
  const { pool } = asPlatform(ctx, 'reads no row of a merchant')
  const [found, isWritable] = await Promise.all([
    pool.query<ProofAge & { reason: HaltReason | null }>(question).catch(() => null),
    takesWrites(pool),
  ])
  const { provenAt, ageMs, reason: paymentsOutReason } = found?.rows[0] ?? unknownBooks
  const database = found && isWritable ? 'operational' : 'down'
  const paymentsOut = found && paymentsOutReason === null ? 'operational' : 'down'
  const proof = { upMs: ctx.upMs(), haltAfterMs: ctx.config.auditHaltAfterMs }
  const ledger = { provenAt, ageMs, status: found ? judgeProofAge(ageMs, proof) : 'down' } as const
  const operators = ctx.operators.list()
  const jobs = ctx.jobsHealthy() ? 'operational' : 'degraded'
  const works = [jobs, paymentsOut, ledger.status].every((health) => health === 'operational')
  const allWell = works && operators.every(({ collect }) => collect === 'operational')
  return {
    status: database === 'down' ? 'down' : allWell ? 'operational' : 'degraded',
    components: { database, jobs, paymentsOut, paymentsOutReason },
    ledger,
    operators,
  }
}
