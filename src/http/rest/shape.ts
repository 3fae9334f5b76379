import type { IncomingHttpHeaders } from 'node:http'
import type { z } from 'zod'
import { DomainError } from '../../shared/errors.ts'
import { camelCase, invalidInput, readInput, snakeCase } from '../../shared/input.ts'
import { limits } from '../../shared/limits.ts'

/** A request as a route's row sees it. */
export interface RestRequest {
  params: Readonly<Record<string, string>>
  query: URLSearchParams
  headers: IncomingHttpHeaders
  /** Raw body; empty where there is none. */
  body: Buffer
}

/**
 * The body in the words of the schema, judged by the verb's own rules. Fields that nobody asks for are
 * ignored.
 * @throws DomainError INVALID_INPUT that lists every problem, UNSUPPORTED_MEDIA_TYPE
 */
export function body<T extends z.ZodType>(request: RestRequest, schema: T): z.output<T> {
  return readInput(schema, readObject(request))
}

/** The address's parameters in the words of the schema. @throws DomainError INVALID_INPUT */
export function query<T extends z.ZodType>(request: RestRequest, schema: T): z.output<T> {
  return readInput(schema, inSchemaWords([...request.query]))
}

/**
 * The body's fields under camelCase names; without a body, none. @throws DomainError INVALID_INPUT,
 * UNSUPPORTED_MEDIA_TYPE
 */
export function readObject(request: RestRequest): Readonly<Record<string, unknown>> {
  if (request.body.length === 0) return {}
  const json = readJson(request)
  if (typeof json !== 'object' || json === null || Array.isArray(json)) {
    throw new DomainError('INVALID_INPUT', 'The request body must be a JSON object.')
  }
  return inSchemaWords(Object.entries(json))
}

/** REST knows its fields by their snake_case names alone; `customerPhone` is an unknown field there. */
function inSchemaWords<T>(entries: readonly (readonly [string, T])[]): Record<string, T> {
  return Object.fromEntries(
    entries.filter(([name]) => snakeCase(name) === name).map(([name, value]) => [camelCase(name), value]),
  )
}

const utf8 = new TextDecoder('utf-8', { fatal: true })

function readJson({ body: bytes, headers }: RestRequest): unknown {
  const type = headers['content-type']?.split(';')[0]?.trim().toLowerCase()
  const encoding = headers['content-encoding']?.toLowerCase() ?? 'identity'
  if (
    (type !== undefined && type !== 'application/json' && !type.endsWith('+json')) ||
    encoding !== 'identity'
  ) {
    throw new DomainError('UNSUPPORTED_MEDIA_TYPE')
  }
  try {
    const text = utf8.decode(bytes)
    if (nesting(text) <= limits.jsonDepthMax) return JSON.parse(text)
  } catch {
    throw new DomainError('INVALID_INPUT', 'The request body is no well-formed JSON.')
  }
  throw invalidInput([{ field: '', message: `The body is nested deeper than ${limits.jsonDepthMax} levels` }])
}

/** The deepest nesting of a JSON text, without parsing it. */
function nesting(text: string): number {
  let depth = 0
  let deepest = 0
  for (const token of text.match(/"(?:[^"\\]|\\.)*"|[[\]{}]/gs) ?? []) {
    if (token === '[' || token === '{') deepest = Math.max(deepest, (depth += 1))
    if (token === ']' || token === '}') depth -= 1
  }
  return deepest
}
