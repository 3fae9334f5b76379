import { setTimeout as sleep } from 'node:timers/promises'
import { runProgram } from '../support/command-line.ts'
import { openGround } from './ground.ts'
import { openWire, quantile, type Wire } from './load.ts'
import { startProduct } from './product.ts'

// A program: how long the payments of one merchant take, alone and beside 100 merchants who each regenerate
// an API key once a second, which is as often as the limit allows. Alone and beside take turns.
//   npm run access-changes

const othersCount = 100
const rounds = 3
const payments = 150
const everyMs = 1_000
const ratioMax = 1.5

await runProgram(async () => {
  const ground = await openGround()
  const product = await startProduct(ground, othersCount + 1)
  const wires = await Promise.all(Array.from({ length: 9 }, () => openWire(product.port)))
  try {
    const [payer, ...changers] = wires as [Wire, ...Wire[]]
    const [victim, ...others] = product.merchants
    const keys: { token: string; id: string }[] = []
    for (const { token } of others) keys.push({ token, id: await makeKey(payer, token) })

    let changed = 0
    async function change(signal: AbortSignal): Promise<void> {
      const begun = performance.now()
      for (let turn = 0; !signal.aborted; turn += 1) {
        await Promise.all(
          changers.map(async (wire, place) => {
            for (let at = place; at < keys.length; at += changers.length) {
              const { token, id } = keys[at] ?? { token: '', id: '' }
              changed += (await regenerate(wire, token, id)) ? 1 : 0
            }
          }),
        )
        await sleep(Math.max(0, begun + (turn + 1) * everyMs - performance.now()))
      }
    }

    const alone: number[] = []
    const beside: number[] = []
    const ratios: number[] = []
    await pay(payer, victim?.token ?? '')
    for (let round = 0; round < rounds; round += 1) {
      const one = await pay(payer, victim?.token ?? '')
      const end = new AbortController()
      const changing = change(end.signal)
      const other = await pay(payer, victim?.token ?? '')
      end.abort()
      await changing
      alone.push(...one)
      beside.push(...other)
      ratios.push(quantile(other, 0.5) / quantile(one, 0.5))
    }
    const ratio = quantile(ratios, 0.5)
    process.stdout.write(
      `a payment alone: ${times(alone)}\nbeside ${changed} regenerated keys: ${times(beside)}\n` +
        `median ratio of the p50 of ${rounds} rounds: ${ratio.toFixed(2)} (at most ${ratioMax})\n`,
    )
    return ratio <= ratioMax ? 0 : 1
  } finally {
    for (const wire of wires) wire.close()
    await product.close()
    await ground.close()
  }
})

function times(all: readonly number[]): string {
  return `p50 ${quantile(all, 0.5).toFixed(1)} ms, p99 ${quantile(all, 0.99).toFixed(1)} ms`
}

/** @returns how long each of the payments took, one after another */
async function pay(wire: Wire, token: string): Promise<number[]> {
  const taken: number[] = []
  for (let count = 0; count < payments; count += 1) {
    const sent = performance.now()
    const { status, text } = await wire.send({
      method: 'POST',
      path: '/merchant/api/pay',
      headers: { Authorization: `Bearer ${token}` },
      // Customer 11 of the sandbox never answers: nothing settles meanwhile.
      body: JSON.stringify({ amount: 5_000, customer_phone: '70110000', payment_method: 'OperatorA' }),
    })
    if (status !== 202) throw new Error(`Answered ${status}: ${text}`)
    taken.push(performance.now() - sent)
  }
  return taken
}

async function graphql(wire: Wire, token: string, query: string): Promise<string> {
  const { text } = await wire.send({
    method: 'POST',
    path: '/graphql',
    headers: { Authorization: `Bearer ${token}`, Accept: 'application/json' },
    body: JSON.stringify({ query }),
  })
  return text
}

async function makeKey(wire: Wire, token: string): Promise<string> {
  const made =
    'mutation { createApiKey(input: { name: "Till", scopes: [PAY] }) ' +
    '{ ... on IssuedApiKey { apiKey { id } } } }'
  const text = await graphql(wire, token, made)
  const id = /"id":"([^"]+)"/.exec(text)?.[1]
  if (!id) throw new Error(`No key was made: ${text}`)
  return id
}

/** @returns whether it was done; a turn that comes too early is refused by the limit of the merchant */
async function regenerate(wire: Wire, token: string, id: string): Promise<boolean> {
  const text = await graphql(wire, token, `mutation { regenerateApiKey(id: "${id}") { __typename } }`)
  if (text.includes('IssuedApiKey')) return true
  if (text.includes('RateLimitedError')) return false
  throw new Error(`Not regenerated: ${text}`)
}
