import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Hono } from 'hono'
import type { HttpBindings } from '../request.ts'

/** Reads a file that pages load, after other files that it builds on. Its name changes with its content. */
function asset(file: string, type: string, ...before: string[]) {
  const read = (name: string) => readFileSync(join(import.meta.dirname, 'assets', name), 'utf8')
  const content = [...before, file].map(read).join('')
  const hash = createHash('sha256').update(content).digest('hex').slice(0, 12)
  return { path: `assets/${hash}-${file}`, content, type }
}

/** The files that pages load; `path` is from the top of the service, without a slash. */
export const assets = {
  style: asset('pages.css', 'text/css; charset=utf-8', 'house.css'),
  paymentLink: asset('payment-link.js', 'text/javascript; charset=utf-8'),
  people: asset('people.js', 'text/javascript; charset=utf-8'),
}

/**
 * Makes the routes of these files. The content under a name never changes, so browsers keep it for a year.
 */
export function assetRoutes(): Hono<HttpBindings> {
  const app = new Hono<HttpBindings>()
  for (const { path, content, type } of Object.values(assets)) {
    app.get(`/${path}`, (c) =>
      c.body(content, 200, {
        'Content-Type': type,
        'Cache-Control': 'public, max-age=31536000, immutable',
        'X-Content-Type-Options': 'nosniff',
      }),
    )
  }
  return app
}
