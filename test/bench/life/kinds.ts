import type { Wire } from '../load.ts'
import type { Watched } from './feed.ts'

/** A kind of payment, and how a client makes it. */
export interface Kind {
  /** Payments that one request makes. */
  size: number
  watched: Watched
  /** Sends the request. @returns the key that the subscriber sees at the end */
  begin(wire: Wire, token: string, name: string): Promise<string>
}

/** OperatorA calls back; OperatorC is polled. */
export type OperatorName = 'OperatorA' | 'OperatorC'

/** The customer pays at once (see docs/guide/test-numbers.md). */
const phone = '70000001'
/** Recipients of one batch. */
const batchSize = 50

export const kinds = {
  payment: (operator: OperatorName, amount = 5_000): Kind => ({
    size: 1,
    watched: changes('transactionChanged', 'SUCCESS'),
    async begin(wire, token, reference) {
      const body = { amount, customer_phone: phone, payment_method: operator, reference }
      await post(wire, token, '/pay', body)
      return reference
    },
  }),
  deposit: (operator: OperatorName): Kind => ({
    size: 1,
    watched: changes('transactionChanged', 'SUCCESS'),
    async begin(wire, token, reference) {
      const body = { amount: 1_000, customer_phone: phone, payment_method: operator, reference }
      await post(wire, token, '/deposit', body)
      return reference
    },
  }),
  payout: (operator: OperatorName): Kind => ({
    size: 1,
    watched: changes('payoutChanged', 'COMPLETED'),
    async begin(wire, token, reference) {
      const body = { amount: 1_000, destination_phone: phone, payment_method: operator, reference }
      await post(wire, token, '/payouts', body)
      return reference
    },
  }),
  recipient: (operator: OperatorName): Kind => ({
    size: batchSize,
    watched: {
      field: 'events',
      selection: 'type data',
      ended({ type, data }) {
        if (type !== 'BULK_PAY_DONE') return null
        const { batch_id: id, status } = data as { batch_id: number; status: string }
        if (status !== 'completed') throw new Error(`Batch ${id} ended as ${status}.`)
        return String(id)
      },
    },
    async begin(wire, token, title) {
      const recipient = { name: 'Awa', account: phone, amount: 1_000, payment_method: operator }
      const recipients = Array.from({ length: batchSize }, () => recipient)
      const made = await post(wire, token, '/bulk/batches', { title, recipients })
      const id = /"id":(\d+)/.exec(made)?.[1]
      if (id === undefined) throw new Error(`No batch in ${made}`)
      await post(wire, token, `/bulk/batches/${id}/process`, {})
      return id
    },
  }),
} as const

function changes(field: string, end: string): Watched {
  return {
    field,
    selection: 'reference status',
    ended({ reference, status }) {
      if (status === end) return String(reference)
      if (status === 'PENDING' || status === 'PROCESSING') return null
      throw new Error(`${String(reference)} ended as ${String(status)}.`)
    },
  }
}

async function post(wire: Wire, token: string, path: string, body: object): Promise<string> {
  const { status, text } = await wire.send({
    method: 'POST',
    path: `/merchant/api${path}`,
    headers: { Authorization: `Bearer ${token}` },
    body: JSON.stringify(body),
  })
  if (status >= 300) throw new Error(`POST ${path} answered ${text}`)
  return text
}
