import { bearer, compare, requests } from './compare.ts'
import type { BenchFixture } from './fixture.ts'
import type { Request } from './load.ts'
import type { OperatorKind } from './processes/product.ts'
import type { Goal, Section } from './rounds.ts'

/** How many clients at once, and what the service must reach with the operator and up to the commit alone. */
const loads: readonly { clients: number; whole?: Goal; committed: Goal }[] = [
  { clients: 32, whole: { ratioMin: 0.5 }, committed: { ratioMin: 1.5, cpuMax: 0.8 } },
  { clients: 128, committed: { ratioMin: 1.5 } },
  { clients: 1, committed: { ratioMin: 0.7 } },
]

/** `POST /pay` against one statement behind a bare server. */
export const collect = compare({ merchants: 200 }, async ({ fixture, product, start }) => {
  const limit = await start({ workload: 'collect' })
  const next = moneyRequests('/merchant/api/pay', product.merchants, (sent) => ({
    amount: 5_000,
    // Customer 11 of the sandbox never answers: nothing settles while others are measured.
    customer_phone: '70110000',
    payment_method: sent % 2 ? 'OperatorC' : 'OperatorA',
  }))
  const section = ({ clients, whole, committed }: (typeof loads)[number]): Section => {
    const asked = { connections: clients, status: 202 }
    const contender = (name: string, operator: OperatorKind, goal?: Goal) => {
      const prepare = async () => {
        await clearWork(fixture)
        await product.useOperator(operator)
      }
      return requests(name, product, { ...asked, next: next(bearer) }, { goal, prepare })
    }
    const prepare = () => clearWork(fixture)
    return {
      title: `collect, ${clients === 1 ? 'one client' : `${clients} clients`}`,
      unit: 'requests/s',
      entries: [
        requests('limit: one statement', limit, { ...asked, next: next(named) }, { prepare }),
        contender('with the operator', 'simulator', whole),
        contender('without: operator in the process', 'accepts'),
        contender('without: to the commit alone', 'absent', committed),
      ],
    }
  }
  return {
    sections: loads.map(section),
    notes: [
      'limit: bare node:http and pg, one named statement that writes a payment and its outbox row; no token.',
      'with the operator: POST /pay with its token, its commit, and the operator over HTTP, noted.',
      'The processor time of the simulator is not counted; `life` counts it, and goes on to the settlement.',
      'operator in the process: a driver accepts at once, and that is noted before the answer.',
      'to the commit alone: answered once the payment is durable; no operator is asked.',
      'Numbering the events belongs to the service: a turn ends when all are numbered.',
    ],
  }
})

interface Merchant {
  merchantId: number
  token: string
}

/** The limits know no tokens. */
export function named({ merchantId }: Merchant): Record<string, string> {
  return { 'X-Merchant': String(merchantId) }
}

let sent = 0

/** Payments of merchants in turn, with names that are never used twice. */
export function moneyRequests(path: string, merchants: readonly Merchant[], body: (sent: number) => object) {
  return (who: (merchant: Merchant) => Record<string, string>) => (): Request => {
    sent += 1
    const merchant = merchants[sent % merchants.length]
    const reference = `bench-${process.pid}-${sent}`
    return {
      method: 'POST',
      path,
      headers: merchant ? who(merchant) : {},
      body: JSON.stringify({ ...body(sent), reference }),
    }
  }
}

/** Clears the open requests of earlier turns, so that they do not disturb the next. */
export async function clearWork({ owner }: BenchFixture): Promise<void> {
  await owner.query('UPDATE operator_request SET next_check_at = NULL WHERE next_check_at IS NOT NULL')
}
