import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { appendFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { startSimulator } from '../../src/simulator/simulator.ts'
import {
  checkoutClient,
  controls,
  controlToken,
  gsmaClient,
  hour,
  minute,
  openBench,
  openReceiver,
  second,
  word,
} from '../kit/simulator.ts'

const program = join(import.meta.dirname, '../../src/simulator/main.ts')

async function folder() {
  const path = await mkdtemp(join(tmpdir(), 'simulator-'))
  return {
    journalPath: join(path, 'books', 'operators.jsonl'),
    [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }),
  }
}

/** The simulator in a process of its own, tied to this one: a test that fails leaves none behind. */
async function startProgram(...flags: string[]) {
  const all = [program, '--port', '0', '--tied', '--control-token', controlToken, ...flags]
  const child = spawn(process.execPath, all, { stdio: ['pipe', 'pipe', 'ignore'] })
  child.stdin.write('\n')
  const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string]
  const ended = once(child, 'exit')
  const { url } = JSON.parse(line) as { url: string }
  return { ...controls(url), line, child, ended }
}

test('a kill -9 in the middle of payments loses no answered payment; due ones go on', async () => {
  await using place = await folder()
  await using receiver = await openReceiver()
  const flags = ['--journal', place.journalPath]
  const first = await startProgram(...flags)
  const [a, c, b] = [
    await gsmaClient(first.url, 'a'),
    await gsmaClient(first.url, 'c'),
    checkoutClient(first.url),
  ]
  await first.control('PUT', '/webhook', { url: `${receiver.url}/b` })
  const settled = await c.collect('+22370000001')
  await first.advance(minute)
  const waiting = await a.collect('+22370009001', { callbackUrl: `${receiver.url}/a` })
  const session = await b.session('+22370009901')
  const person = await c.collect('+22370090001')
  first.child.kill('SIGKILL')
  await first.ended

  const again = await startProgram(...flags)
  const [a2, c2, b2] = [
    await gsmaClient(again.url, 'a'),
    await gsmaClient(again.url, 'c'),
    checkoutClient(again.url),
  ]
  const state = async (client: typeof a2, { body }: { body: Readonly<Record<string, unknown>> }) =>
    (await client.get(`/requeststates/${word(body, 'serverCorrelationId')}`)).body['status']
  expect((await again.control('GET', '/clock')).body['offset_ms']).toBe(minute)
  expect(await state(c2, settled)).toBe('completed')
  expect(await state(a2, waiting)).toBe('pending')
  // The token of before the kill is still good.
  expect((await a2.call('GET', '/heartbeat', a.headers)).status).toBe(200)
  await again.advance(100 * second)
  expect(await state(a2, waiting)).toBe('completed')
  expect(await state(c2, person)).toBe('pending')
  const paid = await b2.call('GET', `/checkout/sessions/${word(session.body, 'id')}`)
  expect(paid.body['payment_status']).toBe('succeeded')
  await receiver.call(2)
  expect(receiver.received.map((call) => call.path).toSorted()).toEqual(['/a', '/b'])
  expect((await again.control('GET', '/invariants')).body).toMatchObject({ ok: true, pending: 1 })
  again.child.stdin.end()
  expect(await again.ended).toEqual([0, null])
})

test('a change that cannot be written is told to no caller, and later ones are refused', async () => {
  await using place = await folder()
  // A file may have 16 kB, as if the disk were full.
  const command = `ulimit -f 16; exec "$0" "$@"`
  const flags = [program, '--port', '0', '--tied', '--control-token', controlToken]
  const child = spawn('bash', ['-c', command, process.execPath, ...flags, '--journal', place.journalPath], {
    stdio: ['pipe', 'pipe', 'ignore'],
  })
  child.stdin.write('\n')
  const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string]
  const ended = once(child, 'exit')
  const full = await gsmaClient((JSON.parse(line) as { url: string }).url, 'c')
  const accepted: string[] = []
  let [unanswered, refused] = [0, 0]
  for (let n = 0; n < 40 && refused === 0; n += 1) {
    const correlationId = randomUUID()
    const status = await Promise.race([
      full.collect('+22370009001', { correlationId }).then((answer) => answer.status),
      sleep(5_000, null),
    ])
    if (status === 202) accepted.push(correlationId)
    if (status === null) unanswered += 1
    if (status === 500) refused += 1
  }
  child.kill('SIGKILL')
  await ended
  expect([accepted.length > 5, unanswered, refused]).toEqual([true, 1, 1])
  // The half line of the failed write is gone, and every answered payment is there.
  expect(await readFile(place.journalPath, 'utf8')).toMatch(/\]\n$/)
  await using again = await openBench({ journalPath: place.journalPath })
  const { body } = await again.control('GET', '/operations')
  const kept = (body as unknown as { correlationId: string }[]).map((row) => row.correlationId)
  expect(kept.toSorted()).toEqual(accepted.toSorted())
})

