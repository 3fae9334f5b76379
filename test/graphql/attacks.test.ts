import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createClient as createSseClient } from 'graphql-sse'
import { createClient, type Sink } from 'graphql-ws'
import { describe, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { createOperations } from '../../src/graphql/operation.ts'
import { createGraphqlHandler } from '../../src/http/graphql.ts'
import { serveSubscriptions } from '../../src/http/subscriptions.ts'
import { type GraphqlAttack, attacks, fragmentBomb, type AttackAnswer, send } from './attacks.ts'
import { serve } from '../kit/graphql.ts'

const { url, fixture } = serve((server, { services, schema }) => {
  const operations = createOperations(schema)
  server.on('request', createGraphqlHandler({ services, operations, isDraining: () => false }))
  const sockets = serveSubscriptions({ services, operations, server })
  return () => sockets.close()
}, 'production')
const token = fixture.issue()

/** Runs a program of this folder, with a small heap. */
function start(file: string, argument: string) {
  const path = join(import.meta.dirname, file)
  return spawn(process.execPath, ['--max-old-space-size=64', path, argument], {
    stdio: ['pipe', 'pipe', 'ignore'],
  })
}

/** The answer, in the terms of the table. */
function summaryOf({ refusal }: GraphqlAttack, { status, text }: AttackAnswer): unknown[] {
  const { errors = [], extensions = {}, data = null } = JSON.parse(text || '{}')
  if (!refusal) return [status, Object.keys(extensions)]
  const hasReason = refusal.words.test(errors[0]?.message ?? '')
  return [status, errors[0]?.extensions.code ?? null, hasReason, errors.length, data]
}

function expected({ refusal, errors = 1 }: GraphqlAttack): unknown[] {
  if (!refusal) return [200, ['cost']]
  return [refusal.status, refusal.code, true, refusal.code === null ? 0 : errors, null]
}

describe('an attack is refused, with its reason, and nothing is executed', () => {
  test.each(attacks.map((attack) => [attack.name, attack] as const))('%s', async (_name, attack) => {
    const paid = fixture.paid.length
    // The second time its text is known.
    for (let round = 0; round < 2; round += 1) {
      const answer = await send(url(), attack, token)
      expect(summaryOf(attack, answer)).toEqual(expected(attack))
      expect(answer.text.length).toBeLessThan(5_000)
    }
    expect(fixture.paid).toHaveLength(paid)
  })
})

describe('the other ways in have the same limits', () => {
  test('a WebSocket and an event stream give the refusal, once', async () => {
    const query = fragmentBomb()
    const headers = { Authorization: `Bearer ${token}` }
    const socket = createClient({
      url: url().replace('http', 'ws'),
      webSocketImpl: WebSocket,
      connectionParams: { authorization: headers.Authorization },
    })
    const refusalOf = (subscribe: (sink: Sink) => unknown) =>
      new Promise((resolve) => {
        subscribe({ next: resolve, error: resolve, complete: () => resolve('nothing') })
      })
    expect(await refusalOf((sink) => socket.subscribe({ query }, sink))).toMatchObject([
      { extensions: { code: 'COST_EXCEEDED' } },
    ])
    const events = createSseClient({ url: url(), headers, retryAttempts: 0 })
    expect(await refusalOf((sink) => events.subscribe({ query }, sink as never))).toMatchObject({
      errors: [{ extensions: { code: 'COST_EXCEEDED' } }],
    })
    await socket.dispose()
  })
})

describe('a query of 341 bytes', () => {
  async function serveInSmallHeap(kind: 'bare' | 'ours') {
    const child = start('small-heap.ts', kind)
    const ended = once(child, 'exit')
    const [address] = await once(child.stdout, 'data')
    return { child, ended, address: String(address) }
  }
  const ask = (address: string, query: string) =>
    fetch(address, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ query }),
    })

  test('kills a bare server, but is refused by this one, which keeps running', async () => {
    expect(Buffer.byteLength(fragmentBomb())).toBe(341)
    const [bare, ours] = await Promise.all([serveInSmallHeap('bare'), serveInSmallHeap('ours')])
    await expect(ask(bare.address, fragmentBomb())).rejects.toThrow('fetch failed')
    const [code, signal] = await bare.ended
    expect([code, signal]).not.toEqual([0, null])
    const refused = await ask(ours.address, fragmentBomb())
    expect(await refused.text()).toContain('COST_EXCEEDED')
    expect(await (await ask(ours.address, '{ batches(first: 2) { nodes { id } } }')).json()).toMatchObject({
      data: { batches: { nodes: [{ id: '0' }, { id: '1' }] } },
    })
    ours.child.kill()
    await ours.ended
  })
})
