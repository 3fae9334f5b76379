import type { IncomingHttpHeaders, IncomingMessage, RequestListener, ServerResponse } from 'node:http'

const bodyMaxBytes = 64 * 1_024

/** A request for a handler, with its complete body. */
export interface SimulatorCall {
  readonly method: string
  readonly path: string
  readonly query: URLSearchParams
  readonly headers: IncomingHttpHeaders
  readonly body: string
  /** Returns the body as a JSON object; null for any other body. */
  readonly object: () => Readonly<Record<string, unknown>> | null
  /** The parts of the path that the route names. */
  readonly params: ReadonlyMap<string, string>
  /** Runs a function once the caller has its answer, or waits no longer. */
  readonly whenOver: (run: () => void) => void
  /** True if a request that was executed before must be executed again (fault `no_dedupe`). */
  readonly repeats?: boolean
}

export interface Reply {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  /** True if the connection must break after half of the body. */
  readonly cut?: boolean
}

/** The end of a request: an answer, a closed connection, or silence until the caller ends the connection. */
export type Delivery = Reply | 'close' | 'hang'

export type Handler = (call: SimulatorCall) => Delivery | Promise<Delivery>

/** One route; `:name` in the pattern matches one part of the path. */
export interface SimulatorRoute {
  readonly method: string
  readonly pattern: string
  readonly handle: Handler
}

/** Makes a handler that finds the route of a path; a known path with another method is 405 with `Allow`. */
export function routesOf(routes: readonly SimulatorRoute[], notFound: Handler): Handler {
  const rows = routes.map((route) => ({ route, parts: route.pattern.split('/') }))
  const byLength = Map.groupBy(rows, ({ parts }) => parts.length)
  return (call) => {
    const parts = call.path.split('/')
    const allowed: string[] = []
    for (const { route, parts: pattern } of byLength.get(parts.length) ?? []) {
      const params = matchPath(pattern, parts)
      if (!params) continue
      if (route.method === call.method) return route.handle({ ...call, params })
      allowed.push(route.method)
    }
    if (allowed.length === 0) return notFound(call)
    return json(
      405,
      { message: 'This path does not support the HTTP method.' },
      { allow: [...new Set(allowed)].join(', ') },
    )
  }
}

/** Returns the named parts of a path; null for a path that does not match. Both have the same length. */
function matchPath(pattern: readonly string[], parts: readonly string[]): Map<string, string> | null {
  if (!pattern.every((expected, index) => expected.startsWith(':') || expected === parts[index])) return null
  const params = new Map<string, string>()
  for (const [index, expected] of pattern.entries()) {
    if (!expected.startsWith(':')) continue
    const value = decode(parts[index] ?? '')
    if (value === null || value === '') return null
    params.set(expected.slice(1), value)
  }
  return params
}

/** Returns a named part of the path. */
export function param(call: SimulatorCall, name: string): string {
  const value = call.params.get(name)
  if (value === undefined) throw new Error(`The route has no :${name}.`)
  return value
}

/** Returns a request header; an empty string where it is absent. */
export function header(call: Pick<SimulatorCall, 'headers'>, name: string): string {
  const value = call.headers[name]
  return Array.isArray(value) ? (value[0] ?? '') : (value ?? '')
}

export function json(status: number, value: unknown, headers: Readonly<Record<string, string>> = {}): Reply {
  return { status, headers: { 'content-type': 'application/json', ...headers }, body: JSON.stringify(value) }
}

/** Reads a JSON object. @returns null for any other body */
export function readObject(body: string): Readonly<Record<string, unknown>> | null {
  try {
    const value: unknown = JSON.parse(body)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : null
  } catch {
    return null
  }
}

/** Returns a text field of an object; an empty string where it is absent or no text. */
export function text(source: Readonly<Record<string, unknown>>, field: string): string {
  const value = source[field]
  return typeof value === 'string' ? value : ''
}

/**
 * Makes the listener of Node's server from a handler; an error in one request never affects another.
 * @param written resolves once the changes that an answer may tell of are written
 */
export function listener(
  handle: Handler,
  written: () => Promise<void>,
  onError: (error: unknown) => void,
): RequestListener {
  return (request, response) => {
    response.on('error', ignore)
    request.on('error', ignore)
    answer(request, response, handle, written).catch((error: unknown) => {
      onError(error)
      if (response.headersSent || response.destroyed) response.destroy()
      else send(response, json(500, { message: 'The simulator failed.' }))
    })
  }
}

const ignore = () => {}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  handle: Handler,
  written: () => Promise<void>,
): Promise<void> {
  const { headers } = request
  const hasBody = 'content-length' in headers || 'transfer-encoding' in headers
  const body = hasBody ? await readBody(request) : ''
  if (body === null)
    return send(response, json(413, { message: 'The body is too large.' }, { connection: 'close' }))
  const [path = '', query = ''] = (request.url ?? '').split('?', 2)
  let object: Readonly<Record<string, unknown>> | null | undefined
  const delivery = await handle({
    method: request.method ?? '',
    path,
    query: query === '' ? noQuery : new URLSearchParams(query),
    headers,
    body,
    object: () => (object === undefined ? (object = readObject(body)) : object),
    whenOver: (run) => void response.once('close', run),
    params: noParams,
  })
  await written()
  if (delivery === 'close') request.socket.destroy()
  else if (delivery !== 'hang' && !response.destroyed) send(response, delivery)
}

const noQuery = new URLSearchParams()
const noParams: ReadonlyMap<string, string> = new Map()

function send(response: ServerResponse, reply: Reply): void {
  const body = reply.body ?? ''
  const length = reply.status === 204 ? {} : { 'content-length': Buffer.byteLength(body) }
  response.writeHead(reply.status, { ...reply.headers, ...length })
  if (reply.cut) response.write(body.slice(0, body.length / 2), () => response.destroy())
  else response.end(body)
}

/**
 * Reads the body.
 * @returns null if the body is over the limit, or if the connection closed before the end of the body
 */
function readBody(request: IncomingMessage): Promise<string | null> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = []
    let bytes = 0
    request.on('data', (chunk: Buffer) => {
      bytes += chunk.length
      if (bytes <= bodyMaxBytes) chunks.push(chunk)
      else resolve(null)
    })
    request.on('end', () => resolve(Buffer.concat(chunks).toString('utf8')))
    request.on('close', () => resolve(null))
  })
}

function decode(part: string): string | null {
  try {
    return decodeURIComponent(part)
  } catch {
    return null
  }
}
