import { createServer, type IncomingMessage, request as ask, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** The amount in the altered answer; null leaves the true one. */
export type Said = string | number | null

/** Changes the JSON of an answer to a request for this path. */
export type Alteration = (answer: unknown, path: string) => unknown

/**
 * A proxy between the service and its operators that writes another amount into their answers about single
 * payments and into their statements, or alters the answers as the test says. Everything else passes
 * unchanged.
 */
export interface AlteringProxy {
  url: string
  /** The operators' own address; until it is known every call is answered 503. */
  target: string
  says: Said
  alter: Alteration | null
  close(): Promise<void>
}

export async function startAlteringProxy(): Promise<AlteringProxy> {
  const server = createServer((request, response) => {
    if (proxy.target) pass(proxy, request, response)
    else response.writeHead(503).end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const proxy: AlteringProxy = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    target: '',
    says: null,
    alter: null,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
  return proxy
}

function pass(proxy: AlteringProxy, request: IncomingMessage, response: ServerResponse): void {
  const target = new URL(proxy.target)
  const { host: _host, 'accept-encoding': _encoding, ...headers } = request.headers
  const options = {
    method: request.method,
    path: request.url,
    headers,
    host: target.hostname,
    port: target.port,
  }
  const onward = ask(options, (answer) => {
    const chunks: Buffer[] = []
    answer.on('data', (chunk: Buffer) => chunks.push(chunk))
    answer.on('end', () => {
      const isControl = request.url?.startsWith('/_sim/') === true
      const body = isControl
        ? Buffer.concat(chunks)
        : altered(proxy, Buffer.concat(chunks), request.url ?? '')
      const { 'content-length': _length, 'transfer-encoding': _coding, ...rest } = answer.headers
      response.writeHead(answer.statusCode ?? 502, { ...rest, 'content-length': body.length }).end(body)
    })
  })
  onward.on('error', () => response.destroy())
  request.pipe(onward)
}

/** Makes links lead through the proxy, replaces amounts by those of `says`, and alters the answer. */
function altered({ target, url, says, alter }: AlteringProxy, body: Buffer, path: string): Buffer {
  const text = body.toString().replaceAll(target, url)
  if ((says === null && !alter) || !/^[[{]/.test(text)) return Buffer.from(text)
  const answer: unknown = JSON.parse(text)
  const said = JSON.stringify(alter ? alter(answer, path) : answer, (name: string, value: unknown) =>
    says !== null && (name === 'amount' || name === 'receive_amount') ? says : value,
  )
  return Buffer.from(said)
}
