import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  admin,
  call,
  createMerchant,
  type Home,
  newHome,
  type Running,
  run,
  signIn,
  startProgram,
} from '../kit/program.ts'

// The demonstration beside a running service, as a person would try it.
let home: Home
let service: Running

beforeAll(async () => {
  home = await newHome()
  service = await startProgram(home)
})

afterAll(async () => {
  await service.end('SIGTERM')
  service.destroy()
  await home.remove()
})

test('npm run demo shows ten stories to their end in plain lines, and ends with 0', async () => {
  const begun = performance.now()
  const { code, stdout, stderr } = await run(home, 'npm', ['run', '-s', 'demo'])
  expect({ code, stderr, failed: stdout.match(/✗.*/g) }).toEqual({ code: 0, stderr: '', failed: null })
  expect(performance.now() - begun).toBeLessThan(30_000)
  expect(stdout).not.toContain('\u001B')
  expect(stdout.match(/^ {2}\d{4}-\d\d-\d\d \d\d:\d\d:\d\d /gm)).toHaveLength(21)
  expect(stdout).toMatch(/70 07 00 01 +OperatorD .*failed +Le téléphone traite une autre opération/)
  expect(stdout).toMatch(/70 12 00 01 +OperatorA .*expired/)
  expect(stdout).toMatch(/70 12 00 01 +OperatorA .*success +Payé après expiration/)
  expect(stdout).toContain('✓ The changes count from 1 to 21 without a gap')
  expect(stdout).toContain('✓ The ledger holds')
})

test('the demo of a merchant that has money and a history counts only the new payments', async () => {
  const { api_key, api_secret, merchant_id } = await createMerchant(home)
  await admin(home, 'merchant', 'fund', '--id', String(merchant_id), '--amount', '900')
  const token = await signIn(home, api_key, api_secret)
  const order = { amount: 700, customer_phone: '70030001', payment_method: 'OperatorA', reference: 'before' }
  expect((await call(home, 'POST', '/pay', token, order)).body['data']).toMatchObject({ status: 'failed' })
  // An event that is no change of a payment: the changes of payments then have a gap.
  const manager = await signIn(home, api_key, api_secret, ['settings'])
  expect(await call(home, 'PUT', '/settings', manager, { ip_whitelist: ['127.0.0.1'] })).toMatchObject({
    status: 200,
  })
  const args = ['--url', home.url, '--key', api_key, '--secret', api_secret]
  const { code, stdout } = await run(home, 'node', ['src/terminal/demo.ts', ...args])
  expect(stdout).toContain('✓ The changes came in order, up to 24')
  expect(stdout).toMatch(/✓ The balance is 50\s900.*exactly the 50\s000.*above the 900/)
  expect(code).toBe(0)
})

test.each([
  [
    'where nothing answers',
    ['--url', 'http://127.0.0.1:9'],
    1,
    /^Nothing answers at .*run "npm start" first.*\n$/,
  ],
  ['with a key that is wrong', ['--key', 'pk_wrong', '--secret', 'wrong'], 1, /does not accept the key/],
  ['with a key and no secret', ['--key', 'pk_wrong'], 2, /--key and --secret go together/],
  ['with an unknown option', ['--fast'], 2, /--fast/],
])('the demo %s says so in a sentence', async (_what, args, code, sentence) => {
  const ended = await run(home, 'node', ['src/terminal/demo.ts', ...args])
  expect({ code: ended.code, stdout: ended.stdout }).toEqual({ code, stdout: '' })
  expect(ended.stderr).toMatch(sentence)
})
