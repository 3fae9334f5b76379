import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { compare, requests } from './compare.ts'
import { openWire } from './load.ts'
import type { Section } from './rounds.ts'

/** How many readers at once. */
const loads = [32, 1]
/** More than look at the same moment: each reader reads another one's. */
const manyLinks = 1_000

/** The page of a payment link, beside servers of a file of the same size. */
export const page = compare({ merchants: 1 }, async ({ fixture, product, start }) => {
  await fixture.owner.query(
    `INSERT INTO payment_link (merchant_id, url_slug, title, description, amount, created_at, updated_at)
     SELECT $1, 'cours-' || n, 'Cours de couture, novembre', 'Six séances, tissu compris.', 5000, now(), now()
     FROM generate_series(1, $2) AS n`,
    [product.merchants[0]?.merchantId ?? 0, manyLinks],
  )
  const wire = await openWire(product.port)
  const { text } = await wire.send({ method: 'GET', path: '/l/cours-1' })
  wire.close()
  const html = text.slice(text.indexOf('\r\n\r\n') + 4)
  const file = join(product.dataDir, 'page-of-the-bench.html')
  writeFileSync(file, html, 'latin1')
  const limit = await start({ workload: 'page', file })

  let asked = 0
  const section = (connections: number): Section => {
    const get = (path: () => string) => ({
      connections,
      status: 200,
      next: () => ({ method: 'GET', path: path() }),
    })
    const one = get(() => '/l/cours-1')
    const many = get(() => `/l/cours-${(asked++ % manyLinks) + 1}`)
    return {
      title: `page of a payment link, ${connections === 1 ? 'one reader' : `${connections} readers`}`,
      unit: 'requests/s',
      entries: [
        requests(
          'limit: file from the disk',
          limit,
          get(() => '/disk'),
        ),
        requests(
          'file from memory',
          limit,
          get(() => '/memory'),
        ),
        requests('one link', product, one, { goal: { ratioMin: 0.5 } }),
        requests(`${manyLinks} links`, product, many),
      ],
    }
  }
  return {
    sections: loads.map(section),
    notes: [
      'limit: bare node:http that streams a file of the same size, its headers known, as sirv does.',
      `${Buffer.byteLength(html, 'latin1')} bytes each.`,
    ],
  }
})
