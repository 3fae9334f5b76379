import { createHash, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, readFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { numberAboveZero, runProgram, wholeNumber } from '../kit/command-line.ts'
import { cpuOf, cpuSince } from './cpu.ts'
import { freePorts, startSimulator } from './life/programs.ts'
import { openWire, repeat, type Wire } from './load.ts'

const help = `Processor time and memory of the simulator. A life is a payment at an operator that calls back:
the request, the callback, and two questions.

  --lives N     lives (20000)
  --clients N   lives at once (32)
  --steps N     lines of the table (10)
  --tree PATH   the simulator of another checkout
  --json        one document for machines`

/** The state of the simulator after some lives. */
interface Step {
  lives: number
  /** Processor time per life since the step before. */
  msPerLife: number
  livesPerSecond: number
  residentMb: number
}

await runProgram(async () => {
  const { values } = parseArgs({
    options: {
      lives: { type: 'string', default: '20000' },
      clients: { type: 'string', default: '32' },
      steps: { type: 'string', default: '10' },
      tree: { type: 'string', default: join(import.meta.dirname, '../..') },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) {
    process.stdout.write(`${help}\n`)
    return 0
  }
  const lives = wholeNumber('lives', values.lives)
  const clients = wholeNumber('clients', values.clients)
  const steps = numberAboveZero('steps', values.steps)
  const results: Step[] = []
  const folder = mkdtempSync(join(tmpdir(), 'merchant-payments-simulator-'))
  const [port = 0] = await freePorts(1)
  const simulator = await startSimulator({ name: 'simulator', folder: values.tree }, port, folder)
  await using client = await openClient(`http://127.0.0.1:${port}`)
  const each = Math.ceil(lives / steps)
  const wires = await Promise.all(Array.from({ length: clients }, () => openWire(client.port)))
  const report = (step: Step) => {
    results.push(step)
    if (!values.json)
      process.stdout.write(
        `${String(step.lives).padStart(8)} lives  ${step.msPerLife.toFixed(3)} ms each  ` +
          `${step.livesPerSecond.toFixed(0).padStart(5)}/s  ${step.residentMb.toFixed(1)} MB\n`,
      )
  }
  report({ lives: 0, msPerLife: 0, livesPerSecond: 0, residentMb: residentMb(simulator.pid) })
  for (let done = 0; done < lives; done += each) {
    const cpu = cpuOf([simulator.pid])
    const begun = performance.now()
    await repeat({ count: each, width: clients }, (_n, place) => client.live(wires[place] as Wire))
    const seconds = (performance.now() - begun) / 1_000
    const micros = cpuSince(cpu, [simulator.pid]) ?? Number.NaN
    report({
      lives: done + each,
      msPerLife: micros / 1_000 / each,
      livesPerSecond: each / seconds,
      residentMb: residentMb(simulator.pid),
    })
  }
  if (values.json) process.stdout.write(`${JSON.stringify(results, null, 2)}\n`)
  for (const wire of wires) wire.close()
  await simulator.stop()
  await rm(folder, { recursive: true, force: true })
  return 0
})

function residentMb(pid: number): number {
  return Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1_024
}

/** A client of OperatorA that waits for its callbacks. */
async function openClient(url: string) {
  const port = Number(new URL(url).port)
  const basic = Buffer.from('sandbox-a:sandbox-secret-a').toString('base64')
  const answer = await fetch(`${url}/op-a/oauth/token`, {
    method: 'POST',
    headers: { authorization: `Basic ${basic}`, 'content-type': 'application/x-www-form-urlencoded' },
    body: 'grant_type=client_credentials',
  })
  const { access_token } = (await answer.json()) as { access_token: string }
  const headers = { authorization: `Bearer ${access_token}`, 'x-api-key': 'sandbox-key-a' }
  const waiting = new Map<string, () => void>()
  const receiver = createServer((socket) => {
    let text = ''
    socket.setEncoding('latin1').setNoDelay(true)
    socket.on('error', () => {})
    socket.on('data', (chunk: string) => {
      text += chunk
      for (;;) {
        const head = text.indexOf('\r\n\r\n')
        if (head < 0) return
        const length = Number(/\r\ncontent-length: (\d+)/i.exec(text.slice(0, head))?.[1] ?? 0)
        if (text.length < head + 4 + length) return
        const id = /\/(\S+) HTTP/.exec(text)?.[1] ?? ''
        text = text.slice(head + 4 + length)
        socket.write('HTTP/1.1 204 No Content\r\n\r\n')
        waiting.get(id)?.()
        waiting.delete(id)
      }
    })
  }).listen(0, '127.0.0.1')
  await once(receiver, 'listening')
  const back = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}`
  let number = 0
  return {
    port,
    async live(wire: Wire) {
      const correlationId = randomUUID()
      const called = new Promise<void>((resolve) => void waiting.set(correlationId, resolve))
      number += 1
      const body = JSON.stringify({
        amount: '5000',
        currency: 'XOF',
        requestingOrganisationTransactionReference: `LIFE-${number}`,
        requestDate: new Date().toISOString(),
        debitParty: [{ key: 'msisdn', value: '+22370000001' }],
        creditParty: [{ key: 'accountid', value: 'POOL' }],
      })
      const asked = await wire.send({
        method: 'POST',
        path: '/op-a/v1.2/mm/transactions/type/merchantpay',
        headers: {
          ...headers,
          'x-correlationid': correlationId,
          'x-content-hash': createHash('sha256').update(body).digest('hex'),
          'x-callback-url': `${back}/${correlationId}`,
        },
        body,
      })
      if (asked.status !== 202) throw new Error(asked.text)
      await called
      const get = async (path: string) => {
        const { status, text } = await wire.send({ method: 'GET', path, headers })
        if (status !== 200) throw new Error(text)
        return JSON.parse(text.slice(text.indexOf('\r\n\r\n') + 4)) as Record<string, string>
      }
      const { link = '' } = await get(`/op-a/v1.2/mm/responses/${correlationId}`)
      const { transactionStatus } = await get(link.slice(link.indexOf('/op-a')))
      if (transactionStatus !== 'completed') throw new Error(`${correlationId}: ${transactionStatus}`)
    },
    async [Symbol.asyncDispose]() {
      receiver.close()
    },
  }
}
