import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from 'node:net'
import { onTestFinished } from 'vitest'
import { type AddressRules } from '../../../src/resources/webhooks/address.ts'
import { createSender } from '../../../src/resources/webhooks/send.ts'
import { signedHeaders, type SigningSecrets } from '../../../src/resources/webhooks/sign.ts'
import type { Outgoing, Sender } from '../../../src/shared/sender.ts'
import { receiverCertificate, receiverKey } from './receiver-certificate.ts'
import { patienceMs } from '../eventually.ts'

/** A request as it arrived. */
export interface Arrived {
  path: string
  headers: IncomingHttpHeaders
  body: Buffer
}

export interface Receiver {
  port: number
  arrived: Arrived[]
  connections: number
}

type Answer = (response: ServerResponse, arrived: Arrived) => void

/** A receiver over HTTP, or over HTTPS as `receiver.test`; it answers once it has read the whole request. */
export async function startReceiver(answer: Answer, secure = false): Promise<Receiver> {
  const receiver: Receiver = { port: 0, arrived: [], connections: 0 }
  const listener = (request: IncomingMessage, response: ServerResponse) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const arrived = { path: request.url ?? '', headers: request.headers, body: Buffer.concat(chunks) }
      receiver.arrived.push(arrived)
      answer(response, arrived)
    })
  }
  const server = secure
    ? createTlsServer({ key: receiverKey, cert: receiverCertificate }, listener)
    : createServer(listener)
  server.on('connection', () => (receiver.connections += 1))
  receiver.port = await listen(server, '127.0.0.1')
  onTestFinished(() => server.closeAllConnections())
  return receiver
}

/** A socket within the network, on every address of this machine; it counts connections. */
export async function startSocket(act: (socket: Socket) => void = () => {}): Promise<Receiver> {
  const receiver: Receiver = { port: 0, arrived: [], connections: 0 }
  const sockets = new Set<Socket>()
  const server = createTcpServer((socket) => {
    receiver.connections += 1
    sockets.add(socket)
    socket.on('error', () => {})
    act(socket)
  })
  receiver.port = await listen(server, '::')
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
  })
  return receiver
}

async function listen(server: Server, host: string): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, host, resolve))
  onTestFinished(() => void server.close())
  return (server.address() as AddressInfo).port
}

/** Makes a sender for this test, and patience. */
export function startSender(
  rules: Partial<AddressRules> = {},
  more: { deadlineMs?: number; ca?: string } = {},
): Sender {
  const sender = createSender({ mode: 'sandbox', deadlineMs: patienceMs, ...rules, ...more })
  onTestFinished(() => sender.close())
  return sender
}

export const message = (url: string): Outgoing => ({
  url,
  headers: { 'content-type': 'application/json' },
  body: Buffer.from('{"event":"test"}'),
})

/** Resolves names by a table; others do not exist. */
export function names(table: Readonly<Record<string, readonly string[]>>) {
  const asked: string[] = []
  const resolve = async (name: string) => {
    asked.push(name)
    const addresses = table[name]
    if (!addresses) throw new Error(`no ${name}`)
    return addresses
  }
  return { asked, resolve }
}

/** Sends an event that is signed with these secrets. @returns the request that the receiver got */
export async function deliver(
  body: Buffer,
  secrets: SigningSecrets,
  at = new Date(),
  event = { id: 'evt_7', type: 'payment_received' },
): Promise<Arrived> {
  const receiver = await startReceiver((response) => response.end())
  const url = `http://127.0.0.1:${receiver.port}/`
  await startSender().send({ url, headers: signedHeaders(event, body, secrets, at), body })
  const [arrived] = receiver.arrived
  if (!arrived) throw new Error('nothing arrived')
  return arrived
}
