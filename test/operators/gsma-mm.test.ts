import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { eventually } from '../kit/eventually.ts'
import type { GsmaSettings } from '../../src/config/operators.ts'
import { createGsmaDriver } from '../../src/operators/gsma-mm.ts'
import type { OperatorHandle, QueryOutcome, RawCallback } from '../../src/operators/operator.ts'
import { Secret } from '../../src/shared/secret.ts'
import { startAtNoon } from '../kit/noon.ts'
import { call, deps, gsmaSettings, newHandle, simulator } from '../kit/operators.ts'

function driverAt(
  url: string,
  letter: 'A' | 'C' | 'D' = 'A',
  more: Partial<GsmaSettings> = {},
  driverDeps = deps,
) {
  const driver = createGsmaDriver(gsmaSettings(url, letter, more), driverDeps)
  onTestFinished(() => driver.close())
  return driver
}

async function simulated(letter: 'A' | 'C' | 'D' = 'A') {
  const sim = await simulator()
  return { sim, driver: driverAt(sim.url, letter) }
}

/** A number that plays scenario SS with parameter PP. */
function number(scenario: string, parameter = '00'): string {
  return `+22370${scenario}${parameter}01`
}

function asked(payer: string, handle: OperatorHandle = newHandle()) {
  return { handle, amount: 5_000n, payer, payee: payer, callbackUrl: 'http://127.0.0.1:9/x', attempt: 1 }
}

test.each(['A', 'C', 'D'] as const)(
  '%s: a prompt is accepted, then settled with evidence',
  async (letter) => {
    const { sim, driver } = await simulated(letter)
    const taken = await driver.collect({ ...asked(number('00', '05')), description: 'Commande 1042' }, call())
    expect(taken).toMatchObject({
      kind: 'accepted',
      duplicate: false,
      action: { type: 'push' },
      notify: letter === 'C' ? 'polling' : 'callback',
      expiresAt: expect.any(Date),
      pollLimit: 100,
    })
    const { handle } = taken as { handle: OperatorHandle }
    expect(handle.serverCorrelationId).toEqual(expect.any(String))
    expect(await driver.query('collect', handle, call())).toMatchObject({ kind: 'pending' })
    await sim.advance(6_000)
    expect(await driver.query('collect', handle, call())).toMatchObject({
      kind: 'settled',
      evidence: {
        amount: 5_000n,
        fee: 0n,
        counterparty: number('00', '05'),
        source: 'query',
        settledAt: expect.any(Date),
      },
    })
  },
)

test.each([
  ['01', 'PAYER_DECLINED', 'PAYEE_NOT_ALLOWED'],
  ['02', 'PAYER_INSUFFICIENT_FUNDS', 'FLOAT_INSUFFICIENT'],
  ['03', 'PAYER_NOT_FOUND', 'PAYEE_NOT_FOUND'],
  ['04', 'PAYER_LIMIT_REACHED', 'PAYEE_LIMIT_REACHED'],
  ['05', 'PAYER_NOT_ALLOWED', 'PAYEE_NOT_ALLOWED'],
  ['06', 'PAYER_AUTH_FAILED', 'UNSPECIFIED'],
  ['07', 'PAYER_BUSY', 'PAYER_BUSY'],
])(
  'scenario %s is %s for a payer and %s for a payee, at once or by asking',
  async (scenario, payer, payee) => {
    const sim = await simulator()
    for (const letter of ['A', 'C', 'D'] as const) {
      const driver = driverAt(sim.url, letter)
      for (const [kind, reason] of [
        ['collect', payer],
        ['disburse', payee],
      ] as const) {
        const request = asked(number(scenario))
        const first = await driver[kind](request, call())
        await sim.advance(10_000)
        const refused = first.kind === 'refused' ? first : await driver.query(kind, request.handle, call())
        expect(refused).toMatchObject({
          kind: 'refused',
          refusal: { reason, code: expect.stringMatching(/./) },
        })
        expect(await driver.query(kind, request.handle, call())).toMatchObject({
          kind: 'refused',
          refusal: { reason },
        })
      }
    }
  },
)

