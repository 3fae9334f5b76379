import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Hono } from 'hono'
import type { OperatorFaces } from '../../config/operator-faces.ts'
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
  icon: asset('icon.svg', 'image/svg+xml'),
  people: asset('people.js', 'text/javascript; charset=utf-8'),
}

/**
 * Makes the routes of these files, and of the logos of operators. The content under a name never changes, so
 * browsers keep it for a year.
 */
export function assetRoutes(faces: OperatorFaces): Hono<HttpBindings> {
  const app = new Hono<HttpBindings>()
  const logos = Object.values(faces).flatMap(({ logo }) => logo ?? [])
  for (const { path, content, type } of [...Object.values(assets), ...logos]) {
    app.get(`/${path}`, (c) =>
      c.body(content, 200, {
        'Content-Type': type,
        'Cache-Control': 'public, max-age=31536000, immutable',
        'X-Content-Type-Options': 'nosniff',
        // An SVG that is opened by itself is a document.
        'Content-Security-Policy': "default-src 'none'; style-src 'unsafe-inline'",
      }),
    )
  }
  return app
}
