import type { IncomingMessage, ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Services } from '../context.ts'
import { singleFlight } from '../shared/single-flight.ts'
import { probePools } from '../database/client.ts'
import type { HttpServer } from './server.ts'
import { waits } from '../shared/waits.ts'

/**
 * Makes the handler of health checks, for load balancers and supervisors. `GET /livez` answers while the
 * event loop runs, in any state of the database. `GET /readyz` answers 200 while this process should get
 * requests, else 503 with the missing parts. No rate limit counts these requests; they need no credential and
 * are not logged. Requests for `/readyz` that come at the same time share one question to the pools.
 */
export function openHealth(
  services: Services,
  http: HttpServer,
): (message: IncomingMessage, response: ServerResponse) => void {
  return (message, response) => {
    const path = message.url?.split('?', 1)[0]
    if (message.method !== 'GET' && message.method !== 'HEAD') {
      response.setHeader('Allow', 'GET, HEAD')
      answer(response, 405, { status: 'method not allowed' })
    } else if (path === '/livez') answer(response, 200, { status: 'live' })
    else void answerReadiness(services, http, response)
  }
}

async function answerReadiness(
  services: Services,
  http: HttpServer,
  response: ServerResponse,
): Promise<void> {
  const missing = await missingParts(services, http)
  const status = missing.length === 0 ? 'ready' : 'not ready'
  answer(response, missing.length === 0 ? 200 : 503, { status, missing })
}

/**
 * Returns the parts that are missing: the database, or `draining` where the process is ending. Migrations
 * cannot be missing, because the process answers only after them.
 */
async function missingParts(services: Services, http: HttpServer): Promise<string[]> {
  if (http.isRetiring()) return ['draining']
  const answers = await singleFlight(services, 'readyz', () =>
    Promise.race([
      probePools(services.database).then(
        () => true,
        () => false,
      ),
      sleep(waits.readyMs, false, { ref: false }),
    ]),
  )
  return answers ? [] : ['database']
}

function answer(response: ServerResponse, status: number, body: object): void {
  const text = JSON.stringify(body)
  response.writeHead(status, {
    'Content-Type': 'application/json; charset=utf-8',
    'Cache-Control': 'no-store',
    'Content-Length': Buffer.byteLength(text),
  })
  response.end(text)
}
