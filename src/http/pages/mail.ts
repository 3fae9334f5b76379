import { readdir, readFile, stat } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { Hono } from 'hono'
import { html } from 'hono/html'
import { addressMatcher, canonicalAddress, clientAddress } from '../../shared/ip-whitelist.ts'
import type { Services } from '../../context.ts'
import type { HttpBindings } from '../request.ts'
import { page, readerOf } from './layout.ts'

const words = {
  fr: { title: 'E-mails du bac à sable', none: "Aucun e-mail pour l'instant.", to: 'À' },
  en: { title: 'E-mails of the sandbox', none: 'No e-mails yet.', to: 'To' },
} as const

const isLoopback = addressMatcher(['127.0.0.0/8', '::1'])
/** The headers that proxies add to a request. */
const proxyHeaders = ['x-forwarded-for', 'x-real-ip', 'forwarded', 'via']

/**
 * Whether the client of a request may read the sandbox's e-mails. Every client may if the setting makes them
 * public. Otherwise the service must listen only on this machine, the client must be on this machine, and no
 * untrusted proxy may have forwarded the request, because its client may be anywhere. The `Host` must also
 * name this machine, because a foreign web page could have pointed another name at it (DNS rebinding).
 */
export function mayReadMail({ config, access }: Services, message: IncomingMessage): boolean {
  const { socket, headers } = message
  const { mail, host } = config
  if (mail.folder === null) return false
  if (mail.readers === 'public') return true
  if (!isThisMachine(host) || !isThisMachine(nameSent(message))) return false
  const peer = canonicalAddress(socket.remoteAddress ?? '')
  if (!access.isTrustedProxy(peer) && proxyHeaders.some((name) => headers[name] !== undefined)) return false
  return isLoopback(clientAddress(socket.remoteAddress, headers['x-forwarded-for'], access.isTrustedProxy))
}

function isThisMachine(host: string): boolean {
  return host === 'localhost' || isLoopback(host)
}

/**
 * Returns the host of the `Host` header as the client sent it, without its port: `server.ts` replaces the
 * header.
 */
function nameSent({ rawHeaders }: IncomingMessage): string {
  const index = rawHeaders.findIndex((name, at) => at % 2 === 0 && name.toLowerCase() === 'host')
  const url = URL.parse(`http://${rawHeaders[index + 1] ?? ''}`)
  return url?.hostname.replaceAll(/[[\]]/g, '') ?? ''
}

/**
 * Makes the page of the e-mails that a sandbox without a mail server keeps, the newest first; 404 for a
 * client that may not read them.
 */
export function mailPage(services: Services, folder: string): Hono<HttpBindings> {
  const app = new Hono<HttpBindings>()
  app.get('/mail', async (c) => {
    if (!mayReadMail(services, c.env.incoming)) return c.notFound()
    const reader = readerOf(services.config.mode, c.req.url, c.req.header('accept-language'))
    const say = words[reader.language]
    const emails = await readEmails(folder)
    const shown = emails.map(
      ({ to, subject, text }) => html`<article>
<p>${say.to}: ${to}</p>
<h2>${subject}</h2>
<pre>${linked(text)}</pre>
</article>`,
    )
    c.header('Cache-Control', 'no-store')
    return c.html(page(reader, say.title, html`${shown.length > 0 ? shown : say.none}`))
  })
  return app
}

interface ShownEmail {
  to: string
  subject: string
  text: string
}

const emailsMax = 50

async function readEmails(folder: string): Promise<ShownEmail[]> {
  const names = await readdir(folder).catch(() => [])
  const found = await Promise.all(
    names
      .filter((name) => name.endsWith('.eml'))
      .map(async (name) => ({ path: join(folder, name), at: (await stat(join(folder, name))).mtimeMs })),
  )
  const newest = found.toSorted((a, b) => b.at - a.at).slice(0, emailsMax)
  return Promise.all(newest.map(async ({ path }) => readEmail(await readFile(path, 'latin1'))))
}

/** Reads an e-mail of the service: its text is quoted-printable, and its headers may be. */
export function readEmail(eml: string): ShownEmail {
  const [head = '', ...body] = eml.split(/\r?\n\r?\n/)
  const headers = head.replaceAll(/\r?\n[ \t]+/g, ' ')
  const header = (name: string) => decodeWords(new RegExp(`^${name}: (.*)$`, 'im').exec(headers)?.[1] ?? '')
  const text = decodeQuoted(body.join('\n\n').replaceAll(/=\r?\n/g, ''))
  return { to: header('To'), subject: header('Subject'), text }
}

/**
 * Decodes the words of a header (RFC 2047: `=?UTF-8?Q?…?=`), and joins the parts into which a word was cut.
 */
function decodeWords(text: string): string {
  return text
    .replaceAll(/\?=\s+=\?UTF-8\?Q\?/gi, '')
    .replaceAll(/=\?UTF-8\?Q\?(.*?)\?=/gi, (_all, word: string) => decodeQuoted(word.replaceAll('_', ' ')))
    .replaceAll(/=\?UTF-8\?B\?(.*?)\?=/gi, (_all, word: string) => Buffer.from(word, 'base64').toString())
}

function decodeQuoted(text: string): string {
  const bytes = text.replaceAll(/=([0-9A-F]{2})/gi, (_all, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  )
  return Buffer.from(bytes, 'latin1').toString()
}

/** Turns the addresses in a text into links. */
function linked(text: string) {
  return text
    .split(/(https?:\/\/\S+)/)
    .map((part, index) => (index % 2 === 1 ? html`<a href="${part}">${part}</a>` : part))
}