test.each(['in a file', 'in memory'])(
  'operations that left memory answer from the journal %s',
  async (kind) => {
    await using place = await folder()
    const options = kind === 'in a file' ? { journalPath: place.journalPath } : {}
    let bench = await openBench(options)
    const count = 1_200
    const pay = async (reference: string, msisdn = '+22370000001') => {
      const correlationId = randomUUID()
      const d = await gsmaClient(bench.url, 'd')
      const { body } = await d.disburse(msisdn, { correlationId, reference })
      return { correlationId, reference: word(body, 'transactionReference') }
    }
    const old = await pay('OLD')
    const refused = await pay('OLD', '+22370000002')
    const d = await gsmaClient(bench.url, 'd')
    const rest = Array.from({ length: count }, (_none, n) => n).values()
    const payer = async () => {
      for (const n of rest) await d.disburse('+22370000001', { reference: `R-${n}` })
    }
    await Promise.all([payer(), payer(), payer(), payer()])
    const check = async () => {
      const client = await gsmaClient(bench.url, 'd')
      const link = await client.get(`/responses/${old.correlationId}`)
      expect(word(link.body, 'link')).toContain(`/transactions/${old.reference}`)
      const { body } = await client.get(`/transactions/${old.reference}`)
      expect(body).toMatchObject({ requestingOrganisationTransactionReference: 'OLD', amount: '5000' })
      const repeated = await client.disburse('+22370000001', { correlationId: old.correlationId })
      expect(repeated.body['errorCode']).toBe('duplicateRequest')
      const lines = (await client.get('/accounts/accountid/POOL/statemententries?limit=3')).body as unknown
      expect(lines).toMatchObject([
        {},
        { transactionReference: old.reference },
        { transactionReference: refused.reference },
      ])
      const rows = (await bench.control('GET', '/operations?clientRef=OLD')).body as unknown as {
        id: string
      }[]
      expect(rows.map(({ id }) => id)).toEqual([old.reference, refused.reference])
      return body['transactionStatus']
    }
    expect(await check()).toBe('completed')
    expect((await d.reverse(old.reference)).status).toBe(201)
    expect(await check()).toBe('reversed')
    if ('journalPath' in options) {
      await bench.simulator.close()
      bench = await openBench(options)
    }
    expect(await check()).toBe('reversed')
    const { body } = await bench.control('GET', '/invariants')
    expect(body).toMatchObject({
      ok: true,
      repeated: [{ client_reference: 'OLD', count: 2, reversed: '5000' }],
    })
    expect((body['executions'] as unknown[]).length).toBe(count + 1)
    await bench.simulator.close()
  },
)

test('a payment whose time passed while the simulator was dead happens at the next start', async () => {
  await using place = await folder()
  const first = await openBench({ journalPath: place.journalPath })
  const c = await gsmaClient(first.url, 'c')
  const accepted = await c.collect('+22370000101')
  await first.simulator.close()
  const lines = (await readFile(place.journalPath, 'utf8')).replaceAll(/"at":\d+,"act"/g, '"at":1,"act"')
  await writeFile(place.journalPath, lines)
  await using again = await openBench({ journalPath: place.journalPath })
  await again.advance(0)
  const c2 = await gsmaClient(again.url, 'c')
  const state = await c2.get(`/requeststates/${word(accepted.body, 'serverCorrelationId')}`)
  expect(state.body['status']).toBe('completed')
})

test('a callback that was not taken is repeated after a restart', async () => {
  await using place = await folder()
  await using receiver = await openReceiver()
  receiver.answers.push(500)
  const first = await openBench({ journalPath: place.journalPath })
  const a = await gsmaClient(first.url, 'a')
  const d = await gsmaClient(first.url, 'd')
  await a.collect('+22370000001', { callbackUrl: `${receiver.url}/a` })
  await first.advance(second)
  await receiver.call(1)
  receiver.answers.push(500)
  await d.collect('+22370000001', { callbackUrl: `${receiver.url}/d` })
  await first.advance(second)
  await receiver.call(2)
  await first.simulator.close()
  await using again = await openBench({ journalPath: place.journalPath })
  await again.advance(minute)
  await receiver.call(3)
  expect(receiver.received.map((call) => call.path)).toEqual(['/a', '/d', '/a'])
})

