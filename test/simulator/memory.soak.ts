import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, test } from 'vitest'
import { SimulatorClock } from '../../src/simulator/clock.ts'
import { SimulatorEngine } from '../../src/simulator/engine.ts'
import { JournalFile } from '../../src/simulator/journal.ts'
import { noticesOf } from '../../src/simulator/notices.ts'
import { Rules } from '../../src/simulator/rules.ts'
import { Store } from '../../src/simulator/store.ts'

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

/** The least of ten looks: what ends its work late on a busy machine holds memory until then. */
async function usedMb(): Promise<number> {
  const looks: number[] = []
  for (let look = 0; look < 10; look += 1) {
    await sleep(50)
    collectGarbage()
    const { heapUsed, arrayBuffers } = process.memoryUsage()
    looks.push((heapUsed + arrayBuffers) / 2 ** 20)
  }
  return Math.min(...looks)
}

// With every operation and every entry in memory this was 28 MB.
test('20,000 payments take less than 5 MB, and all of them are found', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'simulator-'))
  const clock = new SimulatorClock(() => {})
  const store = new Store()
  const fail = (error: unknown) => expect(error).toBeUndefined()
  const journal = new JournalFile(join(folder, 'operators.jsonl'), fail)
  store.keepIn(journal)
  journal.replay((changes, place) => store.play(changes, place))
  const engine = new SimulatorEngine(store, clock, 'seed', new Rules('seed'), (operation, at) =>
    noticesOf(operation, at, 'http://127.0.0.1'),
  )
  clock.start(0)
  engine.openBooks()
  const pay = async (from: number, to: number) => {
    for (let n = from; n < to; n += 1) {
      const operation = engine.open({
        operator: 'a',
        kind: 'collect',
        mode: 'prompt',
        correlationId: `11111111-1111-4111-8111-${String(n).padStart(12, '0')}`,
        clientReference: `R-${n}`,
        msisdn: '+22370000001',
        amount: 5_000n,
        description: 'Commande 1042',
        callbackUrl: 'http://127.0.0.1/callback',
      })
      engine.confirm(operation)
      const note = store.note(`callback:${operation.id}:completed`)
      if (note) store.commit([{ note: { ...note, attempts: 1, dueAt: null } }])
      if (n % 500 === 0) await nextTurn()
    }
    await store.written()
  }
  try {
    await pay(0, 2_000)
    const before = await usedMb()
    await pay(2_000, 22_000)
    expect((await usedMb()) - before).toBeLessThan(5)
    expect(store.pendingCount).toBe(0)
    for (let n = 0; n < 22_000; n += 997) {
      const [operation, ...others] = store.withReference('a', `R-${n}`)
      expect([operation?.state, others]).toEqual(['completed', []])
      expect(store.named('a', operation?.serverCorrelationId ?? '')).toEqual(operation)
    }
  } finally {
    clock.stop()
    store.close()
    await rm(folder, { recursive: true, force: true })
  }
})
