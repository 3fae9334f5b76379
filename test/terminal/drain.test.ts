import { Agent, request } from 'node:http'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { eventually } from '../kit/eventually.ts'
import { admin, newHome, signIn, startOptions, startProgram } from '../kit/program.ts'

type Fate = 'answered' | 'refused' | 'broken'

/** One request on a kept connection. A refused connection loses nothing: the client asks another node. */
function ask(url: string, agent: Agent, headers: Record<string, string>, body?: string): Promise<Fate> {
  return new Promise((resolve) => {
    const sent = request(url, { agent, headers, method: body === undefined ? 'GET' : 'POST' }, (answer) => {
      let text = ''
      answer.setEncoding('utf8')
      answer.on('data', (chunk) => (text += chunk))
      answer.on('error', () => resolve('broken'))
      answer.on('end', () => resolve(isWhole(text) ? 'answered' : 'broken'))
    })
    sent.on('error', (error: Error & { code?: string }) =>
      resolve(error.code === 'ECONNREFUSED' ? 'refused' : 'broken'),
    )
    sent.end(body)
  })
}

function isWhole(text: string): boolean {
  try {
    return 'request_id' in JSON.parse(text)
  } catch {
    return false
  }
}

test('SIGTERM under load: every request that found a connection is answered whole', async () => {
  const home = await newHome()
  onTestFinished(() => home.remove())
  const longDrain = join(import.meta.dirname, 'long-drain.ts')
  const service = await startProgram(home, ['node', ...startOptions, '--import', longDrain, 'src/main.ts'])
  onTestFinished(() => service.destroy())
  const made = JSON.parse((await admin(home, 'merchant', 'create', '--name', 'Load', '--json')).stdout)
  const token = await signIn(home, made.api_key, made.api_secret)
  const agent = new Agent({ keepAlive: true, maxSockets: 24 })
  onTestFinished(() => agent.destroy())

  const fates: Record<Fate, number> = { answered: 0, refused: 0, broken: 0 }
  const payment = JSON.stringify({ amount: 500, customer_phone: '70110001', payment_method: 'OperatorA' })
  const json = { ...token, 'Content-Type': 'application/json' }
  const client = async (nth: number) => {
    for (let fate: Fate = 'answered'; fate !== 'refused'; ) {
      fate = await (nth % 3 === 0
        ? ask(`${home.url}/merchant/api/pay`, agent, json, payment)
        : ask(`${home.url}/merchant/api/balance`, agent, token))
      fates[fate] += 1
    }
  }
  const clients = Array.from({ length: 24 }, (_, nth) => client(nth))
  await eventually(() => expect(fates.answered).toBeGreaterThan(200))
  const code = await service.end('SIGTERM')
  await Promise.all(clients)
  expect(fates).toMatchObject({ broken: 0, refused: 24 })
  expect(code).toBe(0)
})

test('DRAIN_DELAY_MS is added to the time limit of a stop, and requests go on meanwhile', async () => {
  // Longer than a stop may take without it.
  const home = await newHome({ DRAIN_DELAY_MS: '10000' })
  onTestFinished(() => home.remove())
  const service = await startProgram(home)
  onTestFinished(() => service.destroy())
  expect((await fetch(`${home.url}/readyz`)).status).toBe(200)
  const ended = service.end('SIGTERM')
  await eventually(async () => expect((await fetch(`${home.url}/readyz`)).status).toBe(503))
  expect((await fetch(`${home.url}/merchant/api/status`)).status).toBe(200)
  expect(await ended).toBe(0)
})
