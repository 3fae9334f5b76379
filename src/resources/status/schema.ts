import type { QueryConfig } from 'pg'
import { asPlatform } from '../../database/as-platform.ts'
import type { Context } from '../../context.ts'
import { singleFlight } from '../../shared/single-flight.ts'
import { builder } from '../../graphql/builder.ts'
import { PaymentMethod, wordEnum } from '../../graphql/enums.ts'
import { healthOfProofAge, type ProofAge, proofAgeColumns } from '../../ledger/proof-age.ts'
import type { OperatorStatus } from '../../operators/registry.ts'
import { apiVersion } from '../../shared/version.ts'
import { takesWrites } from './probe-write.ts'

type Health = 'operational' | 'degraded' | 'down'
type HaltReason = 'restored' | 'halted' | 'unproven'
const HaltReasonEnum = wordEnum<HaltReason>(
  'PaymentsOutHaltReason',
  {
    halted: 'A person or a broken rule of the ledger halted payments out. A person must resume them.',
    restored:
      'The database was restored from a backup. Payments resume when an administrator accepts the restore.',
    unproven: 'The ledger was not checked for too long. Payments resume when a check succeeds.',
  },
  'The reason why deposits, payouts and batches are halted.',
)
const HealthEnum = wordEnum<Health>(
  'Health',
  {
    degraded: 'The part works, but slowly or only partly.',
    down: 'The part does not work now.',
    operational: 'The part works normally.',
  },
  'The health of a part of the service.',
)

const Environment = wordEnum(
  'Environment',
  {
    production: 'The service moves real money.',
    sandbox: 'The service has operators that are played, with test numbers, and moves no real money.',
  },
  'The environment of the service.',
)

interface ServiceStatus {
  status: Health
  components: { database: Health; jobs: Health; paymentsOut: Health; paymentsOutReason: HaltReason | null }
  ledger: ProofAge & { status: Health }
  operators: readonly OperatorStatus[]
}

const Operator = builder.objectRef<OperatorStatus>('Operator').implement({
  description: 'The availability of a mobile-money operator.',
  fields: (t) => ({
    paymentMethod: t.field({
      type: PaymentMethod,
      description: 'The operator.',
      resolve: ({ provider }) => provider,
    }),
    collect: t.expose('collect', {
      type: HealthEnum,
      description: 'The health of collections at this operator.',
    }),
    disburse: t.expose('disburse', {
      type: HealthEnum,
      description: 'The health of deposits and payouts at this operator.',
    }),
    label: t.string({
      description: 'The name by which people know the operator, for pages and messages.',
      resolve: ({ provider }, _args, ctx) => ctx.config.faces[provider].label,
    }),
    colour: t.string({
      nullable: true,
      description: 'The colour of the operator as #rrggbb; null when none is set.',
      resolve: ({ provider }, _args, ctx) => ctx.config.faces[provider].colour,
    }),
    logoUrl: t.string({
      nullable: true,
      description: 'The address of the logo of the operator; null when none is set.',
      resolve: ({ provider }, _args, ctx) => {
        const { logo } = ctx.config.faces[provider]
        return logo && `${ctx.addresses.publicUrl}/${logo.path}`
      },
    }),
    ussd: t.string({
      nullable: true,
      description: 'The code that opens the menu of the operator on a telephone; null when none is set.',
      resolve: ({ provider }, _args, ctx) => ctx.config.faces[provider].ussd,
    }),
    since: t.expose('since', {
      type: 'DateTime',
      description: 'The moment of the last change of its health.',
    }),
  }),
})

const Components = builder.objectRef<ServiceStatus['components']>('ServiceComponents').implement({
  description: 'The health of the parts of the service.',
  fields: (t) => ({
    database: t.expose('database', {
      type: HealthEnum,
      description:
        'The health of the database. DOWN when it does not answer or cannot be written, for ' +
        'example because its disk is full.',
    }),
    jobs: t.expose('jobs', { type: HealthEnum, description: 'The health of the background jobs.' }),
    paymentsOut: t.expose('paymentsOut', {
      type: HealthEnum,
      description:
        'The health of deposits, payouts and batches. DOWN while they are halted; ' +
        '`paymentsOutReason` tells why.',
    }),
    paymentsOutReason: t.expose('paymentsOutReason', {
      type: HaltReasonEnum,
      nullable: true,
      description:
        'The reason why payments out are halted; null when they are not, or when the database ' +
        'does not answer.',
    }),
  }),
})

const Ledger = builder.objectRef<ServiceStatus['ledger']>('LedgerStatus').implement({
  description: 'The result of the last check of the ledger, which runs every minute.',
  fields: (t) => ({
    status: t.expose('status', {
      type: HealthEnum,
      description:
        'DEGRADED when the last successful check is older than five minutes, DOWN when payments ' +
        'out are halted for that reason.',
    }),
    provenAt: t.expose('provenAt', {
      type: 'DateTime',
      nullable: true,
      description:
        'The moment up to which every ledger entry and event was checked and found correct; ' +
        'null before the first check.',
    }),
    ageSeconds: t.int({
      nullable: true,
      description: 'Seconds since the last successful check of the ledger; null before the first check.',
      resolve: ({ ageMs }) => (ageMs === null ? null : Math.floor(ageMs / 1_000)),
    }),
  }),
})

const Status = builder.objectRef<ServiceStatus>('ServiceStatus').implement({
  description: 'The health of the service.',
  fields: (t) => ({
    status: t.expose('status', { type: HealthEnum, description: 'The health of the service as a whole.' }),
    version: t.string({ description: 'The version of the API.', resolve: () => apiVersion }),
    environment: t.field({
      type: Environment,
      description: 'The environment of the service.',
      resolve: (_status, _args, ctx) => ctx.config.mode,
    }),
    time: t.field({
      type: 'DateTime',
      description: 'The present time of the service. In a sandbox it may have been moved forward.',
      resolve: (_status, _args, ctx) => ctx.clock.now(),
    }),
    components: t.field({
      type: Components,
      description: 'The health of each part of the service.',
      resolve: ({ components }) => components,
    }),
    ledger: t.field({
      type: Ledger,
      description: 'The result of the last check of the ledger.',
      resolve: ({ ledger }) => ledger,
    }),
    operators: t.field({
      type: [Operator],
      description: 'The operators that are connected, and their health.',
      resolve: ({ operators }) => [...operators],
    }),
  }),
})

builder.queryFields((t) => ({
  serviceStatus: t.field({
    type: Status,
    scope: 'public',
    description: 'The health of the service and of its operators.',
    resolve: (_root, _args, ctx) => singleFlight(ctx, 'status', () => readStatus(ctx)),
  }),
  operators: t.field({
    type: [Operator],
    scope: 'public',
    description: 'The operators that are connected, and their health.',
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
  // A database that does not answer in time counts as down.
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
  const ledger = { provenAt, ageMs, status: found ? healthOfProofAge(ageMs, proof) : 'down' } as const
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
