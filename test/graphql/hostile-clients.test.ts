import { once } from 'node:events'
import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createOperations } from '../../src/graphql/operation.ts'
import { createGraphqlHandler } from '../../src/http/graphql.ts'
import { serveSubscriptions } from '../../src/http/subscriptions.ts'
import { serve } from '../kit/graphql.ts'

const { url, fixture } = serve((server, { services, schema }) => {
  server.on(
    'request',
    createGraphqlHandler({ services, operations: createOperations(schema), isDraining: () => false }),
  )
  const sockets = serveSubscriptions({ services, operations: createOperations(schema), server })
  return () => sockets.close()
})

describe('a payment by a client that does not accept the type of the answer', () => {
  const pay = async (accept: string) => {
    const answer = await fetch(url(), {
      method: 'POST',
      headers: { accept, 'content-type': 'application/json', authorization: `Bearer ${fixture.issue()}` },
      body: JSON.stringify({ query: 'mutation { pay(amount: 1) }' }),
    })
    await answer.text()
    return answer.status
  }

  test.each(['text/html', 'image/*', 'multipart/mixed', 'application/json; charset=iso-8859-1'])(
    'is refused with 406 for %s, before it begins',
    async (accept) => {
      const paid = fixture.paid.length
      expect(await pay(accept)).toBe(406)
      expect(fixture.paid).toHaveLength(paid)
    },
  )

  test.each([
    '*/*',
    'application/*',
    'text/html, application/json;q=0.9',
    'application/json; charset=utf-8',
    'text/event-stream',
  ])('is made for %s, and answered', async (accept) => {
    const paid = fixture.paid.length
    expect(await pay(accept)).toBe(200)
    expect(fixture.paid).toHaveLength(paid + 1)
  })
})

describe('a client that asks for a WebSocket and resets the connection', () => {
  const crashes: unknown[] = []
  const record = (error: unknown) => crashes.push(error)
  beforeAll(() => void process.on('uncaughtException', record))
  afterAll(() => void process.off('uncaughtException', record))

  test.each(['/elsewhere', '/graphql'])('does not end the process: %s', async (path) => {
    crashes.splice(0)
    const { hostname, port } = new URL(url())
    for (let attempt = 0; attempt < 20; attempt += 1) {
      const socket = connect(Number(port), hostname)
      await once(socket, 'connect')
      const headers = ['Host: x', 'Connection: Upgrade', 'Upgrade: websocket', '', '']
      socket.write(`GET ${path} HTTP/1.1\r\n${headers.join('\r\n')}`)
      socket.resetAndDestroy()
      await once(socket, 'close')
    }
    expect((await fetch(url(), { method: 'PUT' })).status).toBe(405)
    expect(crashes).toEqual([])
  })
})
