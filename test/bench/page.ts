import { mkdtempSync, writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startChild } from './child.ts'
import { load, openWire } from './load.ts'
import type { PageLimitOptions } from './processes/page-limit.ts'
import { startProduct } from './product.ts'
import type { BenchEntry, Section, Workload } from './rounds.ts'

/** How many readers at once. */
const loads = [32, 1]
/** More than look at the same moment: each reader reads another one's. */
const manyLinks = 1_000

/** The page of a payment link, beside servers of a file of the same size. */
export const page: Workload = async (fixture) => {
  const product = await startProduct(fixture, 1)
  const [merchantId = 0] = product.merchants.map((merchant) => merchant.merchantId)
  await fixture.owner.query(
    `INSERT INTO payment_link (merchant_id, url_slug, title, description, amount, created_at, updated_at)
     SELECT $1, 'cours-' || n, 'Cours de couture, novembre', 'Six séances, tissu compris.', 5000, now(), now()
     FROM generate_series(1, $2) AS n`,
    [merchantId, manyLinks],
  )
  const folder = mkdtempSync(join(tmpdir(), 'merchant-payments-bench-'))
  const file = join(folder, 'index.html')
  const wire = await openWire(product.port)
  const { text } = await wire.send({ method: 'GET', path: '/l/cours-1' })
  wire.close()
  const html = text.slice(text.indexOf('\r\n\r\n') + 4)
  writeFileSync(file, html, 'latin1')
  const limit = await startChild<{ port: number }>('page-limit.ts', { file } satisfies PageLimitOptions)

  let asked = 0
  const section = (clients: number): Section => {
    const entry = (name: string, pid: number, port: number, path: () => string): BenchEntry => ({
      name,
      processes: [pid],
      measure: (seconds) =>
        load({
          port,
          connections: clients,
          seconds,
          status: 200,
          next: () => ({ method: 'GET', path: path() }),
        }),
    })
    const goal = { ratioMin: 0.5 }
    return {
      title: `page of a payment link, ${clients === 1 ? 'one reader' : `${clients} readers`}`,
      unit: 'requests/s',
      entries: [
        entry('limit: file from the disk', limit.pid, limit.ready.port, () => '/disk'),
        entry('file from memory', limit.pid, limit.ready.port, () => '/memory'),
        { ...entry('one link', product.pid, product.port, () => '/l/cours-1'), goal },
        entry(`${manyLinks} links`, product.pid, product.port, () => `/l/cours-${(asked++ % manyLinks) + 1}`),
      ],
    }
  }
  return {
    sections: loads.map(section),
    notes: [
      'limit: bare node:http that streams a file of the same size, its headers known, as sirv does.',
      `${Buffer.byteLength(html, 'latin1')} bytes each.`,
    ],
    async close() {
      await limit.close()
      await product.close()
      await rm(folder, { recursive: true })
    },
  }
}
