import { createHash, randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect } from 'vitest'
import type { EffectName } from '../../src/simulator/effects.ts'
import type { Simulator, SimulatorOptions } from '../../src/simulator/simulator.ts'
import { startSimulator } from '../../src/simulator/simulator.ts'
import { eventually } from './eventually.ts'

export const second = 1_000
export const minute = 60 * second
export const hour = 60 * minute

export type Json = Readonly<Record<string, unknown>>

/** A text field of an answer. */
export function word(body: Json, field: string): string {
  const value = body[field]
  if (typeof value !== 'string') throw new Error(`${field} is no text: ${JSON.stringify(body)}`)
  return value
}

export interface SimulatorAnswer {
  status: number
  headers: Headers
  body: Json
}

/** A simulator with functions that tests use; ends with `await using`. */
export interface SimulatorBench extends AsyncDisposable {
  simulator: Simulator
  url: string
  control(method: string, path: string, body?: object): Promise<SimulatorAnswer>
  advance(ms: number): Promise<void>
}

export const controlToken = 'control-token'

export async function openBench(options: SimulatorOptions = {}): Promise<SimulatorBench> {
  const simulator = await startSimulator({ controlToken, seed: 7, ...options })
  return { simulator, ...controls(simulator.url), [Symbol.asyncDispose]: () => simulator.close() }
}

/** Puts a fault in force. @returns the answer of the control interface */
export async function addFault(bench: SimulatorBench, effect: EffectName, body: object = {}): Promise<Json> {
  const answer = await bench.control('POST', '/faults', { effect, ...body })
  if (answer.status !== 201) throw new Error(JSON.stringify(answer.body))
  return answer.body
}

/** The control interface of any simulator, also one in another process. */
export function controls(url: string): Pick<SimulatorBench, 'url' | 'control' | 'advance'> {
  const control = (method: string, path: string, body?: object) =>
    send(url, method, `/_sim${path}`, { 'x-control-token': controlToken }, body)
  return {
    url,
    control,
    async advance(ms) {
      const { status, body } = await control('POST', '/clock', { advance_ms: ms })
      if (status !== 200) throw new Error(JSON.stringify(body))
    },
  }
}

export async function send(
  url: string,
  method: string,
  path: string,
  headers: Record<string, string> = {},
  body?: object | string,
): Promise<SimulatorAnswer> {
  const text = typeof body === 'object' ? JSON.stringify(body) : body
  const init = { method, headers, redirect: 'manual' as const, ...(text === undefined ? {} : { body: text }) }
  const response = await fetch(url + path, init)
  const raw = await response.text()
  const isJson = response.headers.get('content-type') === 'application/json'
  return {
    status: response.status,
    headers: response.headers,
    body: isJson ? JSON.parse(raw) : { text: raw },
  }
}

/** Sends a request that the operator receives and never answers, and gives it up once it was received. */
export async function expectHanging(
  bench: SimulatorBench,
  path: string,
  headers: Record<string, string> = {},
): Promise<void> {
  const given = new AbortController()
  const asked = fetch(bench.url + path, { headers, signal: given.signal }).catch(String)
  await eventually(async () => {
    const { body } = await bench.control('GET', '/requests')
    const seen = body as unknown as { path: string; status: number | null }[]
    return seen.some((request) => path.endsWith(request.path) && request.status === null)
  })
  given.abort()
  expect(await asked).toBe('AbortError: This operation was aborted')
}

const basePaths = { a: '/op-a/v1.2/mm', c: '/op-c/v1.2/mm', d: '/op-d/v1.1/mm' } as const
export type GsmaLetter = keyof typeof basePaths

