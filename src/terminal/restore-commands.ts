import { z } from 'zod'
import { addressesOf } from '../config/config.ts'
import { sandboxOperators } from '../config/operators.ts'
import { beginEpoch } from '../database/restores.ts'
import { openSandboxClock } from '../database/sandbox-clock.ts'
import { createOperators } from '../operators/registry.ts'
import { acceptRestore, type AcceptedRestore, findOrphansAgain } from '../resources/recovery/accept.ts'
import type { LeftOut } from '../resources/recovery/operators-on-record.ts'
import { listOrphans, type Orphan, resolveOrphan } from '../resources/recovery/orphans.ts'
import { systemClock } from '../shared/clock.ts'
import { provider as providerInput, readInput, text, wholeNumber } from '../shared/input.ts'
import { formatXof } from '../shared/money.ts'
import { createLog } from '../telemetry/log.ts'
import type { AdminServices } from './administration-context.ts'

const reasonInput = z.object({ reason: text({ min: 1, max: 500 }) })
const withoutInput = z.object({ without: z.array(providerInput), reason: text({ min: 1, max: 500 }) })
const orphanInput = z.object({
  id: wholeNumber(1, Number.MAX_SAFE_INTEGER),
  reason: text({ min: 1, max: 500 }),
})

/**
 * The longest time without progress while open requests settle. Choice: the service asks about due requests
 * within seconds.
 */
const patienceMs = 60_000

/** The commands for use after a restore of the database. */
export const restoreCommands = {
  'restore accept': async (services: AdminServices, flags: AcceptFlags) => {
    const keepKeys = flags['keep-keys'] === true
    const accepted = await withOperators(services, flags, (options) =>
      acceptRestore({ ...options, keepKeys, patienceMs }),
    )
    return { answer: answerOf(accepted), words: wordsOf(accepted).join('\n') }
  },
  'restore orphans': async (
    services: AdminServices,
    flags: AcceptFlags & { again?: boolean | undefined },
  ) => {
    const orphans = flags.again
      ? (await withOperators(services, flags, findOrphansAgain)).orphans
      : await listOrphans(services.database.pool)
    const none = ['The operators know no payment that is missing here.']
    return {
      answer: { orphans: orphans.map(plain) },
      words: (orphans.length === 0 ? none : orphans.map(lineOf)).join('\n'),
    }
  },
  'restore resolve': async (
    { database }: AdminServices,
    flags: { id?: string | undefined; reason?: string | undefined },
  ) => {
    const { id, reason } = readInput(orphanInput, flags)
    await resolveOrphan(database.pool, BigInt(id), reason)
    return { answer: { orphan_id: id, resolved: true }, words: `Orphan ${id} is resolved.` }
  },
  'restore declare': async ({ database }: AdminServices, flags: { reason?: string | undefined }) => {
    const { reason } = readInput(reasonInput, flags)
    const client = await database.pool.connect()
    try {
      const { rows } = await client.query<{ epoch: number }>('SELECT epoch FROM installation')
      const epoch = await beginEpoch(client, rows[0]?.epoch ?? 1, `declared by a person: ${reason}`)
      return {
        answer: { epoch },
        words: `The database is in epoch ${epoch}: no money leaves until it is accepted.`,
      }
    } finally {
      client.release()
    }
  },
}

interface AcceptFlags extends WithoutFlags {
  'keep-keys'?: boolean | undefined
}

interface WithoutFlags {
  without?: string | undefined
  reason?: string | undefined
}

/** Reads which operators a person leaves out. @throws DomainError INVALID_INPUT */
function leftOutOf({ without, reason }: WithoutFlags): LeftOut | null {
  if (without === undefined) return null
  const given = readInput(withoutInput, { without: without.split(',').map((name) => name.trim()), reason })
  return { providers: given.without, reason: given.reason }
}

/** Does work with the operators of the settings, and closes them afterwards. */
async function withOperators<T>(
  { config, database, access, progress }: AdminServices,
  flags: WithoutFlags,
  work: (options: Parameters<typeof findOrphansAgain>[0]) => Promise<T>,
): Promise<T> {
  const leftOut = leftOutOf(flags)
  const { pool } = database
  const { simulator } = config
  const clock = simulator ? await openSandboxClock(pool) : systemClock
  const settings = simulator
    ? sandboxOperators(simulator.url ?? `http://127.0.0.1:${simulator.port}`, simulator.limits)
    : config.operators
  const operators = createOperators(settings, {
    log: createLog('silent'),
    clock,
    callbackUrl: addressesOf(config, config.port).callbackUrl,
    callbackSecret: access.master.callbackSecret,
  })
  try {
    return await work({ pool, operators, clock, leftOut, progress: progress ?? (() => {}) })
  } finally {
    await operators.close()
  }
}

function answerOf({ epoch, reconciled, orphans, suspendedKeys, haltedStill }: AcceptedRestore): object {
  const { known, openRequestIds, notBegun, differing } = reconciled
  return {
    epoch,
    known,
    settled: openRequestIds.length,
    not_begun: notBegun,
    differing: differing.map(({ said, recorded, ...rest }) => ({
      ...rest,
      said: Number(said),
      recorded: Number(recorded),
    })),
    orphans: orphans.map(plain),
    suspended_keys: suspendedKeys,
    halted_still: haltedStill,
  }
}

function wordsOf({ epoch, reconciled, orphans, suspendedKeys, haltedStill }: AcceptedRestore): string[] {
  const { known, openRequestIds, notBegun, differing } = reconciled
  return [
    `The restore is accepted; the database is in epoch ${epoch}.`,
    `  ${known} transfers of the operators were on record, ${openRequestIds.length} were settled now,`,
    `  ${notBegun} belong to payouts that have not begun here: they are not sent, only asked about.`,
    ...differing.map(({ provider, operatorRef, said, recorded }) => {
      const [theirs, ours] = [formatXof(said, 'en'), formatXof(recorded, 'en')]
      return `  ${provider} ${operatorRef}: the operator says ${theirs}, on record are ${ours}`
    }),
    ...(orphans.length > 0 ? [`${orphans.length} transfers are not on record:`, ...orphans.map(lineOf)] : []),
    ...(suspendedKeys > 0 ? [`${suspendedKeys} API keys are suspended until they are regenerated.`] : []),
    haltedStill ? `Payments out are still halted: ${haltedStill}` : 'Money may leave again.',
  ]
}

function lineOf({
  id,
  provider,
  kind,
  amount,
  counterparty,
  operatorRef,
  correlationId,
  postedAt,
}: Orphan): string {
  const what = {
    collect: 'collected from',
    disburse: 'paid to',
    reverse: 'taken back from or given back to',
  }[kind]
  const name = correlationId ? ` (asked as ${correlationId})` : ''
  const money = `${formatXof(amount, 'en')} ${what} ${counterparty ?? 'unknown'}${name}`
  return `  ${id}  ${postedAt.toISOString()}  ${provider} ${operatorRef}: ${money}`
}

function plain({
  id,
  amount,
  provider,
  kind,
  counterparty,
  operatorRef,
  correlationId,
  postedAt,
}: Orphan): object {
  return {
    id: Number(id),
    payment_method: provider,
    kind,
    amount: Number(amount),
    counterparty,
    operator_reference: operatorRef,
    identity: correlationId,
    posted_at: postedAt.toISOString(),
  }
}
