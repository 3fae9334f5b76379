import type { SimulatorCall, Delivery } from './http.ts'
import { header, readObject, text } from './http.ts'
import type { OperatorKey } from './model.ts'
import { operators } from './operators.ts'

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

/** The newest requests that the simulated operators got, with masked secrets; kept only in memory. */
export class RequestLog {
  #seen: LoggedRequest[] = []

  add(operator: OperatorKey, call: SimulatorCall, delivery: Delivery, at: number): void {
    const body = readObject(call.body) ?? {}
    const reference =
      text(body, 'requestingOrganisationTransactionReference') || text(body, 'client_reference')
    this.#seen.push({
      at: new Date(at).toISOString(),
      operator: operators[operator].name,
      method: call.method,
      path: call.path,
      query: call.query.toString(),
      headers: masked(call),
      body: call.path.endsWith('/oauth/token') ? '' : call.body,
      status: typeof delivery === 'object' ? delivery.status : null,
      clientReference: reference || (call.query.get('client_reference') ?? ''),
      correlationId: header(call, 'x-correlationid') || header(call, 'idempotency-key'),
    })
    if (this.#seen.length > 2 * keptMax) this.#seen = this.#seen.slice(-keptMax)
  }

  /**
   * Returns requests, oldest first: all, or only those with the given client reference or correlation id.
   */
  list(wanted: { clientReference: string | null; correlationId: string | null }): readonly LoggedRequest[] {
    const { clientReference, correlationId } = wanted
    return this.#seen
      .filter((seen) => clientReference === null || seen.clientReference === clientReference)
      .filter((seen) => correlationId === null || seen.correlationId === correlationId)
      .slice(-keptMax)
  }

  clear(): void {
    this.#seen = []
  }
}

function masked(call: SimulatorCall): Record<string, unknown> {
  const headers: Record<string, unknown> = { ...call.headers }
  for (const name of ['authorization', 'x-api-key']) if (headers[name] !== undefined) headers[name] = '***'
  return headers
}
