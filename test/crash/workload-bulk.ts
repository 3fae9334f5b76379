import { setTimeout as sleep } from 'node:timers/promises'
import { providers } from '../../src/shared/providers.ts'
import { pick } from './plan.ts'
import {
  type WorkloadAnswer,
  ask,
  type BatchAcknowledgement,
  type WorkloadClient,
  describe,
  isTrouble,
  type WorkloadOperation,
} from './workload.ts'
import { payees } from './workload-out.ts'

/** The operations of clients with batches, by weight. */
export const inBulk: readonly WorkloadOperation[] = [
  { name: 'batch', weight: 12, run: async (client) => void (await payBatch(client)) },
  { name: 'cancel a batch', weight: 4, run: cancelBatch },
  { name: 'cancel a batch under way', weight: 4, run: cancelUnderWay },
]

const triesMax = 3
const sizes = [
  { value: 3, weight: 60 },
  { value: 20, weight: 35 },
  { value: 200, weight: 3 },
]

/** @returns the batch that was processed */
async function payBatch(
  client: WorkloadClient,
  size = pick(client.random, sizes),
): Promise<BatchAcknowledgement | null> {
  const { random, record, merchant } = client
  const key = client.newReference()
  const recipients = people(client, size)
  const made = await askUntilAnswered(client, '', { recipients }, `make ${key}`)
  const id: unknown = made?.body.data?.id
  if (made?.status !== 201 || typeof id !== 'number') return null
  const batch = { id, merchantId: merchant.id, count: recipients.length, began: false, cancelled: false }
  record.batches.push(batch)
  // The same request again makes no second batch.
  const again = await askUntilAnswered(client, '', { recipients }, `make ${key}`)
  if (again?.status === 201 && again.body.data.id !== id)
    record.complaints.push(describe(`${key} twice`, again))
  if (random() < 0.3) {
    const added = await askUntilAnswered(
      client,
      `/${id}/recipients`,
      { recipients: people(client, 2) },
      `add ${key}`,
    )
    if (added?.status === 200) batch.count += 2
  }
  const begun = await askUntilAnswered(client, `/${id}/process`, {}, `process ${key}`)
  if (begun?.status !== 202) return null
  batch.began = true
  return batch
}

/** Cancels while most recipients wait for their turn. */
async function cancelUnderWay(client: WorkloadClient): Promise<void> {
  const batch = await payBatch(client, 60)
  if (batch) await cancel(client, batch)
}

async function cancelBatch(client: WorkloadClient): Promise<void> {
  const own = client.record.batches.filter(({ merchantId }) => merchantId === client.merchant.id).slice(-20)
  const batch = own[Math.floor(client.random() * own.length)]
  if (batch) await cancel(client, batch)
}

async function cancel(client: WorkloadClient, batch: BatchAcknowledgement): Promise<void> {
  const answer = await askUntilAnswered(client, `/${batch.id}/cancel`, {}, client.newReference())
  if (answer?.status === 200) batch.cancelled = true
}

function people({ random }: WorkloadClient, count: number): object[] {
  return Array.from({ length: count }, (_, n) => ({
    name: `Awa ${n}`,
    account: `+22370${pick(
      random,
      payees.map(({ value, weight }) => ({ value, weight })),
    )}${String(n % 100).padStart(2, '0')}`,
    amount: 1_000 + Math.floor(random() * 500),
    payment_method: providers[n % providers.length],
  }))
}

/** Sends a request, and again under the same key until an answer comes. */
async function askUntilAnswered(
  client: WorkloadClient,
  path: string,
  body: object,
  key: string,
): Promise<WorkloadAnswer | null> {
  for (let count = 1; count <= triesMax; count += 1) {
    const answer = await ask(client, 'POST', `/bulk/batches${path}`, body, { 'idempotency-key': key })
    if (answer && !isTrouble(answer)) {
      if (![200, 201, 202, 400, 409].includes(answer.status))
        client.record.complaints.push(describe(`POST /bulk/batches${path}`, answer))
      return answer
    }
    await sleep(50 + 200 * client.random())
  }
  return null
}
