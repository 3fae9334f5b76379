import { randomUUID } from 'node:crypto'
import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import { type RefusalCode, refusals } from '../shared/errors.ts'
import { apiVersion } from '../shared/version.ts'
import { closeConnection } from './close-connection.ts'
import { refused } from './rest/envelope.ts'

/**
 * Answers bytes that could not be read as a request, in the envelope of every other answer, and closes the
 * connection: after bytes that were not understood, nothing on it can be trusted.
 * @param busy true while another answer is being sent on this connection; a second one in its middle would be
 *   worse than none
 */
export function answerMalformed(error: Error & { code?: string }, socket: Socket, busy: boolean): void {
  if (error.code === 'ECONNRESET' || !socket.writable || busy) {
    socket.destroy()
    return
  }
  closeConnection(socket, refusalText(refusalOf[error.code ?? ''] ?? 'MALFORMED_REQUEST'))
}

/** Returns a whole answer that refuses and closes, for a connection on which no request can be answered. */
export function refusalText(code: RefusalCode, headers: readonly string[] = []): string {
  const requestId = randomUUID()
  const { status, body } = refused(requestId, { code, message: refusals[code].message })
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
