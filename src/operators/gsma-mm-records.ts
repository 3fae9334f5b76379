import type { GsmaSettings } from '../config/operators.ts'
import { currency } from '../shared/money.ts'
import { type GsmaError, readGsmaError } from './gsma-mm-errors.ts'
import type { Evidence, OperationKind } from './operator.ts'
import { keptFee, movedAmount, type WireRecord } from './wire-record.ts'

type Meaning = GsmaSettings['statusMap'][string]

/**
 * A transaction of the standard, with its free-text status in our meaning (undefined: a word nobody mapped).
 */
export interface GsmaTransaction {
  is: 'transaction'
  status: string
  meaning: Meaning | undefined
  reference: string
  error: GsmaError | undefined
  record: WireRecord
}

/** A request that the operator took and has finished or not. */
export interface GsmaRequestState {
  is: 'request state'
  status: string
  serverCorrelationId: string | undefined
  /** The transaction; promised only once it is completed. */
  reference: string | undefined
  expiresAt: Date | undefined
  pollLimit: number | undefined
  notify: 'callback' | 'polling' | undefined
  error: GsmaError | undefined
}

/** What an answer of the operator turned out to be; a bare error object is one too. */
export type GsmaRecord = GsmaTransaction | GsmaRequestState | { is: 'error'; error: GsmaError }

/** Recognises a record by what it holds, because answers to one question differ in kind. */
export function readGsmaRecord(
  record: WireRecord | undefined,
  statusMap: GsmaSettings['statusMap'],
): GsmaRecord | undefined {
  if (!record) return undefined
  const status = record.word('transactionStatus')
  const reference = record.text('transactionReference')
  if (status !== undefined && reference !== undefined) {
    const meaning = Object.hasOwn(statusMap, status) ? statusMap[status] : undefined
    return { is: 'transaction', status, meaning, reference, error: errorWithin(record), record }
  }
  const error = readGsmaError(record)
  if (error) return { is: 'error', error }
  const state = record.word('status')
  return state === undefined ? undefined : readState(record, state)
}

/**
 * What a transaction proves about money; undefined where its amount or currency cannot be read (see
 * `movedAmount`).
 * @param digest SHA-256 of the bytes it came in
 */
export function readEvidence(
  { record, reference }: GsmaTransaction,
  kind: OperationKind,
  source: Evidence['source'],
  digest: string,
  now: Date,
): Evidence | undefined {
  const amount = movedAmount(record, 'amount')
  if (amount === undefined || (record.text('currency') ?? currency).toUpperCase() !== currency)
    return undefined
  const fees = record.list('fees')?.map((fee) => fee.amount('feeAmount') ?? 0n)
  const receipt = record.text('transactionReceipt')
  return {
    operatorRef: reference,
    receipt: receipt === reference ? undefined : receipt,
    amount,
    fee: keptFee(fees?.reduce((sum, fee) => sum + fee, 0n)),
    settledAt: record.date('modificationDate', 'creationDate') ?? now,
    counterparty: partyPhone(record, kind === 'collect' ? 'debitParty' : 'creditParty'),
    source,
    digest,
  }
}

/** The telephone number among the identifiers of one side of a transaction. */
export function partyPhone(record: WireRecord, side: 'debitParty' | 'creditParty'): string | undefined {
  return record
    .list(side)
    ?.find((party) => party.word('key') === 'msisdn')
    ?.text('value')
}

function readState(record: WireRecord, status: string): GsmaRequestState {
  const notify = record.word('notificationMethod')
  return {
    is: 'request state',
    status,
    serverCorrelationId: record.text('serverCorrelationId'),
    reference: record.text('objectReference'),
    expiresAt: record.date('expiryTime'),
    pollLimit: record.count('pollLimit'),
    notify: notify === 'callback' || notify === 'polling' ? notify : undefined,
    error: errorWithin(record),
  }
}

/**
 * The schema calls it `error`, the text of the standard `errorReference`; a failed transaction may keep it as
 * custom data.
 */
function errorWithin(record: WireRecord): GsmaError | undefined {
  const error = readGsmaError(record.record('error', 'errorReference'))
  if (error) return error
  const code = record
    .list('customData')
    ?.find((entry) => entry.word('key') === 'errorcode')
    ?.text('value')
  return code === undefined
    ? undefined
    : { category: '', code, key: code.toLowerCase(), message: undefined, detail: undefined }
}
