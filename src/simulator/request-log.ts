import type { SimulatorCall, Delivery } from './http.ts'
import { header, readObject, text } from './http.ts'
import type { OperatorKey } from './model.ts'
import { operators } from './operators.ts'
import { Ring } from './ring.ts'

const keptMax = 1_000

/** A request as an operator received it. */
export interface LoggedRequest {
  readonly at: string
  readonly operator: string
  readonly method: string
  readonly path: string
  readonly query: string
  readonly headers: Readonly<Record<string, unknown>>
  readonly body: string
  /** The status of the answer; null where there was no answer. */
  readonly status: number | null
  readonly clientReference: string
  readonly correlationId: string
}

/** The parts of a request that the log keeps. A whole `SimulatorCall` would keep its connection in memory. */
type Seen = Pick<SimulatorCall, 'method' | 'path' | 'query' | 'headers' | 'body'> & {
  readonly operator: OperatorKey
  readonly status: number | null
  readonly at: number
}

/** The newest requests that the simulated operators got; kept only in memory. Answers mask the secrets. */
export class RequestLog {
  readonly #seen = new Ring<Seen>(keptMax)

  add(operator: OperatorKey, call: SimulatorCall, delivery: Delivery, at: number): void {
    const { method, path, query, headers, body } = call
    const status = typeof delivery === 'object' ? delivery.status : null
    this.#seen.add({ operator, method, path, query, headers, body, status, at })
  }

  /**
   * Returns requests, oldest first: all, or only those with the given client reference or correlation id.
   */
  list(wanted: { clientReference: string | null; correlationId: string | null }): readonly LoggedRequest[] {
    const { clientReference, correlationId } = wanted
    return this.#seen
      .list()
      .map(describe)
      .filter((seen) => clientReference === null || seen.clientReference === clientReference)
      .filter((seen) => correlationId === null || seen.correlationId === correlationId)
  }

  clear(): void {
    this.#seen.clear()
  }
}

function describe(seen: Seen): LoggedRequest {
  const { operator, method, path, query, headers, body, status, at } = seen
  const object = readObject(body) ?? {}
  const reference =
    text(object, 'requestingOrganisationTransactionReference') || text(object, 'client_reference')
  return {
    at: new Date(at).toISOString(),
    operator: operators[operator].name,
    method,
    path,
    query: query.toString(),
    headers: masked(headers),
    body: path.endsWith('/oauth/token') ? '' : body,
    status,
    clientReference: reference || (query.get('client_reference') ?? ''),
    correlationId: header(seen, 'x-correlationid') || header(seen, 'idempotency-key'),
  }
}

function masked(headers: Seen['headers']): Record<string, unknown> {
  const shown: Record<string, unknown> = { ...headers }
  for (const name of ['authorization', 'x-api-key']) if (shown[name] !== undefined) shown[name] = '***'
  return shown
}
