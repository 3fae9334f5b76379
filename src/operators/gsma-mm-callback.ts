import type { KeyObject } from 'node:crypto'
import type { GsmaSettings } from '../config/operators.ts'
import { readCallbackToken } from './callback-address.ts'
import { type GsmaRecord, readGsmaRecord } from './gsma-mm-wire.ts'
import { parseJson, sha256 } from './http-client.ts'
import type { CallbackHint, CallbackOutcome, RawCallback } from './operator.ts'
import { wireRecord } from './wire-record.ts'

/**
 * Reads a callback of the GSMA standard, which signs nothing. The address proves that we gave it to the
 * operator, and a digest, if there is one, proves that the body is complete. The claim of the callback is
 * only a reason to ask the operator.
 */
export function parseGsmaCallback(
  raw: RawCallback,
  statusMap: GsmaSettings['statusMap'],
  secret: KeyObject,
): CallbackOutcome {
  const operationId = readCallbackToken(raw.pathToken, secret)
  if (operationId === null) return { kind: 'rejected', why: 'path_token' }
  const digest = sha256(raw.body)
  const promised = raw.headers['x-content-hash']
  if (promised !== undefined && promised.toLowerCase() !== digest) return { kind: 'rejected', why: 'digest' }
  const record = readGsmaRecord(wireRecord(parseJson(raw.body)), statusMap)
  if (!record) return unrecognised(raw)
  return {
    kind: 'hint',
    dedupeKey: `${operationId}:${digest}`,
    operationId,
    find: named(record, raw.headers['x-correlationid']),
    trust: 'unsigned',
    says: claim(record),
  }
}

/**
 * Returns the outcome for a body that is no record. `{"result": "success"}` is the operator's reply to a
 * change that we requested; any other object is unknown.
 */
function unrecognised(raw: RawCallback): CallbackOutcome {
  const record = wireRecord(parseJson(raw.body))
  if (!record) return { kind: 'rejected', why: 'unreadable' }
  return { kind: 'ignored', eventType: record.text('result') === undefined ? 'unrecognised' : 'result' }
}

function claim(record: GsmaRecord): CallbackHint['says'] {
  if (record.is === 'error') return 'refused'
  if (record.is === 'transaction') return record.meaning ?? 'pending'
  if (record.status === 'completed') return 'settled'
  return record.status === 'failed' ? 'refused' : 'pending'
}

function named(record: GsmaRecord, correlationId: string | undefined): CallbackHint['find'] {
  const operatorRef = record.is === 'error' ? undefined : record.reference
  const clientRef =
    record.is === 'transaction' ? record.record.text('requestingOrganisationTransactionReference') : undefined
  return {
    ...(correlationId === undefined ? {} : { correlationId }),
    ...(clientRef === undefined ? {} : { clientRef }),
    ...(operatorRef === undefined ? {} : { operatorRef }),
  }
}
