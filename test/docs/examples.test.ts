import { dirname } from 'node:path'
import { parse } from 'graphql'
import { afterEach, expect, test } from 'vitest'
import { scopes } from '../../src/identity/callers/scopes.ts'
import { blocksOf, readDocument } from '../kit/documents.ts'
import { type Home, newHome, type Running, run, startProgram } from '../kit/program.ts'

// Every `sh` block of the README and the guides, in one shell and in the order in which a reader follows
// them; then every `graphql` block. No answer may be an error.

const pages = [
  'README.md',
  ...[
    'payments',
    'paying-out',
    'bulk',
    'links',
    'statements',
    'webhooks',
    'people-and-keys',
    'approvals',
    'graphql-clients',
    'test-numbers',
    'going-to-production',
    'administration',
  ].map((name) => `src/docs/guide/${name}.md`),
].map(readDocument)

let home: Home | null = null
let service: Running | null = null
afterEach(async () => {
  await service?.end('SIGTERM')
  service?.destroy()
  service = null
  await home?.remove()
  home = null
})

/** The commands that a reader would type: `npm start` runs already, and Ctrl-C ends the listener. */
function commandsOf(block: string, exports: string): string {
  if (block.startsWith('npm ci\nnpm start')) return ''
  if (block.includes('mk_...')) return exports
  return block.replaceAll(/^npm run webhooks:listen.*$/gm, listening)
}

/** The listener, which a reader ends by Ctrl-C once it has shown a delivery. */
const listening = `
timeout -s INT 300 npm run webhooks:listen -- --port 0 > "$TMPDIR/heard" 2>&1 &
listener=$!
until grep -q '✓.*payment_received' "$TMPDIR/heard" || ! kill -0 $listener; do sleep 0.2; done
kill -INT $listener
wait $listener
cat "$TMPDIR/heard"`

/** The answers in an output that are refusals. */
function refusalsIn(output: string): string[] {
  const isRefusal = (line: string) => /^\{.*("success":false|"errors":\[|"code":")/.test(line)
  return output.split('\n').filter((line) => isRefusal(line) || /^\s*✗|command not found/.test(line))
}

interface GraphqlAnswer {
  data?: unknown
  errors?: unknown
}

/** Runs one operation of a block. A subscription gives its first result, or none where nothing happens. */
async function runOperation(url: string, token: string, document: string): Promise<GraphqlAnswer> {
  const [definition] = parse(document).definitions
  const live = definition?.kind === 'OperationDefinition' && definition.operation === 'subscription'
  const answer = await fetch(`${url}/graphql`, {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json',
      Authorization: `Bearer ${token}`,
      ...(live && { Accept: 'text/event-stream' }),
    },
    body: JSON.stringify({ query: document }),
    signal: AbortSignal.timeout(30_000),
  })
  if (!live || !answer.body) return (await answer.json()) as GraphqlAnswer
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader()
  const silent = setTimeout(() => void reader.cancel(), 3_000)
  try {
    for (let text = ''; ; ) {
      const { value, done } = await reader.read()
      if (done) return answer.ok ? {} : { errors: text }
      text += value
      const [, data] = /^data: (\{.*\})$/m.exec(text) ?? []
      if (data !== undefined) return JSON.parse(data) as GraphqlAnswer
    }
  } finally {
    clearTimeout(silent)
    await reader.cancel()
  }
}

test('the README and the guides work as written, from the first block to the last', async () => {
  home = await newHome()
  service = await startProgram(home)
  const { url } = home
  const [key = '', secret = ''] = [/API key +(\S+)/, /API secret +(\S+)/].map(
    (pattern) => pattern.exec(service?.screen ?? '')?.[1] ?? '',
  )
  // The folder for temporary files is removed with the service, and with it all files of the examples.
  const exports = `export API=${url} API_KEY=${key} API_SECRET=${secret} TMPDIR=${dirname(home.dataDir)}\n`
  const blocks = pages.flatMap((page) =>
    blocksOf(page, 'sh').map((block) => `echo '# ${page.path}'\n${commandsOf(block, exports)}`),
  )
  expect(blocks.length).toBeGreaterThan(30)
  const { stdout, stderr } = await run(home, 'bash', ['-c', `${blocks.join('\n')}\necho the end`], 840_000)
  expect(refusalsIn(stdout).join('\n')).toBe('')
  expect([stdout.endsWith('the end\n'), stdout.endsWith('the end\n') ? '' : stderr]).toEqual([true, ''])

  expect(stdout).toMatch(/"state":"success","status":true/)
  expect(stdout).toMatch(/"balance":1005000/)
  expect(stdout).toMatch(/✓ The changes count from 1 to \d+ without a gap/)
  expect(stdout).toMatch(/"sequence":1,"status":"PENDING".*\n\n.*\n.*\n.*"sequence":2,"status":"SUCCESS"/)
  expect(stdout).toMatch(/"refundTransaction":\{"__typename":"PaymentInitiation"/)
  expect(stdout).toMatch(/"status":"pending","reference":"rent-3"/)
  expect(stdout).toMatch(/"status":"(processing|completed)","title":"Salaries","recipient_count":2/)
  expect(stdout).toMatch(/"status":"draft","title":"August","recipient_count":2/)
  expect(stdout).toMatch(/"url":"http:[^"]+\/l\/[a-z0-9]{10}","usage_limit":40,/)
  expect(stdout).toMatch(/^\d+,deposit,OperatorA,\+22370000001,2000,2000,XOF,success,gift-1,/m)
  expect(stdout).toMatch(/,closing,.*\r?$/m)
  expect(stdout).toMatch(/"secret":"whsec_/)
  expect(stdout).toMatch(/✓.*payment_received/)
  expect(stdout).toMatch(/"reference":"cement-2",.*"approval":"pending"/)
  expect(stdout).toMatch(
    /"approvePayout":\{"__typename":"Payout","status":"\w+","approval":\{"status":"APPROVED"/,
  )
  expect(stdout).toMatch(/"state":"failed","status":false/)
  expect(stdout).toMatch(/The audit log of merchant 1 is intact/)

  const answer = await fetch(`${url}/merchant/api/auth`, {
    method: 'POST',
    headers: { 'X-API-Key': key, 'X-API-Secret': secret, 'Content-Type': 'application/json' },
    body: JSON.stringify({ scopes }),
  })
  const { data } = (await answer.json()) as { data: { token: string } }
  for (const document of pages.flatMap((page) => blocksOf(page, 'graphql'))) {
    const result = await runOperation(url, data.token, document)
    expect(result, document).not.toHaveProperty('errors')
    expect(JSON.stringify(result), document).not.toContain('"code":')
  }
}, 900_000)

test('the check finds a refusal among the answers', () => {
  const lines = [
    '{"success":true}',
    '{"success":false,"message":"no"}',
    '{"data":{"a":{"code":"X"}}}',
    '  ✗ wrong',
  ]
  expect(refusalsIn(lines.join('\n'))).toEqual(lines.slice(1))
})
