import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { extname, join } from 'node:path'
import { type Context, Hono } from 'hono'
import { html } from 'hono/html'
import type { Config } from '../../config/config.ts'
import type { OperatorFaces } from '../../config/operator-faces.ts'
import { hasSessionCookie, type HttpBindings } from '../request.ts'
import { type HtmlPart, page, readerOf } from './layout.ts'

/** The folder into which `npm run build` writes the dashboard. */
const builtFolder = join(import.meta.dirname, '../../dashboard/built')

/** The page may load the files of the dashboard, and call GraphQL of its own origin; nothing else. */
const policy =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; " +
  "font-src 'none'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

const types: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.webp': 'image/webp',
}

type Body = Uint8Array<ArrayBuffer>

/** A file of the dashboard, as it is and as the build compressed it. */
interface BuiltFile {
  type: string
  identity: Body
  br: Body
  gzip: Body
}

/** The dashboard in memory: the page of every path, and the files that it loads, by their names. */
interface Built {
  page: string
  files: ReadonlyMap<string, BuiltFile>
}

/** The facts of the service that the page of the dashboard states. */
interface DashboardFacts {
  mode: Config['mode']
  simulatorUrl: string | null
  faces: OperatorFaces
}

/**
 * Makes the routes of the dashboard. `/app` and each path below it answer with the same page, which shows the
 * screen of the path. `/app/assets` holds the files of the page: a browser keeps a file for a year, because
 * its name changes with its content. Without a build, each path explains how to make one.
 */
export function dashboardRoutes(
  { mode, simulatorUrl, faces }: DashboardFacts,
  folder: string = builtFolder,
): Hono<HttpBindings> {
  const app = new Hono<HttpBindings>()
  const built = readBuilt(folder)
  if (!built)
    return app.get('/app/*', (c) => c.html(missingPage(c, mode), 503, { 'Cache-Control': 'no-store' }))
  const labels = JSON.stringify(Object.entries(faces).map(([operator, { label }]) => [operator, label]))
  const text = built.page
    .replace('%mode%', mode)
    .replace('%simulator%', simulatorUrl ?? '')
    .replace('%operators%', encodeURIComponent(labels))
  app.get('/app/assets/*', (c) => {
    const file = built.files.get(c.req.path.slice('/app/assets/'.length))
    return file ? sendFile(c, file) : c.notFound()
  })
  app.get('/app/*', (c) => {
    // A last part such as `robots.txt` names a file; a screen has no such path.
    if (/\.[a-z]\w*$/i.test(c.req.path)) return c.notFound()
    // The page names its files from its own folder, and the service does not know its prefix at a proxy.
    const content = text
      .replaceAll('"./', `"${wayToFolder(c.req.path)}`)
      .replace('%session%', hasSessionCookie(c.req.header()) ? 'kept' : 'none')
    return c.html(content, 200, {
      'Content-Security-Policy': policy,
      'Content-Length': String(Buffer.byteLength(content)),
      'Cache-Control': 'no-store',
    })
  })
  return app
}

/** Reads the whole build into memory: a later build changes nothing for the visitors of this process. */
function readBuilt(folder: string): Built | null {
  const [index, assets] = [join(folder, 'index.html'), join(folder, 'assets')]
  if (!existsSync(index) || !existsSync(assets)) return null
  const read = (name: string) => new Uint8Array(readFileSync(join(assets, name)))
  const names = readdirSync(assets).filter((name) => !/\.(?:br|gz)$/.test(name))
  const files = names.map((name) => {
    const type = types[extname(name)] ?? 'application/octet-stream'
    return [name, { type, identity: read(name), br: read(`${name}.br`), gzip: read(`${name}.gz`) }] as const
  })
  return { page: readFileSync(index, 'utf8'), files: new Map(files) }
}

/** The relative path from a path of the dashboard to its folder `/app/`. */
function wayToFolder(path: string): string {
  const depth = path.slice('/app'.length).split('/').length - 1
  if (depth === 0) return 'app/'
  return depth === 1 ? './' : '../'.repeat(depth - 1)
}

function sendFile(c: Context<HttpBindings>, file: BuiltFile) {
  const headers = {
    'Content-Type': file.type,
    'Cache-Control': 'public, max-age=31536000, immutable',
    Vary: 'Accept-Encoding',
  }
  const accepted = c.req.header('accept-encoding') ?? ''
  const encoding = (['br', 'gzip'] as const).find((name) => accepts(accepted, name))
  const body = file[encoding ?? 'identity']
  // Without its length here, the answer to HEAD would have none.
  return c.body(body, 200, {
    ...headers,
    'Content-Length': String(body.length),
    ...(encoding && { 'Content-Encoding': encoding }),
  })
}

/** Whether `Accept-Encoding` names an encoding, without refusing it by the weight 0. */
function accepts(header: string, encoding: string): boolean {
  return header.split(',').some((part) => {
    const [name = '', weight = ''] = part.split(';')
    return name.trim().toLowerCase() === encoding && !/^\s*q\s*=\s*0(?:\.0*)?\s*$/i.test(weight)
  })
}

function missingPage(c: Context<HttpBindings>, mode: Config['mode']): HtmlPart {
  const reader = readerOf(mode, c.req.url, c.req.header('accept-language'))
  const { title, text } = words[reader.language]
  const top = '../'.repeat(c.req.path.split('/').length - 2)
  return page(reader, title, html`<p>${text}</p><pre><code>npm run build</code></pre>`, { top })
}

const words = {
  fr: {
    title: 'Tableau de bord indisponible',
    text: 'Les fichiers du tableau de bord manquent. Lancez cette commande, puis redémarrez le service :',
  },
  en: {
    title: 'The dashboard is not available',
    text: 'The files of the dashboard are missing. Run this command, then start the service again:',
  },
} as const
