import type { CheckoutSettings } from '../config/operators.ts'
import type { Clock } from '../shared/clock.ts'
import { createHttpClient, type HttpResult } from './http-client.ts'
import type { CallContext } from './operator.ts'

export interface CheckoutCall {
  operation: string
  method: 'GET' | 'POST'
  /** Below the base address, with its slash and query. */
  path: string
  correlationId: string
  body?: unknown
  /** Sends the correlation id as the idempotency key. */
  idempotent?: boolean
  answerMaxBytes?: number
}

/** The API of a hosted-checkout operator, with the key of our wallet. */
export interface CheckoutWire {
  call(call: CheckoutCall, ctx: CallContext): Promise<HttpResult>
  close(): Promise<void>
}

export function createCheckoutWire(settings: CheckoutSettings, clock: Clock): CheckoutWire {
  const base = new URL(settings.baseUrl)
  const root = base.href.replace(/\/+$/, '')
  const rate = settings.limits.requestsPerSecond
  const http = createHttpClient(settings.provider, [base.origin], rate, () => clock.now())
  return {
    call: ({ body, idempotent = false, path, ...call }, ctx) =>
      http.send(
        {
          ...call,
          url: new URL(root + path),
          body: body === undefined ? undefined : JSON.stringify(body),
          headers: {
            accept: 'application/json',
            authorization: `Bearer ${settings.apiKey.reveal()}`,
            ...(body === undefined ? {} : { 'content-type': 'application/json' }),
            ...(idempotent ? { 'idempotency-key': call.correlationId } : {}),
            ...(ctx.traceparent === undefined ? {} : { traceparent: ctx.traceparent }),
          },
        },
        ctx,
      ),
    close: () => http.close(),
  }
}
