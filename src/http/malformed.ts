import { randomUUID } from 'node:crypto'
import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import { type RefusalCode, refusals } from '../shared/errors.ts'
import { apiVersion } from '../shared/version.ts'
import { closeConnection } from './close-connection.ts'
import { refused } from './rest/envelope.ts'

/**
 * Sends an error answer, in the usual envelope, for bytes that are not a valid request, and closes the
 * connection, because later bytes cannot be trusted.
 * @param busy true while another request on this connection waits for its answer or receives it; then the
 *   connection is closed without an error answer, because two answers would mix
 */
export function answerMalformed(error: Error & { code?: string }, socket: Socket, busy: boolean): void {
  if (error.code === 'ECONNRESET' || !socket.writable || busy) {
    socket.destroy()
    return
  }
  closeConnection(socket, refusalText(refusalOf[error.code ?? ''] ?? 'MALFORMED_REQUEST'))
}

/**
 * Returns a whole HTTP answer with a refusal, for a connection that is closed after it. Its `docs` is a path:
 * the server answers so even before the service knows its public address.
 */
export function refusalText(code: RefusalCode, headers: readonly string[] = []): string {
  const requestId = randomUUID()
  const { status, body } = refused({ requestId, publicUrl: '' }, { code, message: refusals[code].message })
  const text = JSON.stringify(body)
  return [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`,
    'Connection: close',
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(text)}`,
    `X-Request-Id: ${requestId}`,
    `X-API-Version: ${apiVersion}`,
    ...headers,
    '',
    text,
  ].join('\r\n')
}

const refusalOf: Readonly<Record<string, RefusalCode>> = {
  HPE_HEADER_OVERFLOW: 'HEADERS_TOO_LARGE',
  ERR_HTTP_REQUEST_TIMEOUT: 'REQUEST_TIMEOUT',
}
