import { execFile } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, onTestFinished, test } from 'vitest'
import { newWebhookSecret } from '../../src/resources/webhooks/sign.ts'
import { type Arrived, deliver } from '../kit/webhooks/receivers.ts'

const guide = readFileSync(join(import.meta.dirname, '../../src/docs/guide/webhooks.md'), 'utf8')

/** The lines of the guide become a program: cases come in on standard input, verdicts go out. */
const languages = [
  {
    name: 'node',
    fence: 'js',
    program: process.execPath,
    file: 'verify.mjs',
    around: (lines: string) => `${lines}
import { readFileSync } from 'node:fs'
const told = JSON.parse(readFileSync(0)).map(({ body, headers, secret }) => {
  try { return verify(Buffer.from(body, 'base64'), headers, secret).id } catch (error) { return false }
})
console.log(JSON.stringify(told))`,
  },
  {
    name: 'python3',
    fence: 'python',
    program: 'python3',
    file: 'verify.py',
    around: (lines: string) => `${lines}
import sys
def told(case):
    try:
        return verify(base64.b64decode(case['body']), case['headers'], case['secret'])['id']
    except (ValueError, KeyError):
        return False
print(json.dumps([told(case) for case in json.load(sys.stdin)]))`,
  },
  {
    name: 'php',
    fence: 'php',
    program: 'php',
    file: 'verify.php',
    around: (lines: string) => `<?php
${lines}
$told = array_map(function ($case) {
    try { return verify(base64_decode($case['body']), $case['headers'], $case['secret'])['id']; }
    catch (Exception $e) { return false; }
}, json_decode(file_get_contents('php://stdin'), true));
echo json_encode($told);`,
  },
]

const isThere = (program: string) =>
  existsSync(program) ||
  (process.env['PATH'] ?? '').split(delimiter).some((dir) => existsSync(join(dir, program)))

/** Deliveries as a socket brought them, each with the secret to check it with and the right verdict. */
async function makeCases() {
  const [secret, next, other] = [newWebhookSecret(), newWebhookSecret(), newWebhookSecret()]
  const body = Buffer.from(
    '{"id":"evt_7","event":"payment_received", "data":{"reference":"café","amount":5e3}}',
  )
  const plain = await deliver(body, { secret })
  const rotating = await deliver(body, { secret: next, previous: secret })
  const stale = await deliver(body, { secret }, new Date(Date.now() - 10 * 60_000))
  const early = await deliver(body, { secret }, new Date(Date.now() + 10 * 60_000))
  const without = (name: string): Arrived => {
    const { [name]: _gone, ...headers } = plain.headers
    return { ...plain, headers }
  }
  const having = (headers: Record<string, string>): Arrived => ({
    ...plain,
    headers: { ...plain.headers, ...headers },
  })
  const rows: [Arrived, typeof secret, 'evt_7' | false][] = [
    [plain, secret, 'evt_7'],
    [rotating, secret, 'evt_7'],
    [rotating, next, 'evt_7'],
    [plain, other, false],
    [rotating, other, false],
    [{ ...plain, body: Buffer.from(body.toString().replace('5e3', '5e4')) }, secret, false],
    [{ ...plain, body: Buffer.from(JSON.stringify(JSON.parse(body.toString()))) }, secret, false],
    [stale, secret, false],
    [early, secret, false],
    [having({ 'webhook-id': 'evt_8' }), secret, false],
    [having({ 'webhook-signature': 'v1,' }), secret, false],
    [having({ 'webhook-signature': '' }), secret, false],
    [having({ 'webhook-timestamp': 'now' }), secret, false],
    [without('webhook-signature'), secret, false],
    [without('webhook-timestamp'), secret, false],
    [without('webhook-id'), secret, false],
  ]
  return {
    input: rows.map(([{ body: raw, headers }, held]) => ({
      body: raw.toString('base64'),
      headers,
      secret: held.reveal(),
    })),
    verdicts: rows.map(([, , verdict]) => verdict),
  }
}

describe('the code of the webhook guide accepts the valid deliveries and rejects all others', () => {
  for (const { name, fence, program, file, around } of languages) {
    const [, lines = ''] = new RegExp(`\`\`\`${fence}\\n([\\s\\S]*?)\`\`\``).exec(guide) ?? []

    test.skipIf(!isThere(program))(`the code in ${name}`, async () => {
      expect(lines.split('\n').filter(Boolean).length).toBeLessThanOrEqual(10)
      const dir = mkdtempSync(join(tmpdir(), 'merchant-payments-verify-'))
      onTestFinished(() => rmSync(dir, { recursive: true }))
      writeFileSync(join(dir, file), around(lines))
      const { input, verdicts } = await makeCases()
      const running = promisify(execFile)(program, [join(dir, file)])
      running.child.stdin?.end(JSON.stringify(input))
      expect(JSON.parse((await running).stdout)).toEqual(verdicts)
    })
  }
})
