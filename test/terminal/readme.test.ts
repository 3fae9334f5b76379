import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { readConfig } from '../../src/config/config.ts'
import { scenarios } from '../../src/simulator/scenarios.ts'
import { type Home, newHome, type Running, run, startProgram } from '../kit/program.ts'

const root = join(import.meta.dirname, '../..')
const readme = readFileSync(join(root, 'README.md'), 'utf8')

let home: Home | null = null
let service: Running | null = null
afterEach(async () => {
  await service?.end('SIGTERM')
  service?.destroy()
  service = null
  await home?.remove()
  home = null
})

test('the first payments of the README, in and out, work as they stand there', async () => {
  const section = /## A first payment\n([\s\S]*?)\n## /.exec(readme)?.[1] ?? ''
  const [, ...blocks] = Array.from(section.matchAll(/```sh\n([\s\S]*?)```/g), ([, block = '']) => block)
  expect(blocks).toHaveLength(3)
  const [, out] = /## Paying customers, and paying back\n[\s\S]*?```sh\n([\s\S]*?)```/.exec(readme) ?? []
  const [, link] = /## Payment links\n[\s\S]*?```sh\n([\s\S]*?)```/.exec(readme) ?? []
  const [, books] = /## The books\n[\s\S]*?```sh\n([\s\S]*?)```/.exec(readme) ?? []
  const [, withdrawn] = /## Payouts\n[\s\S]*?```sh\n([\s\S]*?)```/.exec(readme) ?? []
  const [, bulk] = /## Bulk pay\n[\s\S]*?```sh\n([\s\S]*?)```/.exec(readme) ?? []
  const [, registered] = /## Webhooks\n[\s\S]*?```sh\n(TOKEN[\s\S]*?)```/.exec(readme) ?? []
  home = await newHome()
  service = await startProgram(home)
  const [key = '', secret = ''] = [/API key +(\S+)/, /API secret +(\S+)/].map(
    (pattern) => pattern.exec(service?.screen ?? '')?.[1] ?? '',
  )
  const lines = [
    `export API=${home.url} API_KEY=${key} API_SECRET=${secret}`,
    ...blocks,
    out,
    link,
    books,
    withdrawn,
    bulk,
    registered,
  ]
  const { stdout } = await run(home, 'bash', ['-c', lines.join('\necho\n')])
  const [asked, status, balance, initiated] = stdout.match(/\{.*?\}(?=\{|\n)/g) ?? []
  expect(JSON.parse(asked ?? '')).toMatchObject({ success: true, data: { status: 'pending' } })
  expect(JSON.parse(status ?? '')).toMatchObject({ status: true, state: 'success' })
  expect(JSON.parse(balance ?? '')).toMatchObject({ data: { balance: 1_005_000 } })
  expect(JSON.parse(initiated ?? '')).toMatchObject({
    data: { collectPayment: { __typename: 'PaymentInitiation', status: 'PENDING' } },
  })
  expect(stdout).toMatch(/"status":"pending","reference":"rent-3"/)
  expect(stdout).toMatch(/"destination_phone":"\+22370000003","status":"pending","reference":"cement-1"/)
  expect(stdout).toMatch(/"status":"(processing|completed)","title":"Salaries","recipient_count":2/)
  expect(stdout).toMatch(/"status":"draft","title":"August","recipient_count":2,"total_amount":12500/)
  expect(stdout).toMatch(/^\d+,\d+,Awa,\+22370000001,2000,\d*,XOF,OperatorA,/m)
  expect(stdout).toMatch(/"statement":\{"opening":\{"balance":0\},"totalIn":\d+,/)
  expect(stdout).toMatch(/^\d+,deposit,OperatorA,\+22370000001,2000,2000,XOF,success,gift-1,/m)
  expect(stdout).toMatch(/,closing,.*\r?$/m)
  expect(stdout).toMatch(/"url":"http:[^"]+\/l\/[a-z0-9]{10}","usage_limit":40,/)
  expect(stdout).toMatch(/"reference":"gift-1"[^}]*"status":"success"/)
  expect(stdout).toMatch(
    /"refundTransaction":\{"__typename":"PaymentInitiation","amount":2000,"status":"\w+"/,
  )
  expect(stdout).toMatch(/"url":"http:\/\/127.0.0.1:4021\/hooks".*"secret":"whsec_/)
  // The first payment of the log was paid, the second one is on its way.
  expect(stdout.match(/"sequence":\d+,"status":"[A-Z]+"/g)?.slice(0, 3)).toEqual([
    '"sequence":1,"status":"PENDING"',
    '"sequence":2,"status":"SUCCESS"',
    '"sequence":3,"status":"PENDING"',
  ])
}, 60_000)

test('the README explains the test numbers by the table that the simulator plays', () => {
  const known = scenarios.filter(({ since }) => since === 'now')
  const row = ({ code, en, ends }: (typeof known)[number]) => `| ${code} | ${en} | ${ends} |`
  expect(readme).toContain(known.map(row).join('\n'))
  for (const { elsewhere } of known) expect(readme).toContain(elsewhere?.en ?? '')
})

test('the README names every setting that the configuration reads', () => {
  const files = readdirSync(join(root, 'src/config')).map((file) => join(root, 'src/config', file))
  const source = files.map((file) => readFileSync(file, 'utf8')).join('\n')
  const names = new Set(Array.from(source.matchAll(/^ {2}([A-Z][A-Z_]+): /gm), ([, name = '']) => name))
  expect(names.size).toBeGreaterThan(40)
  expect([...names].filter((name) => !readme.includes(name))).toEqual([])
  const { port, host, simulator } = readConfig({})
  expect(readme).toContain(`| \`PORT\`, \`HOST\` | ${port}, ${host} |`)
  expect(readme).toContain(`| \`OPERATORS_PORT\` | ${simulator?.port} |`)
})

test('the README names every command of package.json that people run', () => {
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { scripts: object }
  const commands = Object.keys(scripts).filter((name) => !['postinstall', 'generate'].includes(name))
  const isNamed = (name: string) => new RegExp(`npm (run )?${name}\\b`).test(readme)
  expect(commands.filter((name) => !isNamed(name))).toEqual([])
})
