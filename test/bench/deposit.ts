import { startChild } from './child.ts'
import { clearWork } from './collect.ts'
import { load, type Request } from './load.ts'
import { startProduct } from './product.ts'
import type { BenchEntry, Goal, Section, Workload } from './rounds.ts'

const merchantsCount = 200
const clients = 32

/** `POST /deposit` against two statements and the same operator's answer behind a bare server. */
export const deposit: Workload = async (fixture) => {
  const product = await startProduct(fixture, merchantsCount)
  await fixture.owner.query(
    `INSERT INTO ledger_entry (merchant_id, origin, step, debit, credit, amount, created_at)
     SELECT id, 'funding:bench-' || id, 'fund', 'funding', 'available', 900000000000, now() FROM merchant`,
  )
  const { operatorsUrl } = product
  const limit = await startChild<{ port: number }>('deposit-limit.ts', {
    databaseUrl: fixture.url,
    operatorsUrl,
  })
  let sent = 0
  type Merchant = (typeof product.merchants)[number]
  const next =
    (merchants: readonly Merchant[], who: (merchant: Merchant) => Record<string, string>) => () => {
      sent += 1
      const merchant = merchants[sent % merchants.length]
      return {
        method: 'POST',
        path: '/merchant/api/deposit',
        headers: merchant ? who(merchant) : {},
        // Paid at once, by an operator that answers with the outcome.
        body: JSON.stringify({
          amount: 1_000,
          customer_phone: '70000001',
          payment_method: 'OperatorD',
          reference: `bench-${process.pid}-${sent}`,
        }),
      } satisfies Request
    }
  const section = (
    title: string,
    merchants: readonly Merchant[],
    connections: number,
    goal: Goal,
  ): Section => {
    const ask = (port: number, request: () => Request, seconds: number) =>
      load({ port, connections, seconds, status: 200, next: request })
    const ours: BenchEntry = {
      name: 'POST /deposit',
      processes: [product.pid],
      goal,
      prepare: () => clearWork(fixture),
      async measure(seconds) {
        const request = next(merchants, ({ token }) => ({ Authorization: `Bearer ${token}` }))
        const measured = await ask(product.port, request, seconds)
        return measured
      },
    }
    const bare: BenchEntry = {
      name: 'limit: reserve, ask, settle',
      processes: [limit.pid],
      prepare: () => clearWork(fixture),
      measure: (seconds) =>
        ask(
          limit.ready.port,
          next(merchants, ({ merchantId }) => ({ 'X-Merchant': String(merchantId) })),
          seconds,
        ),
    }
    return { title, unit: 'requests/s', entries: [bare, ours] }
  }
  const one = product.merchants.slice(0, 1)
  return {
    sections: [
      section(`deposit, ${clients} clients`, product.merchants, clients, { ratioMin: 0.7 }),
      section(`deposit, ${clients} clients of one merchant`, one, clients, { ratioMin: 0.7 }),
      section('deposit, one client', product.merchants, 1, { ratioMin: 0.7 }),
    ],
    notes: [
      'limit: bare node:http and pg: a named statement and commit before the operator, one after; no token.',
      'POST /deposit: token checked, money set aside, OperatorD asked over HTTP, settled.',
      'Both ask the same simulator; the processor time of its process is not counted.',
    ],
    async close() {
      await limit.close()
      await product.close()
      const { rows } = await fixture.owner.query('SELECT * FROM audit_ledger(true) LIMIT 5')
      if (rows.length > 0) throw new Error(`The ledger does not hold: ${JSON.stringify(rows)}`)
    },
  }
}
