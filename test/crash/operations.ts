import { setTimeout as sleep } from 'node:timers/promises'
import { pick } from './plan.ts'
import {
  checkPayment,
  type WorkloadClient,
  collect,
  collectAgain,
  collectTwice,
  collectUnderKey,
  newOrder,
  type WorkloadOperation,
  readBalance,
  readTransaction,
} from './workload.ts'
import { inBulk } from './workload-bulk.ts'
import { byLink } from './workload-links.ts'
import { moneyOut } from './workload-out.ts'

/** The operations of the clients, by weight. A new kind of money is a row here and one in `invariants.ts`. */
const operations: readonly WorkloadOperation[] = [
  { name: 'collect', weight: 70, run: (client) => collect(client, newOrder(client)) },
  { name: 'collect twice at once', weight: 6, run: collectTwice },
  { name: 'collect again', weight: 6, run: collectAgain },
  { name: 'collect under a key', weight: 8, run: collectUnderKey },
  { name: 'read a transaction', weight: 8, run: readTransaction },
  { name: 'check a payment', weight: 8, run: checkPayment },
  { name: 'read the balance', weight: 2, run: readBalance },
  ...moneyOut,
  ...inBulk,
  ...byLink,
]

/** The pause of a client after each answer: the clients act like people, not like a benchmark. */
const pauseMs = 60

/** Runs operations until the signal ends them. @param serving resolves while the service can be asked */
export async function work(
  client: WorkloadClient,
  serving: () => Promise<void>,
  stop: AbortSignal,
): Promise<void> {
  const rows = operations.map((value) => ({ value, weight: value.weight }))
  while (!stop.aborted) {
    await serving()
    if (stop.aborted) return
    await pick(client.random, rows).run(client)
    await sleep(pauseMs * client.random())
  }
}
