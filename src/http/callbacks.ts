import { Hono } from 'hono'
import type { Services } from '../context.ts'
import type { RawCallback } from '../operators/operator.ts'
import type { Operator } from '../operators/registry.ts'
import { recordAndAsk } from '../requests/record-callback.ts'
import { type Provider, providers } from '../shared/providers.ts'
import { DomainError } from '../shared/errors.ts'
import { type HttpBindings, readBody } from './request.ts'

/**
 * The routes for operators' callbacks. A callback is a hint: it is checked, stored and acknowledged, and then
 * the operator is asked. It moves no money by itself, so a forged callback costs only one question to the
 * operator. A callback takes none of the steps of `enter.ts`, because an operator that is refused may not
 * send the callback again. The operator's driver checks the callback instead, by its token or by its
 * signature over the body.
 */
export function callbackRoutes(services: Services): Hono<HttpBindings> {
  const app = new Hono<HttpBindings>()
  app.on(['PUT', 'POST'], '/operators/:provider/callbacks/:token', async (c) => {
    const name = c.req.param('provider')
    const operator = isProvider(name) ? services.operators.find(name) : null
    if (!operator) throw new DomainError('NOT_FOUND')
    const body = await readBody(c.env.incoming)
    if (body === null) throw new DomainError('BODY_TOO_LARGE')
    await takeCallback(services, operator, {
      method: c.req.method,
      headers: c.req.header(),
      body,
      pathToken: c.req.param('token'),
      receivedAt: services.clock.now(),
    })
    return c.body(null, 204)
  })
  return app
}

/** Checks and records a callback. @throws DomainError MALFORMED_REQUEST, FORBIDDEN, NOT_FOUND */
async function takeCallback(services: Services, operator: Operator, raw: RawCallback): Promise<void> {
  const { provider } = operator
  const read = operator.parseCallback(raw)
  if (read.kind === 'rejected') {
    services.log.warn({ provider, why: read.why }, 'a callback was refused')
    throw read.why === 'unreadable'
      ? new DomainError('MALFORMED_REQUEST', 'The callback cannot be read.')
      : new DomainError('FORBIDDEN', 'The token, time or signature of the callback is not valid.')
  }
  if (read.kind === 'ignored') return
  const correlationId =
    read.find.correlationId ?? (read.operationId === null ? read.find.clientRef : undefined)
  const { requestId } = await recordAndAsk(services, {
    provider,
    dedupeKey: read.dedupeKey,
    body: Buffer.from(raw.body).toString('utf8').replaceAll('\0', ''),
    requestId: read.operationId === null ? null : BigInt(read.operationId),
    correlationId: correlationId !== undefined && uuid.test(correlationId) ? correlationId : null,
    says: read.says,
  })
  if (requestId === null) {
    services.log.warn({ provider, find: read.find }, 'a callback names no request of this service')
    throw new DomainError('NOT_FOUND', 'The callback names no request of this service.')
  }
}

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

function isProvider(name: string): name is Provider {
  return (providers as readonly string[]).includes(name)
}
