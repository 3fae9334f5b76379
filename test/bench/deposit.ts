import { clearWork, moneyRequests, named } from './collect.ts'
import { bearer, compare, requests } from './compare.ts'
import type { Section } from './rounds.ts'

const clients = 32
/** Paid at once, by an operator that answers with the outcome. */
const body = { amount: 1_000, customer_phone: '70000001', payment_method: 'OperatorD' }

/** `POST /deposit` against two statements and the same operator's answer behind a bare server. */
export const deposit = compare({ merchants: 200, books: 'funded' }, async ({ fixture, product, start }) => {
  const limit = await start({ workload: 'deposit' })
  const prepare = () => clearWork(fixture)
  const section = (title: string, merchants: typeof product.merchants, connections: number): Section => {
    const next = moneyRequests('/merchant/api/deposit', merchants, () => body)
    const asked = { connections, status: 200 }
    const more = { prepare, goal: { ratioMin: 0.7 } }
    return {
      title,
      unit: 'requests/s',
      entries: [
        requests('limit: reserve, ask, settle', limit, { ...asked, next: next(named) }, { prepare }),
        requests('POST /deposit', product, { ...asked, next: next(bearer) }, more),
      ],
    }
  }
  return {
    sections: [
      section(`deposit, ${clients} clients`, product.merchants, clients),
      section(`deposit, ${clients} clients of one merchant`, product.merchants.slice(0, 1), clients),
      section('deposit, one client', product.merchants, 1),
    ],
    notes: [
      'limit: bare node:http and pg: a named statement and commit before the operator, one after; no token.',
      'POST /deposit: token checked, money set aside, OperatorD asked over HTTP, settled.',
      'Both ask the same simulator; the processor time of its process is not counted.',
    ],
  }
})
