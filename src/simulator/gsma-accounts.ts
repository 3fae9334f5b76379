import { pool } from './book.ts'
import { RequestFault } from './gsma-requests.ts'
import { currency, isoTime, transactionBody } from './gsma-shapes.ts'
import type { SimulatorCall, Reply, SimulatorRoute } from './http.ts'
import { json, param } from './http.ts'
import { nameOf } from './names.ts'
import type { OperatorProfile } from './operators.ts'
import { poolIdentifier } from './operators.ts'
import type { PoolLine } from './pool-lines.ts'
import { partOf } from './scenarios.ts'
import type { StatementLines } from './statement-lines.ts'
import { statementLines } from './statement-lines.ts'
import type { SimulatorContext } from './context.ts'

const pageDefault = 50
const pageMax = 500

/** Makes the account routes of the standard: our float and its movements, and the holder of a number. */
export function accountRoutes(profile: OperatorProfile, context: SimulatorContext): SimulatorRoute[] {
  const own = (call: SimulatorCall) => {
    if (param(call, 'type') !== 'accountid' || param(call, 'identifier') !== poolIdentifier) throw notOurs()
  }
  return [
    { method: 'GET', pattern: '/accounts/balance', handle: () => balance(profile, context) },
    {
      method: 'GET',
      pattern: '/accounts/transactions',
      handle: (call) => transactions(profile, context, call),
    },
    {
      method: 'GET',
      pattern: '/accounts/statemententries',
      handle: (call) => statement(profile, context, call),
    },
    {
      method: 'GET',
      pattern: '/accounts/msisdn/:number/accountname',
      handle: (call) => accountName(context, call),
    },
    {
      method: 'GET',
      pattern: '/accounts/msisdn/:number/status',
      handle: (call) => accountStatus(context, call),
    },
    {
      method: 'GET',
      pattern: '/accounts/:type/:identifier/balance',
      handle: (call) => (own(call), balance(profile, context)),
    },
    {
      method: 'GET',
      pattern: '/accounts/:type/:identifier/transactions',
      handle: (call) => (own(call), transactions(profile, context, call)),
    },
    {
      method: 'GET',
      pattern: '/accounts/:type/:identifier/statemententries',
      handle: (call) => (own(call), statement(profile, context, call)),
    },
  ]
}

function balance(profile: OperatorProfile, context: SimulatorContext): Reply {
  const francs = String(context.store.book.balance(profile.key, pool) ?? 0n)
  return json(200, {
    currentBalance: francs,
    availableBalance: francs,
    reservedBalance: '0',
    unclearedBalance: '0',
    currency,
    accountStatus: 'available',
  })
}

/**
 * Answers with the operations that moved our float, oldest first, so that pages do not shift while money
 * comes in.
 */
function transactions(profile: OperatorProfile, context: SimulatorContext, call: SimulatorCall): Reply {
  const { lines } = linesOf(profile, context, call)
  const moved = lines.filter((line) => line.operation !== null)
  return page(context, call, { lines: moved, promised: moved.length }, (line) => {
    const operation = context.store.operationOf(line)
    return operation ? transactionBody(operation) : {}
  })
}

/** Answers with every movement of our float and its fee, oldest first. */
function statement(profile: OperatorProfile, context: SimulatorContext, call: SimulatorCall): Reply {
  return page(context, call, linesOf(profile, context, call), (line) => {
    const operation = context.store.operationOf(line)
    const amount = line.amount < 0n ? -line.amount : line.amount
    return {
      transactionReference: operation?.id ?? `${profile.key.toUpperCase()}${line.seq}`,
      transactionStatus: 'completed',
      displayType: line.amount < 0n ? 'out' : 'in',
      type: operation ? transactionBody(operation)['type'] : 'transfer',
      amount: String(amount),
      currency,
      fees: [{ feeType: 'transaction', feeAmount: String(-line.fee), feeCurrency: currency }],
      balance: String(line.balanceAfter),
      requestingOrganisationTransactionReference: operation?.clientReference ?? '',
      correlationId: operation?.correlationId ?? '',
      counterparty: operation?.msisdn ?? '',
      ...(operation?.originalId ? { originalTransactionReference: operation.originalId } : {}),
      creationDate: isoTime(line.at),
    }
  })
}

function linesOf(profile: OperatorProfile, context: SimulatorContext, call: SimulatorCall): StatementLines {
  const from = timeParameter(call, 'fromDateTime', Number.NEGATIVE_INFINITY)
  const to = timeParameter(call, 'toDateTime', Number.POSITIVE_INFINITY)
  const { lines, promised } = statementLines(context, profile.key)
  const shown = lines.filter((line) => line.at >= from && line.at <= to)
  return { lines: shown, promised: promised - lines.length + shown.length }
}

function page(
  context: SimulatorContext,
  call: SimulatorCall,
  { lines: rows, promised }: StatementLines,
  show: (line: PoolLine) => object,
): Reply {
  const limit = Math.min(countParameter(call, 'limit', pageDefault), pageMax)
  const offset = countParameter(call, 'offset', 0)
  if (offset > rows.length) throw new RequestFault('validation', 'invalidOffset', 'offset: beyond the end.')
  const shown = rows.slice(offset, offset + limit).map(show)
  return json(200, shown, {
    'x-date': isoTime(context.clock.now()),
    'x-records-available-count': String(promised),
    'x-records-returned-count': String(shown.length),
  })
}

function accountName(context: SimulatorContext, call: SimulatorCall): Reply {
  const { first, last } = nameOf(knownNumber(call))
  const name = { firstName: first, lastName: last, fullName: `${first} ${last}` }
  return json(200, { name }, { 'x-date': isoTime(context.clock.now()) })
}

function accountStatus(context: SimulatorContext, call: SimulatorCall): Reply {
  const { act } = partOf(knownNumber(call))
  const blocked = act.does === 'refuseAtOnce' && act.reason === 'blocked'
  return json(
    200,
    { accountStatus: blocked ? 'unavailable' : 'available' },
    { 'x-date': isoTime(context.clock.now()) },
  )
}

function knownNumber(call: SimulatorCall): string {
  const msisdn = `+${param(call, 'number').replace(/^\+/, '')}`
  const { act } = partOf(msisdn)
  const absent = act.does === 'refuseAtOnce' && act.reason === 'notFound'
  if (absent || !/^\+\d{9,15}$/.test(msisdn)) {
    throw new RequestFault('identification', 'identifierError', 'No wallet has this number.')
  }
  return msisdn
}

function countParameter(call: SimulatorCall, name: string, absent: number): number {
  const value = call.query.get(name)
  if (value === null) return absent
  if (!/^\d{1,9}$/.test(value))
    throw new RequestFault('validation', 'formatError', `${name}: a whole number.`)
  return Number(value)
}

function timeParameter(call: SimulatorCall, name: string, absent: number): number {
  const value = call.query.get(name)
  if (value === null) return absent
  const at = Date.parse(value)
  if (Number.isNaN(at)) throw new RequestFault('validation', 'formatError', `${name}: an ISO 8601 date-time.`)
  return at
}

function notOurs(): RequestFault {
  return new RequestFault(
    'authorisation',
    'requestingPartyAuthorisationError',
    'That account is not the client\u2019s.',
  )
}
