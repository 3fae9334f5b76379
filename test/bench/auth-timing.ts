import { randomInt } from 'node:crypto'
import { parseArgs } from 'node:util'
import { makeApiKey, makeApiSecret } from '../../src/identity/secrets/secrets.ts'
import { runProgram, wholeNumber } from '../kit/command-line.ts'
import { openWire, quantile, type Wire } from './load.ts'
import { withProduct } from './product.ts'

// A program: whether the time of a refusal of `POST /auth` tells whether there is such an API key. A key that
// exists with a wrong secret and keys that do not are asked by turns, in an order drawn by lot, over one
// connection; then a rank test (Mann and Whitney) says whether the one takes longer than the other.
//   npm run auth-timing -- [--samples 10000]

const kinds = ['unknown key', 'wrong secret'] as const
type Kind = (typeof kinds)[number]

/** Fewer than the limit allows: its counts are forgotten after as many of each kind. */
const untilForgottenMax = 18
const warmUp = 1_000

await runProgram(async () => {
  const { values } = parseArgs({ options: { samples: { type: 'string', default: '10000' } } })
  const samples = wholeNumber('samples', values.samples)
  await withProduct(1, async ({ port }, { owner }) => {
    const wire = await openWire(port)
    const { rows } = await owner.query<{ key: string }>('SELECT key FROM api_key LIMIT 1')
    const known = rows[0]?.key ?? ''
    const forget = () => owner.query('TRUNCATE rate_limit, sign_in_wait')
    await measure(wire, known, warmUp, forget)
    report(await measure(wire, known, samples, forget))
    wire.close()
  })
  return 0
})

/** @returns the times of `samples` refusals of each kind, in microseconds */
async function measure(
  wire: Wire,
  known: string,
  samples: number,
  forget: () => Promise<unknown>,
): Promise<Record<Kind, number[]>> {
  const taken: Record<Kind, number[]> = { 'unknown key': [], 'wrong secret': [] }
  for (let pair = 0; pair < samples; pair += 1) {
    if (pair % untilForgottenMax === 0) await forget()
    for (const kind of randomInt(2) ? kinds : kinds.toReversed()) {
      const key = kind === 'unknown key' ? makeApiKey() : known
      const headers = { 'X-API-Key': key, 'X-API-Secret': makeApiSecret().reveal() }
      const sent = performance.now()
      const { status, text } = await wire.send({ method: 'POST', path: '/merchant/api/auth', headers })
      taken[kind].push((performance.now() - sent) * 1_000)
      if (status !== 401) throw new Error(`Answered ${status}: ${text}`)
    }
  }
  return taken
}

function report(taken: Record<Kind, number[]>): void {
  const say = (line: string) => process.stdout.write(`${line}\n`)
  for (const kind of kinds) {
    const [low, median, high] = [0.25, 0.5, 0.75].map(
      (share) => `${quantile(taken[kind], share).toFixed(0)} µs`,
    )
    say(`${kind}: median ${median}, quarters ${low} and ${high}, of ${taken[kind].length}`)
  }
  const { z, share } = rankTest(taken['unknown key'], taken['wrong secret'])
  say(`A wrong secret takes longer in ${(100 * share).toFixed(2)} % of all pairs; alike is 50.`)
  const verdict = Math.abs(z) > 3.29 ? 'they differ' : 'they do not differ'
  say(`Rank test: z = ${z.toFixed(2)}, ${verdict} (p < 0.001 beyond 3.29).`)
}

/**
 * The rank test of Mann and Whitney, in its normal approximation; two times are never quite the same.
 * @returns how many standard deviations the second list lies above the first, and the share of pairs in which
 *   it does
 */
function rankTest(first: readonly number[], second: readonly number[]): { z: number; share: number } {
  const all = [
    ...first.map((time) => ({ time, isSecond: false })),
    ...second.map((time) => ({ time, isSecond: true })),
  ]
  let ranks = 0
  for (const [place, { isSecond }] of all.toSorted((a, b) => a.time - b.time).entries())
    if (isSecond) ranks += place + 1
  const [n, m] = [first.length, second.length]
  const above = ranks - (m * (m + 1)) / 2
  const deviation = Math.sqrt((n * m * (n + m + 1)) / 12)
  return { z: (above - (n * m) / 2) / deviation, share: above / (n * m) }
}
