import { startChild } from './child.ts'
import type { BenchFixture } from './fixture.ts'
import { load, type Request } from './load.ts'
import type { OperatorKind } from './processes/product.ts'
import type { BenchEntry, Goal, Section, Workload } from './rounds.ts'
import { startProduct } from './product.ts'

/** Merchants that collect. */
const merchantsCount = 200

/** How many clients at once, and what the service must reach with the operator and up to the commit alone. */
const loads: readonly { clients: number; whole?: Goal; committed: Goal }[] = [
  { clients: 32, whole: { ratioMin: 0.5 }, committed: { ratioMin: 1.5, cpuMax: 0.8 } },
  { clients: 128, committed: { ratioMin: 1.5 } },
  { clients: 1, committed: { ratioMin: 0.7 } },
]

/** `POST /pay` against one statement behind a bare server. */
export const collect: Workload = async (fixture) => {
  const product = await startProduct(fixture, merchantsCount)
  const limit = await startChild<{ port: number }>('collect-limit.ts', { databaseUrl: fixture.url })
  let sent = 0
  const payment = (who: (merchant: (typeof product.merchants)[number]) => Record<string, string>) => () => {
    sent += 1
    const merchant = product.merchants[sent % product.merchants.length]
    return {
      method: 'POST',
      path: '/merchant/api/pay',
      headers: merchant ? who(merchant) : {},
      // Customer 11 of the sandbox never answers: nothing settles while others are measured.
      body: JSON.stringify({
        amount: 5_000,
        customer_phone: '70110000',
        payment_method: sent % 2 ? 'OperatorC' : 'OperatorA',
        reference: `bench-${process.pid}-${sent}`,
      }),
    } satisfies Request
  }

  const ask = (clients: number) => (port: number, next: () => Request, seconds: number) =>
    load({ port, connections: clients, seconds, status: 202, next })
  const contender = (name: string, clients: number, operator: OperatorKind, goal?: Goal): BenchEntry => ({
    name,
    processes: [product.pid],
    ...(goal && { goal }),
    async prepare() {
      await clearWork(fixture)
      await product.useOperator(operator)
    },
    async measure(seconds) {
      const next = payment(({ token }) => ({ Authorization: `Bearer ${token}` }))
      const measured = await ask(clients)(product.port, next, seconds)
      return measured
    },
  })
  const sections = loads.map(
    ({ clients, whole, committed }): Section => ({
      title: `collect, ${clients === 1 ? 'one client' : `${clients} clients`}`,
      unit: 'requests/s',
      entries: [
        {
          name: 'limit: one statement',
          processes: [limit.pid],
          prepare: () => clearWork(fixture),
          async measure(seconds) {
            const next = payment(({ merchantId }) => ({ 'X-Merchant': String(merchantId) }))
            return ask(clients)(limit.ready.port, next, seconds)
          },
        },
        contender('with the operator', clients, 'simulator', whole),
        contender('without: operator in the process', clients, 'accepts'),
        contender('without: to the commit alone', clients, 'absent', committed),
      ],
    }),
  )
  return {
    sections,
    notes: [
      'limit: bare node:http and pg, one named statement that writes a payment and its outbox row; no token.',
      'with the operator: POST /pay with its token, its commit, and the operator over HTTP, noted.',
      'The processor time of the simulator is not counted; `life` counts it, and goes on to the settlement.',
      'operator in the process: a driver accepts at once, and that is noted before the answer.',
      'to the commit alone: answered once the payment is durable; no operator is asked.',
      'Numbering the events belongs to the service: a turn ends when all are numbered.',
    ],
    async close() {
      await limit.close()
      await product.close()
    },
  }
}

/** Clears the open requests of earlier turns, so that they do not disturb the next. */
export async function clearWork(fixture: BenchFixture): Promise<void> {
  await fixture.owner.query(
    'UPDATE operator_request SET next_check_at = NULL WHERE next_check_at IS NOT NULL',
  )
}
