import type { IncomingMessage, ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Services } from '../context.ts'
import { singleFlight } from '../shared/single-flight.ts'
import { probePools } from '../database/client.ts'
import { passOver } from './request.ts'
import type { HttpServer } from './server.ts'

/**
 * A process whose pools take longer to answer is not ready. Choice: longer than a busy moment, because a
 * process that a balancer takes out gives its load to the others.
 */
const answerMs = 1_000

/**
 * What balancers and supervisors ask: `GET /livez` answers while the event loop turns, whatever the database
 * does; `GET /readyz` answers 200 while this process should get requests, else 503 with what is missing. Both
 * need no credential, count in no limit and are written to no log. However often `/readyz` is asked, the
 * pools are asked one question at a time.
 */
export function openHealth(
  services: Services,
  http: HttpServer,
): (message: IncomingMessage, response: ServerResponse) => void {
  return (message, response) => {
    const path = message.url?.split('?', 1)[0]
    if (message.method !== 'GET' && message.method !== 'HEAD') {
      response.setHeader('Allow', 'GET, HEAD')
      answer(message, response, 405, { status: 'method not allowed' })
    } else if (path === '/livez') answer(message, response, 200, { status: 'live' })
    else void answerReadiness(services, http, message, response)
  }
}

async function answerReadiness(
  services: Services,
  http: HttpServer,
  message: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const missing = await missingParts(services, http)
  const status = missing.length === 0 ? 'ready' : 'not ready'
  answer(message, response, missing.length === 0 ? 200 : 503, { status, missing })
}

/** The process listens only after all migrations: what can be missing later is the database, or its end. */
async function missingParts(services: Services, http: HttpServer): Promise<string[]> {
  if (http.isRetiring()) return ['draining']
  const answers = await singleFlight(services, 'readyz', () =>
    Promise.race([
      probePools(services.database).then(
        () => true,
        () => false,
      ),
      sleep(answerMs, false, { ref: false }),
    ]),
  )
  return answers ? [] : ['database']
}

function answer(message: IncomingMessage, response: ServerResponse, status: number, body: object): void {
  const text = JSON.stringify(body)
  response.writeHead(status, {
    'Content-Type': 'application/json; charset=utf-8',
    'Cache-Control': 'no-store',
    'Content-Length': Buffer.byteLength(text),
  })
  response.end(text)
  if (!message.complete) passOver(message)
}
