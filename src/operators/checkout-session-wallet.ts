import type { CheckoutSettings } from '../config/operators.ts'
import type { Clock } from '../shared/clock.ts'
import type { CheckoutWire } from './checkout-session-wire.ts'
import { type HttpResult, sha256, unreachable } from './http-client.ts'
import type {
  BalanceOutcome,
  CallContext,
  Health,
  OperatorStatementLine,
  StatementOutcome,
  Unreachable,
} from './operator.ts'
import { buildStatement, lineAmount } from './statement.ts'
import { asAmount, type WireRecord, wireRecord } from './wire-record.ts'

/** The largest page of a statement; the operator chooses the size of its pages. */
const pageMaxBytes = 4 * 1_024 * 1_024
/** Choice: a million movements, in pages of a hundred, is more than a wallet sees in a day. */
const pagesMax = 10_000

/**
 * Makes the functions that read our wallet at a checkout operator: its balance, which also shows the
 * operator's health, and its movements.
 */
export function checkoutWallet(settings: CheckoutSettings, wire: CheckoutWire, clock: Clock) {
  async function balance(ctx: CallContext): Promise<BalanceOutcome> {
    const result = await wire.call(
      { operation: 'balance', method: 'GET', path: '/v1/balance', correlationId: '' },
      ctx,
    )
    const current = found(result)?.amount('amount')
    return current === undefined ? silence(result) : { kind: 'ok', current, asOf: clock.now() }
  }

  async function health(ctx: CallContext): Promise<Health> {
    const { kind } = await balance(ctx)
    return { status: kind === 'ok' ? 'available' : 'unavailable' }
  }

  /**
   * Reads the whole day, page by page. If a page is missing, the whole day counts as unreadable, so that no
   * line is left out unnoticed.
   */
  async function statement(day: string, ctx: CallContext): Promise<StatementOutcome> {
    if (Date.parse(day) > clock.now().getTime()) return { kind: 'not_ready' }
    const lines: OperatorStatementLine[] = []
    const digests: string[] = []
    let after = ''
    for (let page = 0; page < pagesMax; page++) {
      const path = `/v1/transactions?date=${day}${after && `&after=${encodeURIComponent(after)}`}`
      const call = {
        operation: 'statement',
        method: 'GET',
        path,
        correlationId: '',
        answerMaxBytes: pageMaxBytes,
      } as const
      const result = await wire.call(call, ctx)
      const record = found(result)
      const items = record?.list('items')
      const info = record?.record('page_info')
      if (result.kind !== 'answered' || !items || !info) return silence(result)
      const read = items.flatMap((item, index) => statementLine(item, lines.length + index + 1) ?? [])
      // The operator announced a further page, and it is empty: the rest of the day is missing.
      const missing = page > 0 && items.length === 0
      if (missing || read.length !== items.length) return { kind: 'unreachable', cause: 'unreadable' }
      lines.push(...read)
      digests.push(result.digest)
      const next = info.flag('has_next_page') ? info.text('end_cursor') : undefined
      if (next === undefined)
        return buildStatement(settings.provider, day, clock.now(), sha256(digests.join()), lines)
      if (next === after) break
      after = next
    }
    return { kind: 'unreachable', cause: 'unmapped' }
  }

  return { balance, health, statement }
}

function statementLine(item: WireRecord, lineNo: number): OperatorStatementLine | undefined {
  const operatorRef = item.text('transaction_id')
  const signed = item.text('amount')
  const type = lineType(item)
  const amount = lineAmount(type, asAmount(signed?.replace(/^-/, '')))
  const postedAt = item.date('timestamp')
  if (operatorRef === undefined || amount === undefined || postedAt === undefined) return undefined
  return {
    lineNo,
    postedAt,
    type,
    direction: signed?.startsWith('-') ? 'debit' : 'credit',
    operatorRef,
    clientRef: item.text('client_reference'),
    originalRef: item.text('original_transaction_id'),
    counterparty: item.text('counterparty_mobile'),
    amount,
    fee: item.amount('fee') ?? 0n,
    balanceAfter: item.amount('balance'),
  }
}

/**
 * Returns the type of a line by common parts of the operator's type names, because the operator adds new
 * types.
 */
function lineType(item: WireRecord): OperatorStatementLine['type'] {
  const type = item.word('transaction_type') ?? ''
  if (item.flag('is_reversal') || /refund|revers/.test(type)) return 'reversal'
  if (type.includes('fee')) return 'fee'
  if (/payout|bulk_payment/.test(type)) return 'disburse'
  if (/^(merchant|checkout|api_checkout)/.test(type)) return 'collect'
  return type.includes('transfer') ? 'transfer' : 'other'
}

function found(result: HttpResult): WireRecord | undefined {
  return result.kind === 'answered' && result.status === 200 ? wireRecord(result.json) : undefined
}

function silence(result: HttpResult): Unreachable {
  return unreachable(result) ?? { kind: 'unreachable', cause: 'unreadable' }
}
