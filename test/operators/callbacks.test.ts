import { createHmac, createSecretKey } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { callbackAddress, readCallbackToken, webhookAddress } from '../../src/operators/callback-address.ts'
import { createCheckoutDriver } from '../../src/operators/checkout-session.ts'
import { createGsmaDriver } from '../../src/operators/gsma-mm.ts'
import { sha256 } from '../../src/operators/http-client.ts'
import type { RawCallback } from '../../src/operators/operator.ts'
import { Secret } from '../../src/shared/secret.ts'
import { checkoutSettings, deps, gsmaSettings } from '../kit/operators.ts'

const secret = createSecretKey(Buffer.from('one secret'))
const receivedAt = new Date('2026-11-21T10:00:00Z')

describe('a callback address', () => {
  test('names its operation and proves that we gave it out', () => {
    const address = callbackAddress('https://pay.test', 'OperatorA', 42n, secret)
    expect(address).toMatch(/^https:\/\/pay\.test\/operators\/OperatorA\/callbacks\/42\.[\w-]{22}$/)
    expect(readCallbackToken(address.split('/').at(-1) ?? '', secret)).toBe('42')
    expect(webhookAddress('https://pay.test', 'OperatorB')).toBe(
      'https://pay.test/operators/OperatorB/callbacks/webhook',
    )
  })

  test('of another operation, another secret or another form is not ours', () => {
    const token = callbackAddress('', 'OperatorA', 42n, secret).split('.').at(-1)
    for (const forged of [
      `43.${token}`,
      `42.${token}x`,
      `42.${token?.slice(1)}`,
      '42.',
      '42',
      '',
      '.',
      `.${token}`,
      '42.é'.repeat(9),
    ]) {
      expect(readCallbackToken(forged, secret)).toBeNull()
    }
    expect(readCallbackToken(`42.${token}`, createSecretKey(Buffer.from('another secret')))).toBeNull()
  })
})

describe('a callback of the standard', () => {
  const driver = createGsmaDriver(gsmaSettings('http://127.0.0.1:1'), deps)
  const pathToken = driver.callbackUrl(42n).split('/').at(-1) ?? ''

  function callback(body: unknown, headers: Record<string, string> = {}, more: Partial<RawCallback> = {}) {
    const bytes = Buffer.from(typeof body === 'string' ? body : JSON.stringify(body))
    return driver.parseCallback({ method: 'PUT', headers, body: bytes, pathToken, receivedAt, ...more })
  }
  const transaction = {
    transactionReference: 'R1',
    transactionStatus: 'Completed',
    amount: '5000',
    currency: 'XOF',
  }

  test('that says paid is an unsigned hint with all the names it has', () => {
    const body = { ...transaction, requestingOrganisationTransactionReference: 'ref-1' }
    expect(callback(body, { 'x-correlationid': 'c-1' })).toEqual({
      kind: 'hint',
      dedupeKey: `42:${sha256(JSON.stringify(body))}`,
      operationId: '42',
      find: { correlationId: 'c-1', clientRef: 'ref-1', operatorRef: 'R1' },
      trust: 'unsigned',
      says: 'settled',
    })
  })

  test.each([
    [{ errorCategory: 'businessRule', errorCode: 'insufficientFunds' }, 'refused'],
    [{ ...transaction, transactionStatus: 'pending' }, 'pending'],
    [{ ...transaction, transactionStatus: 'reversed' }, 'reversed'],
    [{ ...transaction, transactionStatus: 'whatever' }, 'pending'],
    [{ status: 'completed', serverCorrelationId: 's' }, 'settled'],
    [{ status: 'failed', serverCorrelationId: 's' }, 'refused'],
  ])('%j says %s', (body, says) => expect(callback(body)).toMatchObject({ kind: 'hint', says }))

  test('to an address that we never gave out is rejected', () => {
    expect(callback(transaction, {}, { pathToken: `43.${pathToken.slice(3)}` })).toEqual({
      kind: 'rejected',
      why: 'path_token',
    })
  })

  test('whose body was altered is rejected by its digest, in either case of letters', () => {
    const digest = sha256(JSON.stringify(transaction))
    expect(callback(transaction, { 'x-content-hash': digest.toUpperCase() })).toMatchObject({ kind: 'hint' })
    const altered = { ...transaction, amount: '9000' }
    expect(callback(altered, { 'x-content-hash': digest })).toEqual({ kind: 'rejected', why: 'digest' })
  })

  test('that comes again has the same key, and another with other content has another key', () => {
    const key = (body: unknown) => {
      const hint = callback(body, { 'x-date': new Date().toISOString() })
      return hint.kind === 'hint' ? hint.dedupeKey : null
    }
    expect(key(transaction)).toBe(key(transaction))
    expect(key(transaction)).not.toBe(key({ ...transaction, transactionStatus: 'pending' }))
  })

  test('that was written long ago is still a hint', () => {
    expect(callback(transaction, { 'x-date': '2026-11-21T09:44:00Z' })).toMatchObject({ kind: 'hint' })
  })

  test('that makes no sense is rejected or ignored', () => {
    expect(callback('<html>')).toEqual({ kind: 'rejected', why: 'unreadable' })
    expect(callback([])).toEqual({ kind: 'rejected', why: 'unreadable' })
    expect(callback({ result: 'success' })).toEqual({ kind: 'ignored', eventType: 'result' })
    expect(callback({ hello: 1 })).toEqual({ kind: 'ignored', eventType: 'unrecognised' })
  })
})

