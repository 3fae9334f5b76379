import { setTimeout as sleep } from 'node:timers/promises'
import { runProgram } from '../kit/command-line.ts'
import { openWire, quantile, type Wire } from './load.ts'
import { type Product, withProduct } from './product.ts'

// A program: how long the payments of one merchant take, alone and beside 100 merchants who each regenerate
// an API key once a second, which is as often as the limit allows. Alone and beside take turns.
//   npm run access-changes

const othersCount = 100
const rounds = 3
const payments = 150
const everyMs = 1_000
const ratioMax = 1.5

await runProgram(() => withProduct(othersCount + 1, compareLoads))

/** @returns the exit code */
async function compareLoads(product: Product): Promise<number> {
  const wires = await Promise.all(Array.from({ length: 9 }, () => openWire(product.port)))
  try {
    const [payer, ...changers] = wires as [Wire, ...Wire[]]
    const [victim, ...others] = product.merchants
    const keys: { token: string; id: string }[] = []
    for (const { token } of others) keys.push({ token, id: await makeKey(payer, token) })

    const changes = { taken: [] as number[], payments: [] as number[], ratios: [] as number[] }
    const writes: typeof changes = { taken: [], payments: [], ratios: [] }
    const alone: number[] = []
    const beside = async (load: typeof changes, act: Act, one: readonly number[]) => {
      const end = new AbortController()
      const acting = keepActing(changers, keys, act, load.taken, end.signal)
      const other = await pay(payer, victim?.token ?? '')
      end.abort()
      await acting
      load.payments.push(...other)
      load.ratios.push(quantile(other, 0.5) / quantile(one, 0.5))
    }
    await pay(payer, victim?.token ?? '')
    for (let round = 0; round < rounds; round += 1) {
      const one = await pay(payer, victim?.token ?? '')
      alone.push(...one)
      await beside(changes, regenerate, one)
      await beside(writes, addBeneficiary, one)
    }
    const told = (what: string, load: typeof changes) =>
      `beside ${load.taken.length} ${what} (each ${times(load.taken)}): ${times(load.payments)}, ` +
      `ratio to alone ${quantile(load.ratios, 0.5).toFixed(2)}\n`
    const ratio = quantile(changes.ratios, 0.5) / quantile(writes.ratios, 0.5)
    const lines = [
      `a payment alone: ${times(alone)}\n`,
      told('regenerated keys', changes),
      told('new beneficiaries', writes),
      `regenerated keys compared with new beneficiaries: ${ratio.toFixed(2)} (at most ${ratioMax})\n`,
    ]
    process.stdout.write(lines.join(''))
    return ratio <= ratioMax ? 0 : 1
  } finally {
    for (const wire of wires) wire.close()
  }
}

type Act = (wire: Wire, token: string, id: string) => Promise<boolean>

/** Lets every merchant act once a second, and records the time of each act that was not refused. */
async function keepActing(
  wires: readonly Wire[],
  keys: readonly { token: string; id: string }[],
  act: Act,
  taken: number[],
  signal: AbortSignal,
): Promise<void> {
  const begun = performance.now()
  for (let turn = 0; !signal.aborted; turn += 1) {
    await Promise.all(
      wires.map(async (wire, place) => {
        for (let at = place; at < keys.length && !signal.aborted; at += wires.length) {
          const { token, id } = keys[at] ?? { token: '', id: '' }
          const sent = performance.now()
          if (await act(wire, token, id)) taken.push(performance.now() - sent)
        }
      }),
    )
    await sleep(Math.max(0, begun + (turn + 1) * everyMs - performance.now()))
  }
}

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

async function addBeneficiary(wire: Wire, token: string): Promise<boolean> {
  const input = '{ name: "Awa", account: "70000001", paymentMethod: OperatorA }'
  const text = await graphql(wire, token, `mutation { createBeneficiary(input: ${input}) { __typename } }`)
  if (!text.includes('"Beneficiary"')) throw new Error(`Not added: ${text}`)
  return true
}
