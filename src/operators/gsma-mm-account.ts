import type { GsmaSettings } from '../config/operators.ts'
import type { Clock } from '../shared/clock.ts'
import { type GsmaWire, partyPhone } from './gsma-mm-wire.ts'
import { type HttpResult, sha256, unreachable } from './http-client.ts'
import type {
  BalanceOutcome,
  CallContext,
  Health,
  PartyOutcome,
  OperatorStatementLine,
  StatementOutcome,
  Unreachable,
} from './operator.ts'
import { buildStatement, lineAmount } from './statement.ts'
import { type WireRecord, wireRecord, wireRecords } from './wire-record.ts'

/** Choice: a page of this many entries stays far below the size limit of an answer. */
const pageSize = 200
/** Choice: two million movements is more than a platform's account sees in a day. */
const pagesMax = 10_000

/**
 * Makes the functions that read accounts at a GSMA operator: our float, its movements, the holder of a
 * number, and the operator's health.
 */
export function gsmaAccount(settings: GsmaSettings, wire: GsmaWire, clock: Clock) {
  const ownPath = `/accounts/${settings.account.split(':').map(encodeURIComponent).join('/')}`
  const get = (operation: string, path: string, ctx: CallContext) =>
    wire.call({ operation, method: 'GET', path, correlationId: '' }, ctx)

  async function balance(ctx: CallContext): Promise<BalanceOutcome> {
    const result = await get('balance', `${ownPath}/balance`, ctx)
    const record = found(result)
    const current = record?.amount('currentBalance', 'availableBalance')
    if (!record || current === undefined) return silence(result)
    return {
      kind: 'ok',
      current,
      available: record.amount('availableBalance'),
      reserved: record.amount('reservedBalance'),
      asOf: clock.now(),
    }
  }

  async function health(ctx: CallContext): Promise<Health> {
    const record = found(await get('health', '/heartbeat', ctx))
    const status = record?.word('serviceStatus')
    return {
      status: status === 'available' || status === 'degraded' ? status : 'unavailable',
      delayMs: record?.count('delay'),
      until: record?.date('plannedRestorationTime'),
    }
  }

  async function lookupParty(phone: string, ctx: CallContext): Promise<PartyOutcome> {
    const path = `/accounts/msisdn/${encodeURIComponent(phone)}`
    const [named, accountState] = await Promise.all([
      get('lookup', `${path}/accountname`, ctx),
      get('lookup', `${path}/status`, ctx),
    ])
    const status = found(accountState)?.word('accountStatus', 'status')
    if (isAbsent(named) || isAbsent(accountState)) return { kind: 'absent' }
    if (status === undefined) return silence(accountState)
    return { kind: 'found', name: fullName(found(named)?.record('name')), active: status === 'available' }
  }

  /**
   * Reads the whole day, page by page. If a page is missing, the whole day counts as unreadable, so that no
   * line is left out unnoticed.
   */
  async function statement(day: string, ctx: CallContext): Promise<StatementOutcome> {
    if (Date.parse(day) > clock.now().getTime()) return { kind: 'not_ready' }
    const lines: OperatorStatementLine[] = []
    const digests: string[] = []
    for (let page = 0; page < pagesMax; page++) {
      const period = `fromDateTime=${day}T00:00:00.000Z&toDateTime=${day}T23:59:59.999Z`
      const path = `${ownPath}/statemententries?${period}&limit=${pageSize}&offset=${lines.length}`
      const result = await get('statement', path, ctx)
      if (result.kind !== 'answered' || result.status !== 200 || !Array.isArray(result.json))
        return silence(result)
      const entries = wireRecords(result.json)
      const read = entries.flatMap((entry, index) => statementLine(entry, lines.length + index + 1) ?? [])
      if (read.length !== result.json.length) return { kind: 'unreachable', cause: 'unreadable' }
      lines.push(...read)
      digests.push(result.digest)
      const available = Number(result.headers['x-records-available-count'] ?? Number.NaN)
      const last = Number.isNaN(available) ? read.length < pageSize : lines.length >= available
      if (last || read.length === 0) {
        const whole = Number.isNaN(available) || lines.length >= available
        if (!whole) return { kind: 'unreachable', cause: 'unreadable' }
        return buildStatement(settings.provider, day, clock.now(), sha256(digests.join()), lines)
      }
    }
    return { kind: 'unreachable', cause: 'unmapped' }
  }

  return { balance, health, lookupParty, statement }
}

const lineTypes = new Map<string | undefined, OperatorStatementLine['type']>([
  ['merchantpay', 'collect'],
  ['disbursement', 'disburse'],
  ['reversal', 'reversal'],
  ['adjustment', 'reversal'],
  ['fee', 'fee'],
  ['transfer', 'transfer'],
])

function statementLine(entry: WireRecord, lineNo: number): OperatorStatementLine | undefined {
  const operatorRef = entry.text('transactionReference')
  const type = lineTypes.get(entry.word('type')) ?? 'other'
  const amount = lineAmount(type, entry.amount('amount'))
  const postedAt = entry.date('creationDate', 'modificationDate')
  const direction = directionOf(entry, type)
  if (operatorRef === undefined || amount === undefined || postedAt === undefined || !direction)
    return undefined
  const counterparty =
    entry.text('counterparty') ?? partyPhone(entry, direction === 'credit' ? 'debitParty' : 'creditParty')
  return {
    lineNo,
    postedAt,
    type,
    direction,
    operatorRef,
    clientRef: entry.text('requestingOrganisationTransactionReference'),
    correlationId: entry.text('correlationId'),
    originalRef: entry.text('originalTransactionReference'),
    counterparty,
    amount,
    fee: (entry.list('fees') ?? []).reduce((sum, fee) => sum + (fee.amount('feeAmount') ?? 0n), 0n),
    balanceAfter: entry.amount('balance'),
  }
}

function directionOf(
  entry: WireRecord,
  type: OperatorStatementLine['type'],
): OperatorStatementLine['direction'] | undefined {
  const shown = entry.word('displayType')
  if (shown === 'in' || shown === 'credit') return 'credit'
  if (shown === 'out' || shown === 'debit') return 'debit'
  if (type === 'collect') return 'credit'
  return type === 'disburse' || type === 'fee' ? 'debit' : undefined
}

function fullName(name: WireRecord | undefined): string | undefined {
  const parts = [name?.text('firstName'), name?.text('lastName')].filter((part) => part !== undefined)
  return name?.text('fullName') ?? (parts.length > 0 ? parts.join(' ') : undefined)
}

function found(result: HttpResult): WireRecord | undefined {
  return result.kind === 'answered' && result.status === 200 ? wireRecord(result.json) : undefined
}

function isAbsent(result: HttpResult): boolean {
  if (result.kind !== 'answered' || result.status !== 404) return false
  return wireRecord(result.json)?.word('errorCategory') === 'identification'
}

/** Returns why a question got no answer. An answer that cannot be read counts as no answer. */
function silence(result: HttpResult): Unreachable {
  return unreachable(result) ?? { kind: 'unreachable', cause: 'unreadable' }
}
