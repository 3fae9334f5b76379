import { stripVTControlCharacters } from 'node:util'
import { adminHere } from '../kit/admin.ts'
import { eventuallyGives } from '../kit/eventually.ts'
import { scopes } from '../../src/identity/callers/scopes.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  admin,
  call,
  createMerchant,
  dashboardToken,
  enterBy,
  type Home,
  type MadeMerchant,
  newHome,
  type Running,
  run,
  signIn,
  startCommand,
  startProgram,
} from '../kit/program.ts'

// One running service; the commands run beside it, on the same embedded database.
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

test('npm run -s admin prints one line of JSON, and the key in it signs in with every scope', async () => {
  const args = ['run', '-s', 'admin', '--', 'merchant', 'create', '--name', 'Shop', '--json']
  const { code, stdout } = await run(home, 'npm', args)
  expect(code).toBe(0)
  expect(stdout.trim().split('\n')).toHaveLength(1)
  const { api_key, api_secret, ...rest } = JSON.parse(stdout) as MadeMerchant
  expect(rest).toEqual({ merchant_id: expect.any(Number) })
  const headers = { 'X-API-Key': api_key, 'X-API-Secret': api_secret }
  const { status, body } = await call(home, 'POST', '/auth', headers, { scopes })
  expect({ status, scopes: body['data']?.scopes }).toEqual({ status: 200, scopes })
})

test('a funded merchant has the money at once', async () => {
  const { merchant_id, api_key, api_secret } = await createMerchant(home, adminHere)
  const token = await signIn(home, api_key, api_secret)
  const { code, stdout } = await adminHere(
    home,
    'merchant',
    'fund',
    '--id',
    String(merchant_id),
    '--amount',
    '2500',
    '--json',
  )
  expect({ code, ...JSON.parse(stdout) }).toEqual({ code: 0, merchant_id, available: 2_500 })
  expect((await call(home, 'GET', '/balance', token)).body['data']).toMatchObject({ available: 2_500 })
})

test('a deactivated merchant is soon refused', async () => {
  const { merchant_id, api_key, api_secret } = await createMerchant(home, adminHere)
  const token = await signIn(home, api_key, api_secret)
  expect((await call(home, 'GET', '/balance', token)).status).toBe(200)
  const { code } = await adminHere(home, 'merchant', 'deactivate', '--id', String(merchant_id))
  expect(code).toBe(0)
  const refused = await eventuallyGives(
    () => call(home, 'GET', '/balance', token),
    ({ status }) => status !== 200,
  )
  expect(refused.status).toBe(403)
  await expect(signIn(home, api_key, api_secret)).rejects.toThrow('403')
})

test('payouts and batches of a deactivated merchant wait until they are cancelled', async () => {
  const { merchant_id, api_key, api_secret } = await createMerchant(home, adminHere)
  const id = String(merchant_id)
  await adminHere(home, 'merchant', 'fund', '--id', id, '--amount', '50000')
  const token = await signIn(home, api_key, api_secret, scopes)
  const order = { payment_method: 'OperatorA', destination_phone: '70000001', amount: 5_000 }
  const day = new Date(Date.now() + 86_400_000).toISOString()
  for (const reference of ['later-1', 'later-2']) {
    const { status } = await call(home, 'POST', '/payouts', token, { ...order, reference, scheduled_at: day })
    expect(status).toBe(201)
  }
  const recipients = [{ name: 'Awa', account: '70000001', amount: 1_000, payment_method: 'OperatorA' }]
  expect(await call(home, 'POST', '/bulk/batches', token, { recipients })).toMatchObject({ status: 201 })
  const early = await adminHere(home, 'merchant', 'cancel-payouts', '--id', id)
  expect(early).toMatchObject({ code: 1, stderr: expect.stringMatching(/is active/) })
  await adminHere(home, 'merchant', 'deactivate', '--id', id)
  const done = await adminHere(home, 'merchant', 'cancel-payouts', '--id', id, '--json')
  expect(done).toMatchObject({
    code: 0,
    stdout: `{"merchant_id":${id},"cancelled":2,"batches_cancelled":1}\n`,
  })
  const again = await adminHere(home, 'merchant', 'cancel-payouts', '--id', id, '--json')
  expect(JSON.parse(again.stdout)).toEqual({ merchant_id, cancelled: 0, batches_cancelled: 0 })
})

test('owner invite shows a link to the running service, with which the first owner joins once', async () => {
  const { merchant_id } = await createMerchant(home, adminHere)
  const person = ['--merchant', String(merchant_id), '--email', 'a@b.ml', '--name', 'Awa Traoré']
  const shown = await adminHere(home, 'owner', 'invite', ...person)
  expect(shown.code).toBe(0)
  const [, lost = ''] = /^ {2}Link {2}\S+\/join#(\S+)$/m.exec(shown.stdout) ?? []
  const again = await adminHere(home, 'owner', 'invite', ...person, '--json')
  const { link, invitation } = JSON.parse(again.stdout)
  expect(link).toBe(`${home.url}/join#${invitation}`)
  const join = (token: string) =>
    enterBy(home, 'acceptInvitation', { token, password: 'le soleil de Bamako' })
  expect(await join(lost)).toEqual({ code: 'INVALID_INPUT' })
  expect(await join(invitation)).toEqual({ name: 'Awa Traoré', role: 'OWNER' })
  const late = await adminHere(home, 'owner', 'invite', ...person)
  expect(late).toMatchObject({ code: 1, stderr: expect.stringMatching(/has joined the team of merchant/) })
})

