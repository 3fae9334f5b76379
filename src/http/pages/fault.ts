import type { IncomingMessage } from 'node:http'
import type { Services } from '../../context.ts'
import { refusalResponse } from '../rest/handler.ts'
import { readerOf } from './layout.ts'
import { plainPage } from './payment-link-views.ts'

/**
 * Makes the answer of a page or a callback that failed: the envelope of the refusal; or, where the service is
 * at fault and a browser shows the answer to a person, a page with the same status and headers.
 */
export async function faultResponse(
  services: Services,
  message: IncomingMessage,
  error: unknown,
): Promise<Response> {
  const refused = refusalResponse(services, message, error)
  const { status, headers } = refused
  if (status < 500 || !prefersPage(message)) return refused
  const url = message.url ?? ''
  const reader = readerOf(services.config.mode, url, message.headers['accept-language'])
  const top = '../'.repeat((URL.parse(url, 'http://localhost')?.pathname.split('/').length ?? 2) - 2)
  headers.set('Content-Type', 'text/html; charset=utf-8')
  headers.delete('Content-Length')
  headers.append('Vary', 'Accept, Accept-Language')
  return new Response(String(await plainPage(reader, status === 503 ? 'down' : 'fault', top)), {
    status,
    headers,
  })
}

/** Whether a client asks for a page: programs name JSON, or any type. */
function prefersPage({ method, headers: { accept = '' } }: IncomingMessage): boolean {
  return (method === 'GET' || method === 'HEAD') && /\btext\/html\b/i.test(accept)
}
