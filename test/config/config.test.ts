import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { isAbsolute, join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { addressesOf, readConfig } from '../../src/config/config.ts'
import { labelWarnings, readFaces } from '../../src/config/operator-faces.ts'
import { sandboxOperators } from '../../src/config/operators.ts'
import { scenarios } from '../../src/simulator/scenarios.ts'
import { ConfigError } from '../../src/config/parse.ts'
import { providers } from '../../src/shared/providers.ts'

const folder = mkdtempSync(join(tmpdir(), 'merchant-payments-config-'))
afterAll(() => rmSync(folder, { recursive: true }))

const production = {
  MODE: 'production',
  SECRET_KEY: 'k'.repeat(32),
  PUBLIC_URL: 'https://pay.example',
  DATABASE_URL: 'postgresql://user:hidden@db.example/payments',
}

describe('readConfig', () => {
  test('without settings: a sandbox on 127.0.0.1:4000 with the embedded database', () => {
    const config = readConfig({})
    expect(config).toMatchObject({
      mode: 'sandbox',
      host: '127.0.0.1',
      port: 4000,
      databaseUrl: null,
      publicUrl: null,
      masterSecret: null,
      trustedProxies: [],
      logLevel: 'info',
      operators: [],
    })
    expect(config.simulator?.url).toBeNull()
    expect(isAbsolute(config.dataDir)).toBe(true)
    expect(config.dataDir).toMatch(/\.data$/)
  })

  test('the epoch of the database is a whole number above 0, and is not checked without one', () => {
    expect(readConfig({}).databaseEpoch).toBeNull()
    expect(readConfig({ DATABASE_EPOCH: '3' }).databaseEpoch).toBe(3)
    for (const wrong of ['0', '-1', '1.5', 'first'])
      expect(() => readConfig({ DATABASE_EPOCH: wrong })).toThrow(/DATABASE_EPOCH/)
  })

  test('an empty setting counts as one that is not set', () => {
    expect(readConfig({ PORT: '', DATABASE_URL: '', MODE: '', PUBLIC_URL: '' })).toEqual(readConfig({}))
  })

  test('production has no simulator, but the operators that are configured', () => {
    const config = readConfig({
      ...production,
      OPERATOR_C_DRIVER: 'gsma-mm',
      OPERATOR_C_BASE_URL: 'https://op.example/mm',
      OPERATOR_C_TOKEN_URL: 'https://op.example/token',
      OPERATOR_C_CLIENT_ID: 'id',
      OPERATOR_C_CLIENT_SECRET: 'hidden',
      OPERATOR_C_FLOW: 'polling',
      OPERATOR_C_STATUS_MAP: 'Done:settled, Waiting:pending',
      OPERATOR_B_DRIVER: 'checkout-session',
      OPERATOR_B_BASE_URL: 'https://checkout.example',
      OPERATOR_B_API_KEY: 'hidden',
      OPERATOR_B_WEBHOOK_SECRETS: 'new, old',
    })
    expect(config.simulator).toBeNull()
    expect(config.operators.map(({ provider, driver }) => [provider, driver])).toEqual([
      ['OperatorB', 'checkout-session'],
      ['OperatorC', 'gsma-mm'],
    ])
    const [checkout, gsma] = config.operators
    expect(gsma).toMatchObject({ flow: 'polling', statusMap: { done: 'settled', waiting: 'pending' } })
    expect(checkout?.driver === 'checkout-session' && checkout.webhookSecrets.map((s) => s.reveal())).toEqual(
      ['new', 'old'],
    )
    expect(checkout).toMatchObject({ payerField: null })
  })

  test('no printed form of the configuration holds a secret', () => {
    expect(JSON.stringify(readConfig(production))).not.toContain('hidden')
    expect(JSON.stringify(readConfig(production))).not.toContain('kkkk')
  })

  test('a secret can be read from a file', () => {
    const path = join(folder, 'key')
    writeFileSync(path, `${'f'.repeat(40)}\n`)
    expect(readConfig({ SECRET_KEY_FILE: path }).masterSecret?.reveal()).toBe('f'.repeat(40))
  })

  test('a file that cannot be read is named by its setting', () => {
    for (const name of ['SECRET_KEY_FILE', 'OPERATOR_A_LABEL_FILE'])
      expect(() => readConfig({ [name]: join(folder, 'missing') })).toThrow(
        new ConfigError(`${name}: ENOENT: no such file or directory, open '${join(folder, 'missing')}'`),
      )
  })

  test('only secrets and addresses are read from files', () => {
    expect(readConfig({ PORT_FILE: join(folder, 'missing'), HOSTS_FILE: '/etc/hosts' }).port).toBe(4000)
  })

  test('payments out are halted after half an hour without a proof, unless a setting says otherwise', () => {
    expect(readConfig({}).auditHaltAfterMs).toBe(30 * 60_000)
    expect(readConfig({ AUDIT_HALT_AFTER: '0' }).auditHaltAfterMs).toBe(0)
    expect(readConfig({ AUDIT_HALT_AFTER: '1440' }).auditHaltAfterMs).toBe(86_400_000)
  })

  test('records of the traffic with operators are kept for ever, unless a setting says otherwise', () => {
    expect(readConfig({}).retention).toEqual({ exchangeDays: 0, callbackDays: 0 })
    const set = { EXCHANGE_RETENTION_DAYS: '30', CALLBACK_RETENTION_DAYS: '36500' }
    expect(readConfig(set).retention).toEqual({ exchangeDays: 30, callbackDays: 36_500 })
  })

  test('an address loses the slash at its end', () => {
    expect(readConfig({ PUBLIC_URL: 'https://pay.example//' }).publicUrl).toBe('https://pay.example')
  })

  test('an address is kept in the form that operators and browsers get', () => {
    expect(readConfig({ PUBLIC_URL: 'HTTPS://Pay.Example/é' }).publicUrl).toBe('https://pay.example/%C3%A9')
  })

  test.each<[string, Record<string, string>]>([
    ['MODE', { MODE: 'staging' }],
    ['PORT', { PORT: '70000' }],
    ['PORT', { PORT: 'http' }],
    ['DATABASE_URL', { DATABASE_URL: 'mysql://db.example/x' }],
    ['PUBLIC_URL', { PUBLIC_URL: 'pay.example' }],
    ['PUBLIC_URL', { PUBLIC_URL: 'https:/pay.example' }],
    ['CALLBACK_URL', { CALLBACK_URL: 'https:\\\\pay.example' }],
    ['SECRET_KEY', { SECRET_KEY: 'short' }],
    ['RATE_LIMIT_READS', { RATE_LIMIT_READS: '0' }],
    ['AUDIT_HALT_AFTER', { AUDIT_HALT_AFTER: '4' }],
    ['AUDIT_HALT_AFTER', { AUDIT_HALT_AFTER: '-1' }],
    ['AUDIT_HALT_AFTER', { AUDIT_HALT_AFTER: '1441' }],
    ['EXCHANGE_RETENTION_DAYS', { EXCHANGE_RETENTION_DAYS: '29' }],
    ['EXCHANGE_RETENTION_DAYS', { EXCHANGE_RETENTION_DAYS: '-1' }],
    ['CALLBACK_RETENTION_DAYS', { CALLBACK_RETENTION_DAYS: '30.5' }],
    ['CALLBACK_RETENTION_DAYS', { CALLBACK_RETENTION_DAYS: '36501' }],
    ['LOG_LEVEL', { LOG_LEVEL: 'loud' }],
    ['DRAIN_DELAY_MS', { DRAIN_DELAY_MS: '-1' }],
    ['DRAIN_DELAY_MS', { DRAIN_DELAY_MS: '300001' }],
    ['TRUSTED_PROXIES', { TRUSTED_PROXIES: '10.0.0.0/33' }],
    ['TRUSTED_PROXIES', { TRUSTED_PROXIES: 'fe80::1%eth0' }],
    ['TRUSTED_PROXIES', { TRUSTED_PROXIES: '::ffff:10.0.0.0/24' }],
    ['TRUSTED_PROXIES', { TRUSTED_PROXIES: '10.0.0.1, proxy.example' }],
    ['SECRET_KEY', { ...production, SECRET_KEY: '' }],
    ['PUBLIC_URL', { ...production, PUBLIC_URL: '' }],
    ['DATABASE_URL', { ...production, DATABASE_URL: '' }],
    ['OPERATOR_A_DRIVER', { ...production, OPERATOR_A_DRIVER: 'soap' }],
    ['OPERATOR_A_CLIENT_ID', { ...production, OPERATOR_A_DRIVER: 'gsma-mm' }],
    [
      'OPERATOR_A_STATUS_MAP',
      {
        ...production,
        OPERATOR_A_DRIVER: 'gsma-mm',
        OPERATOR_A_BASE_URL: 'https://op.example',
        OPERATOR_A_TOKEN_URL: 'https://op.example/token',
        OPERATOR_A_CLIENT_ID: 'id',
        OPERATOR_A_CLIENT_SECRET: 'secret',
        OPERATOR_A_STATUS_MAP: 'done:finished',
      },
    ],
  ])('a wrong %s is named', (name, environment) => {
    expect(() => readConfig(environment)).toThrow(ConfigError)
    expect(() => readConfig(environment)).toThrow(`${name}:`)
  })

  test('all wrong settings are named at once', () => {
    expect(() => readConfig({ PORT: 'x', MODE: 'y' })).toThrow(/MODE:[\s\S]*PORT:/)
  })

  test('networks of both families are read, with and without their size', () => {
    const list = '127.0.0.1, 10.0.0.0/8,::1,2001:db8::/32'
    expect(readConfig({ TRUSTED_PROXIES: list }).trustedProxies).toEqual([
      '127.0.0.1',
      '10.0.0.0/8',
      '::1',
      '2001:db8::/32',
    ])
  })
})

describe('the face of an operator', () => {
  const fileOf = (name: string, content: string) => {
    writeFileSync(join(folder, name), content)
    return join(folder, name)
  }

  test('is its neutral name where nothing is set', () => {
    const { faces } = readConfig({ OPERATOR_B_LABEL: '' })
    expect(faces.OperatorA).toEqual({ label: 'OperatorA', colour: null, logo: null, ussd: null })
    expect(Object.keys(faces)).toEqual(['OperatorA', 'OperatorB', 'OperatorC', 'OperatorD'])
  })

  test('has a name, a colour, a code and a logo whose path changes with its content', () => {
    const read = (content: string) =>
      readConfig({
        OPERATOR_C_LABEL: ' Sarali Money ',
        OPERATOR_C_COLOUR: '#FF7900',
        OPERATOR_C_USSD: '#144#',
        OPERATOR_C_LOGO: fileOf('logo.SVG', content),
      }).faces.OperatorC
    const { logo, ...face } = read('<svg/>')
    expect(face).toEqual({ label: 'Sarali Money', colour: '#ff7900', ussd: '#144#' })
    expect(logo).toMatchObject({ type: 'image/svg+xml', content: Buffer.from('<svg/>') })
    expect(logo?.path).toMatch(/^assets\/[0-9a-f]{12}-OperatorC\.svg$/)
    expect(read('<svg></svg>').logo?.path).not.toBe(logo?.path)
  })

  test.each([
    ['LABEL', 'x'.repeat(41), 'at most 40'],
    ['LABEL', 'Sarali\nMoney', 'one line'],
    ['COLOUR', 'orange', '#ff7900'],
    ['COLOUR', '#fff', '#ff7900'],
    ['USSD', '144', '#144#'],
    ['LOGO', join(folder, 'none.png'), 'no such file'],
    ['LOGO', fileOf('logo.gif', 'GIF89a'), '.svg, .png, .webp or .jpg'],
    ['LOGO', fileOf('large.png', 'x'.repeat(50_001)), 'at most 50000 bytes'],
  ])('names a wrong %s', (name, value, words) => {
    const read = () => readConfig({ [`OPERATOR_D_${name}`]: value })
    expect(read).toThrow(ConfigError)
    expect(read).toThrow(`OPERATOR_D_${name}:`)
    expect(read).toThrow(words)
  })
})

test('the wrong faces of all operators are named at once', () => {
  const wrong = { OPERATOR_A_COLOUR: 'orange', OPERATOR_A_USSD: '144', OPERATOR_C_LOGO: 'none.gif' }
  expect(() => readConfig(wrong)).toThrow(/^OPERATOR_A_COLOUR: .+\nOPERATOR_A_USSD: .+\nOPERATOR_C_LOGO: .+$/)
})

test('two operators cannot have one name', () => {
  const same = { OPERATOR_A_LABEL: 'Wave', OPERATOR_C_LABEL: 'wave' }
  expect(() => readConfig(same)).toThrow('OPERATOR_C_LABEL: is the name of OperatorA too')
  expect(() => readConfig({ OPERATOR_B_LABEL: 'OperatorD' })).toThrow('OPERATOR_D_LABEL:')
})

test('a connected operator without a name is a warning, because payers read its neutral name', () => {
  const faces = readFaces({ OPERATOR_A_LABEL: 'Sarali Money' })
  const operators = [{ provider: 'OperatorA' }, { provider: 'OperatorB' }] as const
  expect(labelWarnings({ operators, faces })).toEqual([
    'OPERATOR_B_LABEL is not set: people read "OperatorB"',
  ])
})

test('the number ranges are a list of prefixes, each with its operator', () => {
  expect(readConfig({ NUMBER_RANGES: '7=OperatorB, 66=OperatorC' }).numberRanges).toEqual([
    { prefix: '7', provider: 'OperatorB' },
    { prefix: '66', provider: 'OperatorC' },
  ])
  const wrong = ['7', '7=', '=OperatorA', 'x=OperatorA', '+2237=OperatorA', '7=OperatorE', '7=BankTransfer']
  for (const list of [...wrong, '7=OperatorA,', '7=OperatorA;6=OperatorB', '7=OperatorA,7=OperatorB'])
    expect(() => readConfig({ NUMBER_RANGES: list })).toThrow('NUMBER_RANGES')
})

test('deliveries are retried at the times of the list', () => {
  expect(readConfig({}).deliveries).toEqual({
    retryScheduleS: [10, 60, 300, 900, 3_600, 7_200, 14_400, 28_800, 43_200, 72_000, 86_400],
    disableAfter: 20,
  })
  expect(readConfig({ WEBHOOK_RETRY_SCHEDULE: '5, 9' }).deliveries.retryScheduleS).toEqual([5, 9])
  for (const list of ['5,', '0', '1.5', '-5', 'soon', '2592001'])
    expect(() => readConfig({ WEBHOOK_RETRY_SCHEDULE: list })).toThrow('WEBHOOK_RETRY_SCHEDULE')
  expect(() => readConfig({ WEBHOOK_DISABLE_AFTER: '0' })).toThrow('WEBHOOK_DISABLE_AFTER')
})

test('a sandbox allows more requests than production; a setting decides', () => {
  expect(readConfig({}).pace).toEqual({
    writesPerSecond: 1_000,
    readsPerSecond: 2_000,
    publicPerMinute: 6_000,
    promptsPerPhone: 1_000,
    objectsPerMinute: 1_000_000,
    inFlightMax: 2_048,
  })
  expect(readConfig({ ...production, RATE_LIMIT_WRITES: '7' }).pace).toEqual({
    writesPerSecond: 7,
    readsPerSecond: 200,
    publicPerMinute: 60,
    promptsPerPhone: 5,
    objectsPerMinute: 100_000,
    inFlightMax: 512,
  })
})

test('the emails of a sandbox are readable on its machine only, unless the owner opens them', () => {
  expect(readConfig({}).mail.readers).toBe('loopback')
  expect(readConfig({ SANDBOX_MAIL: 'public' }).mail.readers).toBe('public')
  expect(() => readConfig({ SANDBOX_MAIL: 'yes' })).toThrow('SANDBOX_MAIL')
})

test('open connections are bounded in all and for each client address', () => {
  expect(readConfig({ DRAIN_DELAY_MS: '5000' }).connections).toMatchObject({ drainDelayMs: 5_000 })
  expect(readConfig({}).connections).toMatchObject({ max: 10_000, perAddressMax: 10_000 })
  expect(readConfig(production).connections).toMatchObject({ max: 10_000, perAddressMax: 2_000 })
  const set = { CONNECTIONS_MAX: '500', CONNECTIONS_PER_ADDRESS_MAX: '20' }
  expect(readConfig({ ...production, ...set }).connections).toMatchObject({ max: 500, perAddressMax: 20 })
  expect(() => readConfig({ CONNECTIONS_MAX: '0' })).toThrow('CONNECTIONS_MAX')
  expect(() => readConfig({ CONNECTIONS_PER_ADDRESS_MAX: 'many' })).toThrow('CONNECTIONS_PER_ADDRESS_MAX')
})

describe('addressesOf', () => {
  test.each([
    ['127.0.0.1', 'http://127.0.0.1:4711'],
    ['0.0.0.0', 'http://127.0.0.1:4711'],
    ['::', 'http://127.0.0.1:4711'],
    ['::1', 'http://[::1]:4711'],
    ['localhost', 'http://localhost:4711'],
  ])('a service that listens on %s is reached at %s', (host, url) => {
    expect(addressesOf(readConfig({ HOST: host }), 4711)).toEqual({ publicUrl: url, callbackUrl: url })
  })

  test('the setting PUBLIC_URL wins; operators may call back another address', () => {
    const config = readConfig({ PUBLIC_URL: 'https://pay.example', CALLBACK_URL: 'https://in.example/' })
    expect(addressesOf(config, 1)).toEqual({
      publicUrl: 'https://pay.example',
      callbackUrl: 'https://in.example',
    })
  })
})

test('the sandbox has all four operators, each at its own address', () => {
  const operators = sandboxOperators('http://127.0.0.1:9')
  expect(operators.map(({ provider }) => provider)).toEqual(providers)
  expect(new Set(operators.map(({ baseUrl }) => baseUrl)).size).toBe(4)
})

test('the sandbox knows the numbers for which the simulator plays a failure of the operator', () => {
  const failing = scenarios.filter(({ code }) => code >= '20' && code <= '27')
  expect(failing).toHaveLength(8)
  for (const { faultNumbers } of sandboxOperators('http://127.0.0.1:9'))
    for (const scenario of scenarios)
      expect([scenario.code, faultNumbers?.test(`+22370${scenario.code}0001`)]).toEqual([
        scenario.code,
        failing.includes(scenario),
      ])
  const [real] = readConfig({
    ...production,
    OPERATOR_B_DRIVER: 'checkout-session',
    OPERATOR_B_BASE_URL: 'https://op.example',
    OPERATOR_B_API_KEY: 'k',
    OPERATOR_B_WEBHOOK_SECRETS: 's',
  }).operators
  expect(real).not.toHaveProperty('faultNumbers')
})

describe('the limits of calls to an operator', () => {
  test('a real operator gets eight checkouts, four other calls and twenty calls a second', () => {
    const [operator] = readConfig({
      ...production,
      OPERATOR_B_DRIVER: 'checkout-session',
      OPERATOR_B_BASE_URL: 'https://op.example',
      OPERATOR_B_API_KEY: 'k',
      OPERATOR_B_WEBHOOK_SECRETS: 's',
      OPERATOR_B_MAX_BACKGROUND: '6',
    }).operators
    expect(operator?.limits).toEqual({
      interactiveMax: 8,
      backgroundMax: 6,
      queriesMax: 8,
      queueMax: 32,
      requestsPerSecond: 20,
      breakerOpenMs: 10_000,
    })
  })

  test('a simulated operator gets the limits of one machine, or those of the settings', () => {
    const { simulator } = readConfig({ OPERATOR_C_RPS: '7', OPERATOR_C_BASE_URL: 'https://op.example' })
    const operators = sandboxOperators('http://127.0.0.1:9', simulator?.limits)
    expect(operators.map(({ limits }) => limits.requestsPerSecond)).toEqual([2_000, 2_000, 7, 2_000])
    expect(operators[0]?.limits.breakerOpenMs).toBe(1_000)
    expect(operators[2]?.baseUrl).toMatch(/^http:\/\/127/)
    expect(() => readConfig({ OPERATOR_C_RPS: 'many' })).toThrow('OPERATOR_C_RPS:')
  })
})