test('a prompt that the payer does not answer ends as a timeout', async () => {
  const { sim, driver } = await simulated('C')
  const request = asked(number('10', '01'))
  const taken = await driver.collect(request, call())
  await sim.advance(61_000)
  const outcome = await driver.query('collect', (taken as { handle: OperatorHandle }).handle, call())
  expect(outcome).toMatchObject({ kind: 'refused', refusal: { reason: 'PAYER_TIMEOUT' } })
})

test('a synchronous operator settles a disbursement in its answer', async () => {
  const { driver } = await simulated('D')
  const request = asked(number('00'))
  expect(await driver.disburse(request, call())).toMatchObject({
    kind: 'settled',
    handle: { correlationId: request.handle.correlationId, operatorRef: expect.any(String) },
    evidence: { amount: 5_000n, source: 'sync', counterparty: number('00') },
  })
})

test('a resend of the same handle is a duplicate, and nothing is executed twice', async () => {
  const { sim, driver } = await simulated()
  const request = asked(number('00'))
  await driver.collect(request, call())
  expect(await driver.collect({ ...request, attempt: 2 }, call())).toMatchObject({
    kind: 'accepted',
    duplicate: true,
  })
  expect(await sim.operations(request.handle)).toHaveLength(1)
  await sim.advance(1_000)
  expect(await driver.query('collect', request.handle, call())).toMatchObject({ kind: 'settled' })
})

test('an operation that never arrived is absent', async () => {
  const { driver } = await simulated()
  expect(await driver.query('disburse', newHandle(), call())).toEqual({
    kind: 'absent',
    asOf: expect.any(Date),
  })
})

test('an operation is found by our id alone, without an answer to the first call', async () => {
  const { sim, driver } = await simulated('C')
  const request = asked(number('00'))
  await driver.collect(request, call())
  await sim.advance(1_000)
  expect(await driver.query('collect', request.handle, call())).toMatchObject({ kind: 'settled' })
})

test('a settled collection is reversed, and reads as reversed afterwards', async () => {
  const { sim, driver } = await simulated()
  const request = asked(number('00'))
  await driver.collect(request, call())
  await sim.advance(1_000)
  const paid = await driver.query('collect', request.handle, call())
  const operatorRef = (paid as Extract<QueryOutcome, { kind: 'settled' }>).evidence.operatorRef
  const reversal = { ...asked(''), original: { ...request.handle, operatorRef } }
  expect(await driver.reverse(reversal, call())).toMatchObject({ kind: 'accepted' })
  await sim.advance(2_000)
  expect(await driver.query('reverse', reversal.handle, call())).toMatchObject({
    kind: 'settled',
    evidence: { amount: 5_000n },
  })
  expect(await driver.query('collect', request.handle, call())).toMatchObject({ kind: 'reversed' })
  const again = { ...asked(''), original: reversal.original }
  expect(await driver.reverse(again, call())).toMatchObject({
    kind: 'refused',
    refusal: { reason: 'NOT_REVERSIBLE' },
  })
})

test('an unanswered prompt is cancelled, a settled one is not', async () => {
  const { sim, driver } = await simulated()
  const open = asked(number('11'))
  await driver.collect(open, call())
  expect(await driver.cancel?.(open.handle, call())).toBe('cancelled')
  const outcome = await driver.query('collect', open.handle, call())
  expect(outcome).toMatchObject({ kind: 'refused', refusal: { reason: 'CANCELLED' } })

  const paid = asked(number('00'))
  await driver.collect(paid, call())
  await sim.advance(1_000)
  expect(await driver.cancel?.(paid.handle, call())).toBe('too_late')
  expect(await driver.cancel?.(newHandle(), call())).toBe('unknown')
})