describe('a webhook of the checkout protocol', () => {
  const webhookSecrets = [new Secret('current'), new Secret('previous')]
  const settings = checkoutSettings('http://127.0.0.1:1', { webhookSecrets, signatureHeader: 'X-Signed' })
  const driver = createCheckoutDriver(settings, deps)
  const data = {
    id: 'cos-1',
    client_reference: 'ref-1',
    checkout_status: 'complete',
    payment_status: 'succeeded',
    amount: '5000',
  }
  const paid = { id: 'EV_1', type: 'checkout.session.completed', data }
  const seconds = receivedAt.getTime() / 1_000

  function sign(body: string, key = 'current', at = seconds): string {
    return createHmac('sha256', key).update(`${at}${body}`).digest('hex')
  }
  function webhook(body: unknown, header?: string, more: Partial<RawCallback> = {}) {
    const text = typeof body === 'string' ? body : JSON.stringify(body)
    const headers = { 'x-signed': header ?? `t=${seconds},v1=${sign(text)}` }
    return driver.parseCallback({
      method: 'POST',
      headers,
      body: Buffer.from(text),
      pathToken: 'webhook',
      receivedAt,
      ...more,
    })
  }

  test('that says paid is a signed hint, known by the id of its event', () => {
    expect(webhook(paid)).toEqual({
      kind: 'hint',
      dedupeKey: 'EV_1',
      operationId: null,
      find: { sessionId: 'cos-1', clientRef: 'ref-1' },
      trust: 'signed',
      says: 'settled',
    })
  })

  test('is accepted with an older key, and with one good signature among several', () => {
    const text = JSON.stringify(paid)
    expect(webhook(paid, `t=${seconds},v1=${sign(text, 'previous')}`)).toMatchObject({ kind: 'hint' })
    expect(webhook(paid, `t=${seconds}, v1=${'0'.repeat(64)}, v1=${sign(text)}`)).toMatchObject({
      kind: 'hint',
    })
  })

  test('that is forged, altered, unsigned or signed for another moment is rejected', () => {
    const text = JSON.stringify(paid)
    const bad = [
      `t=${seconds},v1=${sign(text, 'guess')}`,
      `t=${seconds + 1},v1=${sign(text)}`,
      `v1=${sign(text)}`,
      `t=${seconds}`,
      '',
      't=,v1=',
      `t=x,v1=${sign(text)}`,
    ]
    for (const header of bad) expect(webhook(paid, header)).toEqual({ kind: 'rejected', why: 'signature' })
    const altered = { ...paid, data: { ...data, amount: '9' } }
    expect(webhook(altered, `t=${seconds},v1=${sign(text)}`)).toEqual({ kind: 'rejected', why: 'signature' })
    expect(webhook(paid, undefined, { headers: {} })).toEqual({ kind: 'rejected', why: 'signature' })
  })

  test('that is replayed after five minutes, or comes from the future, is stale', () => {
    const text = JSON.stringify(paid)
    for (const [offset, kind] of [
      [-301, 'rejected'],
      [-299, 'hint'],
      [299, 'hint'],
      [301, 'rejected'],
    ] as const) {
      const at = seconds + offset
      expect(webhook(paid, `t=${at},v1=${sign(text, 'current', at)}`).kind).toBe(kind)
    }
  })

  test('of a failed try is no end while the session is open', () => {
    const open = { ...data, checkout_status: 'open', payment_status: 'processing' }
    const failed = { id: 'EV_2', type: 'checkout.session.payment_failed', data: open }
    expect(webhook(failed)).toMatchObject({ kind: 'hint', says: 'pending' })
    expect(webhook({ ...failed, data: { ...open, checkout_status: 'expired' } })).toMatchObject({
      says: 'refused',
    })
  })

  test('that calls itself completed is believed by its data alone', () => {
    expect(webhook({ ...paid, data: { ...data, payment_status: 'processing' } })).toMatchObject({
      says: 'pending',
    })
  })

  test('of other kinds is ignored, and an unreadable one is rejected', () => {
    expect(webhook({ id: 'EV_3', type: 'b2b.payment_received', data: {} })).toEqual({
      kind: 'ignored',
      eventType: 'b2b.payment_received',
    })
    expect(webhook({ id: 'EV_4', type: 'test.test_event' })).toEqual({
      kind: 'ignored',
      eventType: 'test.test_event',
    })
    for (const body of ['<html>', [], {}, { ...paid, data: null }, { ...paid, id: 7.5 }]) {
      expect(webhook(body)).toEqual({ kind: 'rejected', why: 'unreadable' })
    }
  })

  test('to another path is rejected', () => {
    expect(webhook(paid, undefined, { pathToken: '42.abc' })).toEqual({ kind: 'rejected', why: 'path_token' })
  })
})
