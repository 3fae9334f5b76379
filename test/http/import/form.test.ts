import { once } from 'node:events'
import { createServer, type IncomingMessage, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import fc from 'fast-check'
import { afterAll, describe, expect, test } from 'vitest'
import { readForm } from '../../../src/http/import/form.ts'
import { passOver } from '../../../src/http/pass-over.ts'
import { DomainError, refusals } from '../../../src/shared/errors.ts'
import { limits } from '../../../src/shared/limits.ts'

// A server that answers with the form it read, or with the refusal.
const server = createServer((message, response) => {
  void readForm(message)
    .then(
      ({ texts, file }) => ({
        status: 200,
        answer: { texts: Object.fromEntries(texts), file: file.toString('latin1') },
      }),
      (error: unknown) =>
        error instanceof DomainError
          ? { status: refusals[error.code].status, answer: { message: error.message } }
          : { status: 500, answer: { message: String(error) } },
    )
    .then(({ status, answer }) => {
      if (!message.complete) passOver(message)
      response.writeHead(status).end(JSON.stringify(answer))
    })
})
server.listen(0, '127.0.0.1')
await once(server, 'listening')
const { port } = server.address() as AddressInfo
afterAll(() => server.close())

interface Answer {
  status: number
  answer: { texts: Record<string, string>; file: string; message: string }
}
async function send(
  body: FormData | string | Uint8Array<ArrayBuffer>,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const response = await fetch(`http://127.0.0.1:${port}`, { method: 'POST', body, headers })
  return { status: response.status, answer: (await response.json()) as Answer['answer'] }
}
const form = (...fields: [string, string | Blob][]) => {
  const made = new FormData()
  for (const [name, value] of fields) made.append(name, value as string)
  return made
}
const table = new Blob(['nom;montant\r\n'])
const multipart = { 'Content-Type': 'multipart/form-data; boundary=b' }
const part = (name: string, value: string) =>
  `--b\r\nContent-Disposition: form-data; name="${name}"; filename="f"\r\n\r\n${value}\r\n`

test('a form may hold a file, and texts beside it', async () => {
  const sent = form(
    ['title', 'Août'],
    ['dry_run', ''],
    ['other', 'x'],
    ['picture', new Blob(['p'])],
    ['file', table],
  )
  expect(await send(sent)).toEqual({
    status: 200,
    answer: { texts: { title: 'Août', other: 'x' }, file: 'nom;montant\r\n' },
  })
})

test('a file may have 5 MiB, and not one byte more', async () => {
  const largest = 'a'.repeat(limits.recipientsBodyMaxBytes)
  expect((await send(form(['file', new Blob([largest])]))).answer.file).toBe(largest)
  expect((await send(form(['file', new Blob([largest, 'b'])]))).status).toBe(413)
})

test('a second file is refused where the two are too large together', async () => {
  const half = new Blob(['a'.repeat(limits.recipientsBodyMaxBytes / 2 + 10_000)])
  const { status, answer } = await send(form(['file', half], ['file', half]))
  expect([status, answer.message]).toEqual([400, expect.stringContaining('file occurs twice')])
})

describe('a body that is no such form is refused', () => {
  test.each<[string, FormData | string, Record<string, string>, number, string]>([
    ['JSON', '{}', { 'Content-Type': 'application/json' }, 415, 'Send the file in the field file of a form'],
    ['no type', '', {}, 415, 'Send the file in the field file of a form'],
    [
      'a form of letters',
      'file=x',
      { 'Content-Type': 'application/x-www-form-urlencoded' },
      415,
      'Send the file',
    ],
    ['packed', part('file', 'x'), { ...multipart, 'Content-Encoding': 'gzip' }, 415, 'Send the file'],
    [
      'no boundary',
      part('file', 'x'),
      { 'Content-Type': 'multipart/form-data; charset=utf-8' },
      400,
      'not a well-formed form',
    ],
    ['nothing', '', multipart, 400, 'not a well-formed form'],
    ['no end', part('file', 'x'), multipart, 400, 'not a well-formed form'],
    [
      'another boundary',
      `${part('file', 'x')}--b--`.replaceAll('--b', '--c'),
      multipart,
      400,
      'not a well-formed form',
    ],
    ['no file', form(['title', 'x']), {}, 400, 'file is required'],
    ['a text in its place', form(['file', 'nom;montant']), {}, 400, 'file is required'],
    ['two files', form(['file', table], ['file', table]), {}, 400, 'file occurs twice'],
    ['a text twice', form(['title', 'x'], ['title', 'y'], ['file', table]), {}, 400, 'title occurs twice'],
    ['a text without end', form(['title', 'x'.repeat(3_000)], ['file', table]), {}, 400, 'title is too long'],
    [
      'fields without end',
      form(...Array.from({ length: 30 }, (_, n): [string, string] => [`f${n}`, 'x']), ['file', table]),
      {},
      400,
      'too many fields',
    ],
    [
      'files without end',
      form(...Array.from({ length: 30 }, (_, n): [string, Blob] => [`f${n}`, table]), ['file', table]),
      {},
      400,
      'too many fields',
    ],
    [
      'a long file of another name',
      form(['other', new Blob(['a'.repeat(6_000_000)])], ['file', table]),
      {},
      413,
      'too large',
    ],
  ])('%s', async (_what, body, headers, status, words) => {
    const { status: given, answer } = await send(body, headers)
    expect([given, answer.message]).toEqual([status, expect.stringContaining(words)])
  })

  test('6 MiB without a length, before all of it came', async () => {
    const sending = request({ port, method: 'POST', headers: multipart })
    const answered = once(sending, 'response')
    sending.write(part('file', 'x'.repeat(limits.recipientsBodyMaxBytes + 1)))
    const [response] = (await answered) as [{ statusCode: number }]
    expect(response.statusCode).toBe(413)
    sending.destroy()
  })

  const textPart = (name: string, value: string, type = '') =>
    `--b\r\nContent-Disposition: form-data; name="${name}"\r\n${type}\r\n${value}\r\n`
  const withFile = (texts: string) => `${texts}${part('file', 'x')}--b--`

  test.each([
    ['an accent in Latin-1', textPart('title', 'Ao\xfbt'), 'title is not UTF-8'],
    [
      'that says so',
      textPart('title', 'Ao\xfbt', 'Content-Type: text/plain; charset=latin1\r\n'),
      'title is',
    ],
    ['bytes of another name', textPart('other', '\xff'), 'other is not UTF-8'],
    [
      'an empty text and another',
      textPart('dry_run', '') + textPart('dry_run', 'true'),
      'dry_run occurs twice',
    ],
    ['two empty texts', textPart('dry_run', '') + textPart('dry_run', ''), 'dry_run occurs twice'],
  ])('a text: %s', async (_what, texts, words) => {
    const { status, answer } = await send(new Uint8Array(Buffer.from(withFile(texts), 'latin1')), multipart)
    expect([status, answer.message]).toEqual([400, expect.stringContaining(words)])
  })

  test('a text in UTF-8 that arrives byte by byte is read', async () => {
    const sending = request({ port, method: 'POST', headers: multipart })
    const answered = once(sending, 'response')
    for (const byte of Buffer.from(withFile(textPart('title', 'Août à Ségou'))))
      sending.write(Buffer.of(byte))
    sending.end()
    const [response] = (await answered) as [IncomingMessage]
    expect(JSON.parse((await response.toArray()).join(''))).toMatchObject({
      texts: { title: 'Août à Ségou' },
    })
  })

  test('field names that every JavaScript object has are names like others', async () => {
    const { status, answer } = await send(form(['__proto__', 'x'], ['constructor', 'y'], ['file', table]))
    expect([status, answer.texts['constructor']]).toEqual([200, 'y'])
  })
})

test('any bytes get an answer, and never a 5xx', async () => {
  const pieces = fc.constantFrom(
    '--b',
    '--b--',
    '\r\n',
    '\r\n\r\n',
    '--',
    'Content-Disposition: form-data; name="file"; filename="f"',
    'Content-Disposition: form-data; name=',
    'Content-Type: text/plain; charset=',
    'utf-16le',
    '"',
    ':',
    'x',
    '\0',
    'Content-Transfer-Encoding: base64',
  )
  await fc.assert(
    fc.asyncProperty(fc.array(fc.oneof(pieces, fc.string()), { maxLength: 30 }), async (given) => {
      const { status } = await send(given.join(''), multipart)
      expect([200, 400]).toContain(status)
    }),
    { numRuns: 300 },
  )
})
