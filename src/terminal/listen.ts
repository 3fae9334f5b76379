import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { styleText } from 'node:util'
import { LruMap } from '../shared/lru-map.ts'
import { events } from '../events/catalogue.ts'
import { formatXof } from '../shared/money.ts'
import { Secret } from '../shared/secret.ts'
import {
  authorize,
  type Credentials,
  type Flags,
  findSandbox,
  makeMerchant,
  Misuse,
  runClientProgram,
  Stop,
} from './client-program.ts'
import { type ReceivedEvent, startReceiver } from './listen/receiver.ts'

const usage = `Prints every event that arrives here, verified, until Ctrl-C.

  --port N                    the port of this machine to listen on (4020)
  --url URL                   the address of the sandbox (http://HOST:PORT of the configuration)
  --key KEY --secret SECRET   an existing merchant; without it a new merchant, and a payment
  --webhook-secret whsec_...  only verifies the events of a registered endpoint
`

const defaultPort = '4020'
/** The number of event ids that are kept to recognise repetitions. */
const idsKept = 10_000
const say = (line = '') => process.stdout.write(`${line}\n`)

/** Listens for events until SIGINT or SIGTERM. @returns exit code */
async function listen({ url, credentials, more }: Flags<'port' | 'webhook-secret'>): Promise<number> {
  const given = more['webhook-secret']
  if (given !== undefined && credentials)
    throw new Misuse('--webhook-secret needs no --key: it only verifies.')
  if (given !== undefined && !/^whsec_[\w+/=-]+$/.test(given)) {
    throw new Misuse('--webhook-secret begins with whsec_.')
  }
  let secret = given === undefined ? null : new Secret(given)
  const stopped = Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')])
  if (!secret) await findSandbox(url, 'production sends to no address of this machine')
  const server = await startReceiver(portOf(more.port ?? defaultPort), () => secret, createPrinter())
  const { port } = server.address() as AddressInfo
  const here = `http://127.0.0.1:${port}/`
  try {
    if (secret) {
      say(`\n  ${styleText('bold', 'Listening')} on ${here}\n`)
      await stopped
      return 0
    }
    const merchant = credentials ?? (await makeMerchant('Webhooks'))
    const endpoint = await register(url, merchant, here)
    secret = endpoint.secret
    say(`\n  ${styleText('bold', 'Listening')} on ${here}; Ctrl-C ends it and removes the endpoint.`)
    if (!credentials) {
      say('  The first payment is on its way. More of them, in another terminal:')
      say(`  export API=${url} API_KEY=${merchant.key} API_SECRET=${merchant.secret}`)
    }
    say()
    if (!credentials) await pay(url, merchant)
    await stopped
    await remove(url, merchant, endpoint.id)
    return 0
  } finally {
    server.close()
    server.closeAllConnections()
  }
}

function portOf(text: string): number {
  if (!/^\d{1,5}$/.test(text) || Number(text) > 65_535) throw new Misuse('--port is a number up to 65535.')
  return Number(text)
}

/** Registers an endpoint for all events, and removes those that an earlier listener left at this address. */
async function register(url: string, merchant: Credentials, here: string) {
  const call = await openApi(url, merchant)
  const endpoints = (await call('GET', '/webhooks')) as { id: number; url: string }[]
  for (const { id } of endpoints.filter((endpoint) => endpoint.url === here)) {
    await call('DELETE', `/webhooks/${id}`)
  }
  const made = await call('POST', '/webhooks', { url: here, events: Object.keys(events) })
  const { id, secret } = made as { id: number; secret: string }
  return { id, secret: new Secret(secret) }
}

/** Removes the endpoint. It signs in again, because the first token may have expired. */
async function remove(url: string, merchant: Credentials, id: number): Promise<void> {
  try {
    await (await openApi(url, merchant))('DELETE', `/webhooks/${id}`)
    say(`\n  The endpoint ${id} is removed.`)
  } catch (error) {
    throw new Stop(`The endpoint ${id} could not be removed: ${error instanceof Error ? error.message : ''}`)
  }
}

/** Makes a payment by a customer who pays at once. */
async function pay(url: string, merchant: Credentials): Promise<void> {
  await (await openApi(url, merchant))('POST', '/pay', {
    amount: 5_000,
    customer_phone: '70000001',
    payment_method: 'OperatorA',
    reference: `listen-${randomBytes(4).toString('hex')}`,
  })
}

/** Signs in and returns a function that calls the API. It throws Stop with the message of a refusal. */
async function openApi(url: string, merchant: Credentials) {
  const authorization = await authorize(url, merchant, ['pay', 'webhooks'])
  return async (method: string, path: string, body?: object): Promise<unknown> => {
    const answer = await fetch(`${url}/merchant/api${path}`, {
      method,
      headers: { authorization, 'Content-Type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(15_000),
    })
    const { success, data, message } = (await answer.json()) as Record<string, unknown>
    if (success !== true) throw new Stop(`${method} ${path}: ${String(message)}`)
    return data
  }
}

/** Makes a function that prints each event as one line, and marks repetitions and missing events. */
function createPrinter(): (heard: ReceivedEvent) => void {
  const seen = new LruMap<string, true>(idsKept)
  let last: number | null = null
  const remarkOn = ({ problem, id, sequence }: ReceivedEvent): string => {
    if (problem !== null) return styleText('red', problem)
    if (seen.get(id)) return styleText('yellow', 'again')
    if (sequence === null || last === null || sequence <= last + 1) return ''
    return styleText('yellow', `missing so far: ${last + 1} to ${sequence - 1}`)
  }
  return (heard) => {
    const { problem, id, event, sequence, amount, about } = heard
    const line = [
      problem === null ? styleText('green', '✓') : styleText('red', '✗'),
      styleText('dim', new Date().toTimeString().slice(0, 8)),
      String(sequence ?? '-').padStart(4),
      event.padEnd(19),
      (amount === null ? '' : formatXof(amount)).padStart(15),
      about,
      styleText('dim', id),
      remarkOn(heard),
    ]
    say(`  ${line.join('  ').trimEnd()}`)
    if (problem !== null) return
    seen.set(id, true)
    if (sequence !== null) last = Math.max(last ?? 0, sequence)
  }
}

await runClientProgram(usage, ['port', 'webhook-secret'], listen)
