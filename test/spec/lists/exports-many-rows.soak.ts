import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import pg from 'pg'
import { beforeAll, describe, expect, test, vi } from 'vitest'
import type { TestMerchant } from '../../kit/app.ts'
import { eventually } from '../../kit/eventually.ts'
import { openFixture } from '../../kit/fixture.ts'

const fixture = await openFixture()

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

describe('a table of 200,000 rows', () => {
  let big: TestMerchant
  beforeAll(async () => {
    big = await fixture.merchant()
    const { owner } = fixture.database
    // Rows without the events and requests that the triggers require.
    await owner.query('ALTER TABLE transaction DISABLE TRIGGER USER')
    for (let from = 1; from < rowCount; from += 5_000) {
      await owner.query(
        `INSERT INTO transaction (merchant_id, transaction_type, payment_method, customer_phone, amount,
           status, reference, request_data, evidence_source, settled_at, created_at)
         SELECT $1, 'balance_check', 'OperatorA', '', 0, 'success', 'bc_' || lpad(n::text, 32, '0'), '{}',
           'query', now(), now()
         FROM generate_series($2::int, $2 + 4999) n`,
        [big.merchantId, from],
      )
    }
    await owner.query('ALTER TABLE transaction ENABLE TRIGGER USER')
    // As PostgreSQL does by itself, a minute later.
    await owner.query('ANALYZE transaction')
  })
  const rowCount = 200_000

  /** The memory that this process, and so the service in it, holds. */
  function heldBytes(): number {
    collectGarbage()
    const { heapUsed, external } = process.memoryUsage()
    return heapUsed + external
  }

  /** Waits until no page is read any more. @returns the number of pages read by then */
  async function pagesUntilRest(): Promise<number> {
    let pages = 0
    const { query: original } = pg.Client.prototype as { query: (...given: unknown[]) => unknown }
    const spy = vi.spyOn(pg.Client.prototype, 'query').mockImplementation(function (
      this: pg.Client,
      ...given: unknown[]
    ) {
      const { text = '' } = given[0] as { text?: string }
      if (text.includes('"public"."transaction"')) pages += 1
      return Reflect.apply(original, this, given)
    })
    try {
      for (let seen = -1; seen !== pages; await sleep(500)) seen = pages
      return pages
    } finally {
      spy.mockRestore()
    }
  }

  /** Begins to read, and stops until it is resumed. */
  async function begin(): Promise<IncomingMessage> {
    const request = get(`${fixture.url}/merchant/api/exports/transactions.csv`, {
      headers: { Authorization: `Bearer ${big.token}` },
      agent: false,
    })
    const [response] = (await once(request, 'response')) as [IncomingMessage]
    response.pause()
    return response
  }

  test('waits for a slow reader in constant memory, and gives every row once', async () => {
    // The first export of a process loads its code, which stays in memory.
    const first = await begin()
    first.destroy()
    await pagesUntilRest()
    const before = heldBytes()
    const started = performance.now()
    const response = await begin()
    // A fraction of the time of the whole export; beside other tests it is slow.
    expect(performance.now() - started).toBeLessThan(2_000)
    const pages = await pagesUntilRest()
    // The sockets of the machine hold some megabytes, in its kernel.
    expect(pages).toBeLessThan((rowCount / 1_000) * 0.8)
    expect(heldBytes() - before).toBeLessThan(8 * 1_024 * 1_024)
    let bytes = 0
    let lines = 0
    const ids = new Set<string>()
    let rest = ''
    for await (const part of response.setEncoding('utf8')) {
      bytes += (part as string).length
      const read = (rest + (part as string)).split('\r\n')
      rest = read.pop() ?? ''
      lines += read.length
      for (const line of read) ids.add(line.slice(0, line.indexOf(',')))
    }
    expect([lines, ids.size]).toEqual([rowCount + 1, rowCount + 1])
    expect(bytes).toBeGreaterThan(20_000_000)
  })

  test('two run at a time; a third is 429, until one ends', async () => {
    const [first, second] = [await begin(), await begin()]
    const third = await begin()
    expect([third.statusCode, third.headers['retry-after']]).toEqual([429, '1'])
    third.resume()
    first.destroy()
    await eventually(async () => {
      const again = await begin()
      again.destroy()
      expect(again.statusCode).toBe(200)
    })
    second.destroy()
  })

  test('a failure in the middle breaks the connection: a part is never taken for the whole', async () => {
    // The exports before it may not have ended yet.
    const response = await eventually(async () => {
      const begun = await begin()
      if (begun.statusCode !== 200) throw new Error(`${begun.statusCode}`)
      return begun
    })
    await fixture.database.owner.query('REVOKE SELECT ON transaction FROM payments_merchant')
    try {
      await expect(response.resume().toArray()).rejects.toThrow(/aborted/)
    } finally {
      await fixture.database.owner.query('GRANT SELECT ON transaction TO payments_merchant')
    }
  })
})
