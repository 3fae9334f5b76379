import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { createOperations } from '../../src/graphql/operation.ts'
import { createGraphqlHandler } from '../../src/http/graphql.ts'
import { serveSubscriptions } from '../../src/http/subscriptions.ts'
import { type GraphqlAttack, attacks, send } from './attacks.ts'
import { serve } from '../kit/graphql.ts'
import { processMs } from '../kit/processor-time.ts'

// The processor time of attacks. `attacks.test.ts` proves that each is refused.

const { url, fixture } = serve((server, { services, schema }) => {
  const operations = createOperations(schema)
  server.on('request', createGraphqlHandler({ services, operations, isDraining: () => false }))
  const sockets = serveSubscriptions({ services, operations, server })
  return () => sockets.close()
}, 'production')
const token = fixture.issue()

const honestRequest: GraphqlAttack = {
  name: 'honest',
  request: { body: JSON.stringify({ query: '{ me { name } }' }) },
  refusal: null,
  isSignedIn: true,
}

/** Processor time of the quickest of five tries, of client and service, in milliseconds. */
async function quickest(attack: GraphqlAttack): Promise<number> {
  const took: number[] = []
  for (let round = 0; round < 5; round += 1) {
    const before = processMs()
    await send(url(), attack, token)
    took.push(processMs() - before)
  }
  return Math.min(...took)
}

test.each(attacks.map((attack) => [attack.name, attack] as const))(
  '%s is refused at once',
  async (_name, attack) => {
    const honestMs = await quickest(honestRequest)
    // The size of its text takes time as well: an honest request counts as 2 ms at least.
    expect((await quickest(attack)) / Math.max(honestMs, 2)).toBeLessThan(25)
  },
)

describe('while attackers attack', () => {
  /** Clients that send these attacks, or honest requests instead, until `stop`. */
  async function load(kind: 'attackers' | 'neighbours') {
    const options = JSON.stringify({ url: url(), kind, token, clients: 10, pauseMs: 25 })
    const child = spawn(
      process.execPath,
      ['--max-old-space-size=64', join(import.meta.dirname, 'load.ts'), options],
      { stdio: ['pipe', 'pipe', 'ignore'] },
    )
    await once(child.stdout, 'data')
    return {
      async stop(): Promise<{ sent: number; failed: number }> {
        child.stdin.end()
        const [counts] = await once(child.stdout, 'data')
        return JSON.parse(String(counts))
      },
    }
  }

  /**
   * The work of this process while an honest request waits for its answer, with all requests before it.
   * @returns processor time of the slowest twentieth of them, in milliseconds
   */
  async function workBeforeAnswer(ms: number): Promise<number> {
    const took: number[] = []
    for (const end = performance.now() + ms; performance.now() < end; ) {
      const before = processMs()
      const { status, text } = await send(url(), honestRequest, token)
      took.push(processMs() - before)
      expect([status, JSON.parse(text).data]).toEqual([200, { me: { name: 'Shop' } }])
    }
    took.sort((a, b) => a - b)
    return took[Math.floor(took.length * 0.95)] ?? 0
  }

  test('honest requests wait for about as much work as beside honest clients', async () => {
    const ratios: number[] = []
    for (let round = 0; round < 4; round += 1) {
      const work = { attackers: 0, neighbours: 0 }
      for (const kind of ['attackers', 'neighbours'] as const) {
        const others = await load(kind)
        work[kind] = await workBeforeAnswer(500)
        const { sent, failed } = await others.stop()
        expect(failed).toBe(0)
        expect(sent).toBeGreaterThan(20)
      }
      ratios.push(work.attackers / work.neighbours)
    }
    // Take the best round: garbage collection slows some rounds.
    expect(Math.min(...ratios)).toBeLessThan(4)
  })
})
