import type { IncomingHttpHeaders, IncomingMessage, RequestListener, ServerResponse } from 'node:http'

const bodyMaxBytes = 64 * 1_024

/** A request for a handler, with its complete body. */
export interface SimulatorCall {
  readonly method: string
  readonly path: string
  readonly query: URLSearchParams
  readonly headers: IncomingHttpHeaders
  readonly body: string
  /** The parts of the path that the route names. */
  readonly params: ReadonlyMap<string, string>
  /** Resolves once the caller has its answer, or waits no longer. */
  readonly over: Promise<unknown>
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
  return (call) => {
    const parts = call.path.split('/')
    const allowed = new Set<string>()
    for (const row of rows) {
      const params = matchPath(row.parts, parts)
      if (!params) continue
      if (row.route.method === call.method) return row.route.handle({ ...call, params })
      allowed.add(row.route.method)
    }
    if (allowed.size === 0) return notFound(call)
    return json(
      405,
      { message: 'This path does not support the HTTP method.' },
      { allow: [...allowed].join(', ') },
    )
  }
}

function matchPath(pattern: readonly string[], parts: readonly string[]): Map<string, string> | null {
  if (pattern.length !== parts.length) return null
  const params = new Map<string, string>()
  for (const [index, part] of parts.entries()) {
    const expected = pattern[index] ?? ''
    if (expected.startsWith(':')) {
      const value = decode(part)
      if (value === null || value === '') return null
      params.set(expected.slice(1), value)
    } else if (expected !== part) return null
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
export function header(call: SimulatorCall, name: string): string {
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

/** Makes the listener of Node's server from a handler; an error in one request never affects another. */
export function listener(handle: Handler, onError: (error: unknown) => void): RequestListener {
  return (request, response) => {
    response.on('error', () => {})
    request.on('error', () => {})
    answer(request, response, handle).catch((error: unknown) => {
      onError(error)
      if (response.headersSent || response.destroyed) response.destroy()
      else send(response, json(500, { message: 'The simulator failed.' }))
    })
  }
}

async function answer(request: IncomingMessage, response: ServerResponse, handle: Handler): Promise<void> {
  const over = new Promise((resolve) => response.once('close', resolve))
  const body = await readBody(request)
  if (body === null)
    return send(response, json(413, { message: 'The body is too large.' }, { connection: 'close' }))
  const [path = '', query = ''] = (request.url ?? '').split('?', 2)
  const delivery = await handle({
    method: request.method ?? '',
    path,
    query: new URLSearchParams(query),
    headers: request.headers,
    body,
    over,
    params: new Map(),
  })
  if (delivery === 'close') request.socket.destroy()
  else if (delivery !== 'hang' && !response.destroyed) send(response, delivery)
}

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