test('a last line cut short is dropped, and the next one stands alone', async () => {
  await using place = await folder()
  const first = await openBench({ journalPath: place.journalPath })
  await (await gsmaClient(first.url, 'c')).collect('+22370090001')
  await first.simulator.close()
  await appendFile(place.journalPath, '[{"operation":{"id":"half')
  const next = await openBench({ journalPath: place.journalPath })
  await (await gsmaClient(next.url, 'c')).collect('+22370090002')
  await next.simulator.close()
  await using third = await openBench({ journalPath: place.journalPath })
  expect((await third.control('GET', '/invariants')).body).toMatchObject({ ok: true, pending: 2 })
})

test('a journal that was tampered with, or is none, keeps the simulator from starting', async () => {
  await using place = await folder()
  const first = await openBench({ journalPath: place.journalPath })
  await first.simulator.close()
  const lines = await readFile(place.journalPath, 'utf8')
  await writeFile(place.journalPath, `${lines}garbage\n`)
  await expect(startSimulator({ journalPath: place.journalPath })).rejects.toThrow(/line 3: not readable/)
  await writeFile(place.journalPath, lines.replace('"seq":1', '"seq":2'))
  await expect(startSimulator({ journalPath: place.journalPath })).rejects.toThrow(/out of order/)
  await writeFile(place.journalPath, 'something else\n')
  await expect(startSimulator({ journalPath: place.journalPath })).rejects.toThrow(/not a journal/)
})

test('a reset forgets payments but not the time, the webhook address or the count', async () => {
  await using place = await folder()
  const first = await openBench({ journalPath: place.journalPath })
  const c = await gsmaClient(first.url, 'c')
  await first.advance(minute)
  await c.disburse('+22370000001', { reference: 'BEFORE' })
  await first.advance(second)
  const [before] = (await first.control('GET', '/operations?clientRef=BEFORE')).body as unknown as [
    { reference: string },
  ]
  expect((await first.control('POST', '/reset', {})).body['offset_ms']).toBe(minute + second)
  const move = { advance_ms: hour, move: 'once' }
  const offset = minute + second + hour
  for (const bench of [first, first])
    expect((await bench.control('POST', '/clock', move)).body['offset_ms']).toBe(offset)
  expect((await first.control('POST', '/reset', {})).body['offset_ms']).toBe(offset)
  await first.simulator.close()
  await using again = await openBench({ journalPath: place.journalPath })
  expect((await again.control('POST', '/clock', move)).body['offset_ms']).toBe(offset)
  expect((await again.control('GET', '/operations')).body).toEqual([])
  expect((await again.control('GET', '/clock')).body['offset_ms']).toBe(offset)
  const c2 = await gsmaClient(again.url, 'c')
  expect((await c2.get('/accounts/balance')).body['currentBalance']).toBe('50000000')
  await c2.disburse('+22370000001', { reference: 'AFTER' })
  const [after] = (await again.control('GET', '/operations?clientRef=AFTER')).body as unknown as [
    { reference: string },
  ]
  expect(after.reference.slice(-5)).toBe('00002')
  expect(before.reference.slice(-5)).toBe('00001')
})

test('the program ends when its standard input closes, if it is tied to it', async () => {
  const tied = await startProgram()
  expect(JSON.parse(tied.line)).toEqual({ simulator: 'ready', url: tied.url })
  tied.child.stdin.end()
  expect(await tied.ended).toEqual([0, null])
})

test('a tied program leaves the journal alone until it gets the order to begin', async () => {
  await using place = await folder()
  const flags = ['--port', '0', '--tied', '--journal', place.journalPath]
  const child = spawn(process.execPath, [program, ...flags], { stdio: ['pipe', 'ignore', 'inherit'] })
  child.stdin.end()
  expect(await once(child, 'exit')).toEqual([0, null])
  expect(existsSync(place.journalPath)).toBe(false)
})

test('a taken port is an error in words, unless any port will do', async () => {
  await using bench = await openBench()
  const { port } = new URL(bench.url)
  const refused = spawn(process.execPath, [program, '--port', port], { stdio: ['ignore', 'ignore', 'pipe'] })
  const said: Buffer[] = []
  refused.stderr.on('data', (chunk: Buffer) => said.push(chunk))
  expect(await once(refused, 'close')).toEqual([1, null])
  expect(Buffer.concat(said).toString()).toContain(`Port ${port} is taken`)
  const other = await startProgram('--port', port, '--any-port')
  expect(new URL(other.url).port).not.toBe(port)
  other.child.stdin.end()
  await other.ended
})
