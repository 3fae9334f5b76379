import type { GsmaSettings } from '../config/operators.ts'
import type { Clock } from '../shared/clock.ts'
import type { Log } from '../telemetry/log.ts'
import { type AccessTokens, createAccessTokens } from './access-token.ts'
import { type GsmaError, readGsmaError } from './gsma-mm-errors.ts'
import { spareMs } from './call-limits.ts'
import { createHttpClient, type HttpResult, sha256 } from './http-client.ts'
import type { CallContext, Evidence, OperationKind } from './operator.ts'
import type { StatedPayment } from './same-payment.ts'
import { keptFee, movedAmount, wireRecord, type WireRecord } from './wire-record.ts'
import { currency } from '../shared/money.ts'

export interface GsmaCall {
  operation: string
  method: 'GET' | 'POST' | 'PATCH'
  /** The path below the base address, with its leading slash. */
  path: string
  correlationId: string
  body?: unknown
  callbackUrl?: string | undefined
  answerMaxBytes?: number
}

/**
 * The API of one operator: requests with the standard's headers, and a token that is renewed when necessary.
 */
export interface GsmaWire {
  call(call: GsmaCall, ctx: CallContext): Promise<HttpResult>
  /**
   * Returns the path below the base address that a link of the operator names; null where the link leads
   * elsewhere.
   */
  pathOfLink(link: string): string | null
  close(): Promise<void>
}

export function createGsmaWire(settings: GsmaSettings, clock: Clock, log: Log): GsmaWire {
  const root = settings.baseUrl.replace(/\/+$/, '')
  const base = new URL(root)
  const basePath = base.pathname.replace(/\/$/, '')
  const origins = [base.origin, new URL(settings.tokenUrl).origin]
  const http = createHttpClient(settings.provider, origins, settings.limits.requestsPerSecond, () =>
    clock.now(),
  )
  const tokens = createAccessTokens(settings, http, log)

  async function call(request: GsmaCall, ctx: CallContext): Promise<HttpResult> {
    const first = await withToken(tokens, ctx, (token) => send(request, token, ctx))
    if (!('refused' in first)) return first
    // The operator names the token as the reason, so nothing was executed, and a new token may work.
    tokens.drop(first.refused)
    const second = await withToken(tokens, ctx, (token) => send(request, token, ctx))
    return 'refused' in second ? second.result : second
  }

  function send(request: GsmaCall, token: string, ctx: CallContext): Promise<HttpResult> {
    const body = request.body === undefined ? undefined : JSON.stringify(request.body)
    const creates = request.method !== 'GET'
    return http.send(
      {
        operation: request.operation,
        correlationId: request.correlationId,
        method: request.method,
        url: new URL(root + request.path),
        body,
        ...(request.answerMaxBytes === undefined ? {} : { answerMaxBytes: request.answerMaxBytes }),
        headers: {
          accept: 'application/json',
          authorization: `Bearer ${token}`,
          'x-date': clock.now().toISOString(),
          'x-channel': 'API',
          'x-client-id': settings.clientId,
          ...(settings.apiKey ? { 'x-api-key': settings.apiKey.reveal() } : {}),
          ...(creates ? { 'x-correlationid': request.correlationId } : {}),
          ...(request.callbackUrl === undefined ? {} : { 'x-callback-url': request.callbackUrl }),
          ...(body === undefined
            ? {}
            : { 'content-type': 'application/json', 'x-content-hash': sha256(body) }),
          ...(ctx.traceparent === undefined ? {} : { traceparent: ctx.traceparent }),
        },
      },
      ctx,
    )
  }

  function pathOfLink(link: string): string | null {
    if (!URL.canParse(link, base.origin)) return null
    const url = new URL(link, base.origin)
    if (url.origin !== base.origin) return null
    if (url.pathname.startsWith(`${basePath}/`)) return url.pathname.slice(basePath.length) + url.search
    // A relative link may begin below our base path; an absolute link must begin with the whole base address.
    return URL.canParse(link) ? null : url.pathname + url.search
  }

  return { call, pathOfLink, close: () => http.close() }
}

async function withToken(
  tokens: AccessTokens,
  ctx: CallContext,
  send: (token: string) => Promise<HttpResult>,
): Promise<HttpResult | { refused: string; result: HttpResult }> {
  const token = await tokens.get(ctx)
  if (token === null) return { kind: 'not_sent', cause: spareMs(ctx) <= 0 ? 'deadline_before_send' : 'token' }
  const result = await send(token)
  return refusesToken(result) ? { refused: token, result } : result
}

function refusesToken(result: HttpResult): boolean {
  if (result.kind !== 'answered' || result.status !== 401) return false
  return readGsmaError(wireRecord(result.json))?.key === 'clientauthorisationerror'
}

type Meaning = GsmaSettings['statusMap'][string]

/** A transaction of the standard, with the meaning of its free-text status; undefined for an unknown word. */
export interface GsmaTransaction {
  is: 'transaction'
  status: string
  meaning: Meaning | undefined
  reference: string
  error: GsmaError | undefined
  record: WireRecord
}

/** The state of a request that the operator accepted, finished or not. */
export interface GsmaRequestState {
  is: 'request state'
  status: string
  serverCorrelationId: string | undefined
  /** The reference of the transaction; the operator names it only after completion. */
  reference: string | undefined
  expiresAt: Date | undefined
  pollLimit: number | undefined
  notify: 'callback' | 'polling' | undefined
  error: GsmaError | undefined
}

/** A recognised answer of the operator: a transaction, a request state, or an error object alone. */
export type GsmaRecord = GsmaTransaction | GsmaRequestState | { is: 'error'; error: GsmaError }

/** Recognises a record by its fields, because answers to one question differ in kind. */
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
 * Returns the evidence of a transaction; undefined where its amount or currency is unreadable (see
 * `movedAmount`).
 * @param digest SHA-256 of the bytes of the answer
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

/** Returns the names of the payment that a record states. */
export function statedByGsma(record: WireRecord): StatedPayment {
  return {
    clientRef: record.text('requestingOrganisationTransactionReference'),
    payee: partyPhone(record, 'creditParty'),
  }
}

/** Returns the telephone number among the identifiers of one side of a transaction. */
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
 * Reads the error within a record. The schema names it `error`, the text of the standard `errorReference`; a
 * failed transaction may hold only its code, as custom data.
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