/** A client of one GSMA operator, with a token of its own. */
export async function gsmaClient(url: string, letter: GsmaLetter) {
  const basic = Buffer.from(`sandbox-${letter}:sandbox-secret-${letter}`).toString('base64')
  const form = { authorization: `Basic ${basic}`, 'content-type': 'application/x-www-form-urlencoded' }
  const grant = await send(url, 'POST', `/op-${letter}/oauth/token`, form, 'grant_type=client_credentials')
  const headers = {
    authorization: `Bearer ${word(grant.body, 'access_token')}`,
    'x-api-key': `sandbox-key-${letter}`,
    'content-type': 'application/json',
  }
  const call = (method: string, path: string, more: Record<string, string> = {}, body?: object | string) =>
    send(url, method, basePaths[letter] + path, { ...headers, ...more }, body)

  function create(type: string, body: object, options: CreateOptions = {}): Promise<SimulatorAnswer> {
    const text = JSON.stringify(body)
    return call(
      'POST',
      `/transactions/${type}`,
      {
        'x-correlationid': options.correlationId ?? randomUUID(),
        'x-content-hash': createHash('sha256').update(text).digest('hex'),
        ...(options.callbackUrl ? { 'x-callback-url': options.callbackUrl } : {}),
      },
      text,
    )
  }

  return {
    headers,
    get: (path: string) => call('GET', path),
    call,
    collect: (msisdn: string, options: CreateOptions = {}) =>
      create('type/merchantpay', paymentBody('merchantpay', msisdn, options), options),
    disburse: (msisdn: string, options: CreateOptions = {}) =>
      create('type/disbursement', paymentBody('disbursement', msisdn, options), options),
    reverse: (reference: string, body: object = {}, options: CreateOptions = {}) =>
      create(`${reference}/reversals`, { type: 'reversal', ...body }, options),
  }
}

export interface CreateOptions {
  correlationId?: string
  callbackUrl?: string
  amount?: string
  reference?: string
  description?: string
}

export function paymentBody(
  type: 'merchantpay' | 'disbursement',
  msisdn: string,
  options: CreateOptions = {},
) {
  const customer = [{ key: 'msisdn', value: msisdn }]
  const own = [{ key: 'accountid', value: 'POOL' }]
  return {
    amount: options.amount ?? '5000',
    currency: 'XOF',
    debitParty: type === 'merchantpay' ? customer : own,
    creditParty: type === 'merchantpay' ? own : customer,
    requestingOrganisationTransactionReference: options.reference ?? 'REF-1',
    descriptionText: options.description ?? 'Commande 1042',
  }
}

/** A client of the checkout operator. */
export function checkoutClient(url: string) {
  const headers = { authorization: 'Bearer sandbox-key-b', 'content-type': 'application/json' }
  const call = (method: string, path: string, body?: object, more: Record<string, string> = {}) =>
    send(url, method, `/op-b/v1${path}`, { ...headers, ...more }, body)
  return {
    call,
    session: (payer?: string, more: object = {}) =>
      call('POST', '/checkout/sessions', {
        amount: '5000',
        currency: 'XOF',
        success_url: 'http://shop.test/paid',
        error_url: 'http://shop.test/failed',
        client_reference: 'REF-B',
        ...(payer ? { restrict_payer_mobile: payer } : {}),
        ...more,
      }),
    payout: (mobile: string, key: string = randomUUID(), more: object = {}) =>
      call(
        'POST',
        '/payout',
        { currency: 'XOF', receive_amount: '5000', mobile, client_reference: 'OUT-B', ...more },
        { 'idempotency-key': key },
      ),
  }
}

export interface Received {
  method: string
  path: string
  headers: Record<string, string | string[] | undefined>
  raw: string
  body: Json
}

/** Starts a server that operators call back; it answers 204, unless `answers` has another answer first. */
export async function openReceiver() {
  const received: Received[] = []
  const answers: number[] = []
  let arrived: (() => void)[] = []
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const raw = Buffer.concat(chunks).toString()
      const { method = '', url: path = '', headers } = request
      received.push({ method, path, headers, raw, body: JSON.parse(raw) })
      response.writeHead(answers.shift() ?? 204).end()
      const waiting = arrived
      arrived = []
      for (const resume of waiting) resume()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    url,
    received,
    answers,
    /** Waits until so many calls have come, and returns the newest of them. */
    async call(count: number): Promise<Received> {
      while (received.length < count) await new Promise<void>((resolve) => arrived.push(resolve))
      return received[count - 1] as Received
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