test('balance, health and the owner of a number are read', async () => {
  const { driver } = await simulated()
  expect(await driver.balance(call())).toMatchObject({
    kind: 'ok',
    current: 50_000_000n,
    available: 50_000_000n,
    reserved: 0n,
  })
  expect(await driver.health(call())).toMatchObject({ status: 'available' })
  expect(await driver.lookupParty?.(number('00'), call())).toMatchObject({
    kind: 'found',
    active: true,
    name: expect.stringMatching(/ /),
  })
  expect(await driver.lookupParty?.(number('05'), call())).toMatchObject({ kind: 'found', active: false })
  expect(await driver.lookupParty?.(number('03'), call())).toEqual({ kind: 'absent' })
})

test('the statement of a day has every movement and joins its opening to its closing', async () => {
  startAtNoon()
  const { driver } = await simulated('D')
  const paid = asked(number('00'))
  await driver.collect(paid, call())
  for (let count = 0; count < 210; count++)
    await driver.disburse({ ...asked(number('00')), amount: 1_000n }, call())
  const statement = await driver.statement(new Date().toISOString().slice(0, 10), call({ ms: 10_000 }))
  if (statement.kind !== 'statement') throw new Error(statement.kind)
  expect(statement).toMatchObject({ provider: 'OperatorD', complete: false, closing: 49_795_000n })
  expect(statement.lines.filter(({ type }) => type === 'disburse')).toHaveLength(210)
  expect(statement.lines.find(({ type }) => type === 'collect')).toMatchObject({
    direction: 'credit',
    amount: 5_000n,
    clientRef: paid.handle.clientRef,
    counterparty: number('00'),
  })
  expect(statement.lines.map(({ lineNo }) => lineNo)).toEqual(statement.lines.map((_, index) => index + 1))
  expect(await driver.statement('2999-01-01', call())).toEqual({ kind: 'not_ready' })
})

test('an operator that gives no token was sent nothing', async () => {
  const { sim, driver } = await simulated()
  await sim.outage('OperatorA', '5xx')
  expect(await driver.collect(asked(number('00')), call())).toMatchObject({
    kind: 'not_sent',
    cause: 'token',
  })
})

test('wrong client credentials send nothing', async () => {
  const { url } = await simulator()
  const driver = driverAt(url, 'A', { clientSecret: new Secret('wrong') })
  expect(await driver.collect(asked(number('00')), call())).toEqual({ kind: 'not_sent', cause: 'token' })
})

test('callbacks of the simulator are understood, and are no more than a hint', async () => {
  const { url } = await simulator()
  const { base, received } = await callbackReceiver()
  const driver = driverAt(url, 'A', {}, { ...deps, callbackUrl: base })
  const [paid, refused] = [asked(number('00')), asked(number('01'))]
  await driver.collect({ ...paid, callbackUrl: driver.callbackUrl(41n) }, call())
  await driver.collect({ ...refused, callbackUrl: driver.callbackUrl(42n) }, call())
  await eventually(() => expect(received.length).toBe(2))
  const hints = received.map((raw) => driver.parseCallback(raw))
  expect(hints.find((hint) => hint.kind === 'hint' && hint.operationId === '41')).toMatchObject({
    says: 'settled',
    trust: 'unsigned',
    find: { correlationId: paid.handle.correlationId, clientRef: paid.handle.clientRef },
  })
  expect(hints.find((hint) => hint.kind === 'hint' && hint.operationId === '42')).toMatchObject({
    says: 'refused',
  })
})

/** Receives a callback as the merchant side would: takes its address apart and answers 204. */
async function callbackReceiver(): Promise<{ base: string; received: RawCallback[] }> {
  const received: RawCallback[] = []
  const server = createServer((request, response) => void receive(request, response))
  async function receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const headers = Object.fromEntries(
      Object.entries(request.headers).map(([name, value]) => [name, String(value)]),
    )
    const pathToken = request.url?.split('/').at(-1) ?? ''
    received.push({
      method: request.method ?? '',
      headers,
      body: Buffer.concat(chunks),
      pathToken,
      receivedAt: new Date(),
    })
    response.writeHead(204).end()
  }
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return { base: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, received }
}