test('the link of the first screen signs the owner in once', async () => {
  const shown = stripVTControlCharacters(service.screen)
  expect(shown).toMatch(/^ {2}Dashboard {5}\S+ {3}\(signs the owner in once\)$/m)
  const token = dashboardToken(shown)
  const enter = () => enterBy(home, 'sandboxSignIn', { token })
  expect(await enter()).toEqual({ name: 'Awa Traoré', role: 'OWNER' })
  expect(await enter()).toEqual({ code: 'INVALID_INPUT' })
})

test('the ledger is proven beside the running service', async () => {
  const { code, stdout } = await admin(home, 'audit')
  const lines = stdout.trim().split('\n')
  expect({ code, lines }).toEqual({
    code: 0,
    lines: Array(16).fill(expect.stringMatching(/^\w+ {2}ok {2}\w/)),
  })
})

test('a person halts and resumes payments out, with a reason', async () => {
  const paymentsOut = async () => (await call(home, 'GET', '/status')).body['data'].components.payments_out
  const halted = await adminHere(home, 'payments-out', 'halt', '--reason', 'an exercise', '--json')
  expect(halted).toMatchObject({ code: 0, stdout: '{"halted":true,"changed":true}\n' })
  expect(await paymentsOut()).toBe('down')
  expect((await adminHere(home, 'payments-out', 'resume')).stderr).toMatch(/reason/)
  expect(await paymentsOut()).toBe('down')
  expect((await adminHere(home, 'payments-out', 'resume', '--reason', 'it is over')).code).toBe(0)
  expect(await paymentsOut()).toBe('operational')
})

test.each([
  { what: 'no command', args: [], code: 2 },
  { what: 'an unknown command', args: ['merchant', 'remove'], code: 2 },
  { what: 'an unknown option', args: ['merchant', 'create', '--nme', 'Shop'], code: 2 },
  { what: 'help', args: ['--help'], code: 0 },
])('$what shows the usage with exit code $code', async ({ args, code }) => {
  const ended = await adminHere(home, ...args)
  expect(ended).toMatchObject({ code, stdout: '' })
  expect(ended.stderr).toContain('merchant create --name')
})

test.each([
  ['a merchant without a name', ['merchant', 'create'], /name/],
  [
    'a merchant that is not there',
    ['merchant', 'fund', '--id', '99999', '--amount', '5'],
    /no merchant 99999/,
  ],
  ['an id that is no number', ['merchant', 'deactivate', '--id', 'one'], /whole number/],
  ['an amount with cents', ['merchant', 'fund', '--id', '1', '--amount', '10.5'], /XOF has no minor unit/],
])('%s is refused in one sentence with exit code 1', async (_what, args, sentence) => {
  const { code, stdout, stderr } = await adminHere(home, ...args)
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
  expect(stderr.trim()).toMatch(sentence)
  expect(stderr.trim().split('\n')).toHaveLength(1)
})

test('webhooks:listen shows a first payment by itself, and leaves no endpoint behind', async () => {
  const listen = (...args: string[]) => startCommand(home, ['src/terminal/listen.ts', ...args])
  const first = listen('--port', '0')
  const output = stripVTControlCharacters(await first.said(/payment_received/))
  expect(output).toMatch(/✓ .* 1 +payment_pending +5\s000\sF\sCFA +listen-\w+ +evt_\d+\n/)
  expect(output).toMatch(/✓ .* 2 +payment_received +5\s000\sF\sCFA +listen-\w+ +evt_\d+\n/)
  const [, port = '', key = '', secret = ''] =
    /:(\d+)\/;[^]*API_KEY=(\S+) API_SECRET=(\S+)/.exec(output) ?? []
  // A listener that was killed leaves an endpoint at its address; the next listener removes it.
  await first.end('SIGKILL')

  const headers = { 'X-API-Key': key, 'X-API-Secret': secret }
  const { body } = await call(home, 'POST', '/auth', headers, { scopes: ['webhooks'] })
  const token = { Authorization: `Bearer ${body['data'].token}` }
  const endpoints = async () => (await call(home, 'GET', '/webhooks', token)).body['data']
  const second = listen('--port', port, '--key', key, '--secret', secret)
  await second.said(/Listening/)
  expect(await endpoints()).toMatchObject([{ url: `http://127.0.0.1:${port}/`, is_active: true }])
  const [{ id }] = await endpoints()
  const tested = await call(home, 'POST', `/webhooks/${id}/test`, token)
  expect(tested.body['data']).toMatchObject({ delivered: true, status_code: 204 })
  expect(stripVTControlCharacters(await second.said(/evt_test_/))).toMatch(/✓ .* - +test .* evt_test_\d+\n/)
  expect(await second.end('SIGINT')).toBe(0)
  expect(await endpoints()).toEqual([])
})
