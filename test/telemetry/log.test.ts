import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { expect, test } from 'vitest'
import { createLog, type Log } from '../../src/telemetry/log.ts'

/** A log, and its last line. */
function capture(): { log: Log; last: () => string } {
  const lines: string[] = []
  const log = createLog('debug', { write: (line: string) => void lines.push(line) })
  return { log, last: () => lines.at(-1) ?? '' }
}

const { log, last } = capture()
const parsed = () => JSON.parse(last()) as Record<string, unknown>

test.each<[string, string]>([
  ['+22370110001', '+223******01'],
  ['22370110001', '223******01'],
  ['0022370110001', '00223******01'],
  ['70110001', '******01'],
  ['70 11 00 01', '******01'],
  ['+223 70 11 00 01', '+223******01'],
  ['+33612345678', '+336******78'],
  ['no wallet for 70110001, ask again', 'no wallet for ******01, ask again'],
  ['line\n70110001\n', 'line\n******01\n'],
  ['customer_phone=70110001&x', 'customer_phone=******01&x'],
  ['"70110001"', '"******01"'],
  ['/accounts/msisdn/%2B22370110001/status', '/accounts/msisdn/%2B223******01/status'],
  ['both +22370110001 and 66110002', 'both +223******01 and ******02'],
])('a telephone number is masked: %j', (text, told) => {
  log.info({ text, deep: [{ [text]: { text } }] }, text)
  expect(parsed()).toMatchObject({ text: told, deep: [{ [told]: { text: told } }], msg: told })
  log.child({ bound: text }).warn({ err: new Error(text) }, 'x')
  expect(parsed()).toMatchObject({ bound: told, err: { message: told } })
  expect(last()).not.toMatch(/7011|6611|612345/)
})

test.each<[string, unknown]>([
  ['an amount', 70_110_001],
  ['an id after its kind', 'payout:70110001'],
  ['an id of an event', 'evt_70110001'],
  ['a UUID that begins with digits', '70110001-1b2c-4d5e-8f90-702233445566'],
  ['a UUID of digits', '70110001-7011-4011-8011-701100017011'],
  ['a day', '20261123'],
  ['a time', '2026-11-23T04:18:30.123Z'],
  ['milliseconds since 1970', '1763871234567'],
  ['an address', '78.12.34.56'],
  ['a duration', '70110001.25'],
  ['a fraction', '0.70110001'],
  ['a hash', 'a1b270110001c3d4'],
  ['a large amount in words', '70 110 001 F CFA'],
])('%s is not masked: %j', (_what, value) => {
  log.info({ value }, 'x')
  expect(parsed()['value']).toEqual(JSON.parse(JSON.stringify(value)))
})

test('an amount that is a bigint stays a number', () => {
  log.info({ amount: 70_110_001n, reference: 'order-7' }, 'x')
  expect(last()).toContain('"amount":70110001,')
})

test('a socket that could not be opened is told without a stack, a missing file with one', async () => {
  const socket = connect('/nowhere/.s.PGSQL.5432')
  const [refused] = (await once(socket, 'error')) as [Error]
  log.error({ err: refused }, 'the job engine failed')
  expect(parsed()['err']).toMatchObject({ code: 'ENOENT', message: refused.message })
  expect(last()).not.toContain('"stack"')

  const missing = await readFile('/nowhere/file').catch((error: unknown) => error)
  log.error({ err: missing }, 'the file cannot be read')
  expect(parsed()['err']).toMatchObject({ code: 'ENOENT', stack: expect.stringContaining('ENOENT') })
})

test('a database error keeps its table and constraint, and quotes no row', () => {
  const fields = {
    code: '23514',
    severity: 'ERROR',
    detail: 'Failing row contains (7, Awa Traoré, +22370110001, 5000).',
    where: 'COPY recipient, line 1: "Awa Traoré, 70110001"',
    table: 'transaction',
    constraint: 'transaction_amount_check',
  }
  const thrown = Object.assign(new Error('new row for relation "transaction" violates a check'), fields)
  const wrapped = Object.assign(new Error('a query failed', { cause: thrown }), {
    meta: { driverAdapterError: Object.assign(new Error('x'), { cause: { kind: 'postgres', ...fields } }) },
  })
  for (const err of [thrown, wrapped]) {
    log.error({ err }, 'a resolver failed')
    expect(last()).not.toMatch(/Awa|7011|Failing row|COPY/)
    expect(last()).toContain('"table":"transaction"')
    expect(last()).toContain('"constraint":"transaction_amount_check"')
    expect(last()).toContain('"code":"23514"')
    expect(last()).toContain('log.test.ts')
  }
})
