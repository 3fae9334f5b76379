import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { request } from 'undici'
import { afterAll, describe, expect, onTestFinished, test } from 'vitest'
import { passOverBounds } from '../../src/http/pass-over.ts'
import { limits } from '../../src/shared/limits.ts'
import { startTestApp } from '../kit/app.ts'
import { cannotRun, type MerchantLanguage, languages, openClients } from '../kit/languages.ts'
import { useBounds } from '../kit/use-bounds.ts'

// A client that is still writing a body that is too large reads 413 with its code, and never a broken pipe,
// with the clients that merchants have. `test/http/large-bodies.test.ts` has Node's own client.

// A starved client sends nothing for long.
useBounds(limits, { headersTimeoutMs: limits.recipientsTimeoutMs })
useBounds(passOverBounds, { silenceMs: 20 * passOverBounds.silenceMs })
const service = await startTestApp()
const shop = await service.merchant()
afterAll(() => service.close())

/** Each body is above the bound of its door, which is higher for GraphQL, where recipients arrive. */
const tries = [
  ['/merchant/api/pay', 2],
  ['/merchant/api/pay', 50],
  ['/graphql', 8],
] as const
const megabyte = 1_000_000

const programs: Readonly<Record<MerchantLanguage['name'], string>> = {
  Java: 'LargeBodies.java',
  PHP: 'large-bodies.php',
  Python: 'large-bodies.py',
}

/** The code of a refusal: in the envelope of REST, or in the error of GraphQL. */
function codeOf(body: ReturnType<typeof JSON.parse>): unknown {
  return body?.code ?? body?.errors?.[0]?.extensions?.code ?? body
}

describe.each(languages)('the clients of $name', (language) => {
  test.skipIf(cannotRun(language))('read 413 and its code while they write', async () => {
    const clients = await openClients(language)
    onTestFinished(() => clients.remove())
    const environment = { API: service.url, TOKEN: shop.token }
    const said: [string, string, number, number, unknown][] = await clients.run(
      programs[language.name],
      environment,
    )
    const answers = said.map(([name, path, megabytes, status, body]) => ({
      sent: `${megabytes} MB to ${path} with ${name}`,
      read: [status, codeOf(body)],
    }))
    expect(answers).toHaveLength(tries.length * 3)
    expect(answers).toEqual(answers.map(({ sent }) => ({ sent, read: [413, 'BODY_TOO_LARGE'] })))
  })
})

const headers = { 'Content-Type': 'application/json', Authorization: `Bearer ${shop.token}` }

type Send = (url: string, body: Buffer<ArrayBuffer>) => Promise<[status: number, body: unknown]>

async function viaFetch(url: string, body: Buffer<ArrayBuffer>): ReturnType<Send> {
  const answer = await fetch(url, { method: 'POST', headers, body })
  return [answer.status, await answer.json()]
}

/** curl reads the body from its standard input, and knows its length. */
const viaCurl =
  (...more: readonly string[]): Send =>
  async (url, body) => {
    const all = Object.entries(headers).flatMap(([name, value]) => ['--header', `${name}: ${value}`])
    const running = promisify(execFile)('curl', [
      '--silent',
      '--show-error',
      ...all,
      ...more,
      '--data-binary',
      '@-',
      '--write-out',
      '\n%{http_code}',
      url,
    ])
    running.child.stdin?.end(body)
    const [text = '', status] = (await running).stdout.split('\n')
    return [Number(status), JSON.parse(text)]
  }

const senders: Readonly<Record<string, Send>> = {
  fetch: viaFetch,
  'undici, close': async (url, body) => {
    const answer = await request(url, { method: 'POST', headers, body, reset: true })
    return [answer.statusCode, await answer.body.json()]
  },
  'curl, Expect': viaCurl('--header', 'Expect: 100-continue'),
  'curl, no Expect': viaCurl('--header', 'Expect:'),
  'curl, close': viaCurl('--header', 'Expect:', '--header', 'Connection: close'),
}

test.each(Object.entries(senders))('%s reads 413 and its code while it writes', async (_name, send) => {
  for (const [path, megabytes] of tries) {
    const [status, body] = await send(`${service.url}${path}`, Buffer.alloc(megabytes * megabyte, 'a'))
    expect([path, megabytes, status, codeOf(body)]).toEqual([path, megabytes, 413, 'BODY_TOO_LARGE'])
  }
})
