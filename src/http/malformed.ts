import { randomUUID } from 'node:crypto'
import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import { type RefusalCode, refusals } from '../shared/errors.ts'
import { apiVersion } from '../shared/version.ts'
import { refused } from './rest/envelope.ts'

/**
 * Answers what could not be read as a request, in the envelope of every other answer, and closes the
 * connection: after bytes that nobody understood, nothing on it can be trusted.
 * @param busy an answer is on its way on this connection; a second one in the middle of it would be worse
 *   than none
 */
export function answerMalformed(error: Error & { code?: string }, socket: Socket, busy: boolean): void {
  if (error.code === 'ECONNRESET' || !socket.writable || busy) {
    socket.destroy()
    return
  }
  const requestId = randomUUID()
  const code = refusalOf[error.code ?? ''] ?? 'MALFORMED_REQUEST'
  const { status, body } = refused(requestId, { code, message: refusals[code].message })
  const text = JSON.stringify(body)
  socket.end(
    [
      `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`,
      'Connection: close',
      'Content-Type: application/json; charset=utf-8',
      `Content-Length: ${Buffer.byteLength(text)}`,
      `X-Request-Id: ${requestId}`,
      `X-API-Version: ${apiVersion}`,
      '',
      text,
    ].join('\r\n'),
  )
}

const refusalOf: Readonly<Record<string, RefusalCode>> = {
  HPE_HEADER_OVERFLOW: 'HEADERS_TOO_LARGE',
  ERR_HTTP_REQUEST_TIMEOUT: 'REQUEST_TIMEOUT',
}
