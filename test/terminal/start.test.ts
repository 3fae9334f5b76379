import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { eventuallyGives } from '../kit/eventually.ts'
import { createTestDatabase } from '../kit/database.ts'
import { admin, call, type Home, newHome, processesOf, type Running, run } from '../kit/program.ts'
import { dashboardToken, enterBy, signIn, startProgram } from '../kit/program.ts'

const homes: Home[] = []
const services: Running[] = []

afterEach(async () => {
  await Promise.all(services.map((service) => service.end('SIGTERM')))
  for (const service of services.splice(0)) service.destroy()
  await Promise.all(homes.splice(0).map((home) => home.remove()))
})

async function openHome(more?: Record<string, string>): Promise<Home> {
  const home = await newHome(more)
  homes.push(home)
  return home
}

async function start(home: Home, command?: [string, ...string[]]): Promise<Running> {
  const service = await startProgram(home, command)
  services.push(service)
  return service
}

/** The commands of the first screen, as a person would copy them. */
function commandsOf(screen: string): string[] {
  const lines = screen.split('\n').map((line) => line.trim())
  return lines.filter((line) => /^(TOKEN=|curl )/.test(line))
}

test('a machine whose clock is a day ahead of the database does not start, and says what to do', async () => {
  const database = await createTestDatabase()
  const home = await openHome({
    DATABASE_URL: database.url,
    NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(
      'const real = Date.now; Date.now = () => real() + 90_000_000',
    )}`,
  })
  const refused = await run(home, 'npm', ['start'])
  expect(refused).toMatchObject({ code: 1, stdout: expect.not.stringContaining('mk_') })
  expect(refused.stderr).toContain('is 90000 s ahead of the clock of the database server. Set both by NTP')
  await database.drop()
})

test('npm start shows every address, and commands that make a first payment', async () => {
  const home = await openHome()
  const service = await start(home, ['npm', 'start'])
  const { screen } = service
  expect(screen).toContain(`${home.url}/merchant/api`)
  expect(screen).toContain(`${home.url}/graphql`)
  expect(screen).toContain(`${home.operatorsUrl}/phone`)
  expect(screen).toMatch(/API key +mk_\S+/)
  expect(screen).toMatch(/API secret +ms_\S{20,}/)

  const commands = commandsOf(screen)
  expect(commands).toHaveLength(3)
  const pasted = await run(home, 'bash', ['-c', commands.join('\n echo\n')])
  const [initiated, asked] = pasted.stdout
    .trim()
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line))
  expect(initiated).toMatchObject({ success: true, data: { status: 'pending', amount: 5_000 } })
  expect(asked).toMatchObject({ status: false, state: 'pending' })
  const again = () => run(home, 'bash', ['-c', commands[2] ?? ''])
  const paid = await eventuallyGives(again, ({ stdout }) => JSON.parse(stdout).state !== 'pending')
  expect(JSON.parse(paid.stdout)).toMatchObject({ status: true, state: 'success' })

  // An address as a terminal reads it: it ends at a space, in a command also at a quote.
  const shown = [...screen.matchAll(/https?:[^\s'"]+/g)].map(([address]) => address)
  expect(shown).toContain(`${home.url}/schema.graphql`)
  const statuses = await Promise.all(
    [`${home.url}/`, ...shown].map(async (page) => {
      const { status } = await fetch(page, { headers: { Accept: 'text/html' } })
      return [page, status]
    }),
  )
  // The address of the REST API itself is only the base of its paths.
  expect(statuses.filter(([, status]) => status === 404)).toEqual([[`${home.url}/merchant/api`, 404]])
  expect((await fetch(`${home.operatorsUrl}/phone`)).status).toBe(200)
  // No line that looks like a fault stands below the first screen.
  expect(service.errors()).not.toMatch(/"level":[456]0/)
})

test('a second start finds the records of the first one, and shows no secret', async () => {
  const home = await openHome()
  const first = await start(home)
  const [key = '', secret = ''] = [/API key +(\S+)/, /API secret +(\S+)/].map(
    (p) => p.exec(first.screen)?.[1] ?? '',
  )
  const token = await signIn(home, key, secret)
  const order = {
    amount: 700,
    customer_phone: '70000001',
    payment_method: 'OperatorA',
    reference: 'first-life',
  }
  await call(home, 'POST', '/pay', token, order)
  const paid = () => call(home, 'GET', '/payment/status/first-life')
  await eventuallyGives(paid, ({ body }) => body['state'] === 'success')
  expect(await first.end('SIGTERM')).toBe(0)
  const person = ['--merchant', '1', '--email', 'a@b.ml', '--name', 'Awa']
  const invited = await admin(home, 'owner', 'invite', ...person, '--json')

  const service = await start(home)
  // The link of the first screen is another one now; an invitation made while the service was stopped works.
  const [before, now] = [first, service].map(({ screen }) => dashboardToken(screen))
  expect(await enterBy(home, 'sandboxSignIn', { token: before })).toEqual({ code: 'INVALID_INPUT' })
  expect(await enterBy(home, 'sandboxSignIn', { token: now })).toEqual({ name: 'Awa Traoré', role: 'OWNER' })
  const { invitation } = JSON.parse(invited.stdout)
  const accepted = { token: invitation, password: 'le soleil de Bamako' }
  expect(await enterBy(home, 'acceptInvitation', accepted)).toEqual({ name: 'Awa', role: 'OWNER' })
  expect(service.screen).not.toContain(secret)
  expect(service.screen).not.toMatch(/API secret/)
  expect((await paid()).body).toMatchObject({ state: 'success' })
  // The token of the first run is valid in the next one, and the money is there.
  expect((await call(home, 'GET', '/balance', token)).body['data']).toMatchObject({ balance: 1_000_700 })
  expect(await service.end('SIGTERM')).toBe(0)
})

test('of nodes on one database the last link works; an inactive account gets none', async () => {
  const database = await createTestDatabase()
  try {
    const shared = { DATABASE_URL: database.url, SECRET_KEY: 'a secret of all nodes, of thirty-two bytes' }
    const one = await openHome(shared)
    const { screen } = await start(one)
    const two = await openHome({ ...shared, OPERATORS_URL: one.operatorsUrl })
    const second = await start(two)
    const [before, last] = [screen, second.screen].map(dashboardToken)
    expect(await enterBy(two, 'sandboxSignIn', { token: before })).toEqual({ code: 'INVALID_INPUT' })
    expect(await enterBy(one, 'sandboxSignIn', { token: last })).toMatchObject({ role: 'OWNER' })
    expect(await second.end('SIGTERM')).toBe(0)
    await admin(one, 'merchant', 'deactivate', '--id', '1')
    const third = await start(two)
    expect(third.screen).toContain('GraphQL')
    expect(third.screen).not.toContain('Dashboard')
  } finally {
    await Promise.all(services.map((service) => service.end('SIGTERM')))
    await database.drop()
  }
})

test('SIGTERM ends npm start with code 0, and leaves no process behind', async () => {
  const home = await openHome()
  const service = await start(home, ['npm', 'start'])
  expect(await processesOf(home)).not.toHaveLength(0)
  expect(await service.end('SIGTERM')).toBe(0)
  expect(await processesOf(home)).toEqual([])
  expect(existsSync(join(home.dataDir, 'pg/cluster/postmaster.pid'))).toBe(false)
  await expect(fetch(home.operatorsUrl)).rejects.toThrow('fetch failed')
})

/** The first words of a line of the log, without the job, the error and the time that it is about. */
function sentenceOf(line: string): string {
  const { msg = '' } = line.startsWith('{') ? (JSON.parse(line) as { msg?: string }) : { msg: line }
  return msg.replace(/:.*/s, '').replaceAll(/\d+/g, '')
}

test('Ctrl-C ends in four lines with code 0; in few and short ones where PostgreSQL ends first', async () => {
  const home = await openHome()
  const first = await start(home, ['npm', 'start'])
  expect(await first.endGroup('SIGINT')).toBe(0)
  // A busy machine may let the listener wait, which is logged.
  const printed = first.errors().trim().split('\n')
  expect(printed.filter((line) => !line.includes('database listener cannot connect'))).toEqual([
    expect.stringMatching(/^PostgreSQL started in /),
    expect.stringMatching(/^SIGINT: finishing the work under way/),
    // Each stop writes the end of every audit log outside of the database.
    expect.stringContaining('audit log head'),
    expect.stringMatching(/^PostgreSQL stopped in /),
  ])
  expect(await processesOf(home)).toEqual([])

  const second = await start(home, ['npm', 'start'])
  const lock = readFileSync(join(home.dataDir, 'pg/cluster/postmaster.pid'), 'utf8')
  const postmaster = Number.parseInt(lock, 10)
  const { stdout } = await run(home, 'ps', ['-eo', 'pid=,ppid='])
  const sessions = [...stdout.matchAll(/(\d+) +(\d+)/g)].filter(
    ([, , parent]) => Number(parent) === postmaster,
  )
  for (const [, pid] of sessions) process.kill(Number(pid), 'SIGTERM')
  process.kill(postmaster, 'SIGTERM')
  expect(await second.endGroup('SIGTERM')).toBe(0)
  const lines = second.errors().trim().split('\n')
  expect(lines.filter((line) => line.length > 500)).toEqual([])
  const signalled = lines.findIndex((line) => line.startsWith('SIGTERM: finishing the work under way'))
  // Each job that runs at this moment tells its own failure, and a busy machine runs many of them at once:
  // only different sentences are counted.
  expect(new Set(lines.slice(0, signalled).map(sentenceOf)).size).toBeLessThan(15)
  // A session that PostgreSQL had not ended yet may still give the heads of the audit logs.
  expect(lines.slice(signalled + 1).filter((line) => !line.includes('audit log head'))).toEqual([
    expect.stringMatching(/^PostgreSQL stopped in /),
  ])
  expect(await processesOf(home)).toEqual([])
})

test('a start that is impossible says why and what to do, and leaves no process running', async () => {
  const home = await openHome()
  const port = Number(new URL(home.url).port)
  const program = createServer().listen(port, '127.0.0.1')
  await once(program, 'listening')
  await expect(start(home)).rejects.toThrow(
    `Another program uses port ${port} of 127.0.0.1. ` +
      `End that program, or choose another port: PORT=${port + 1} npm start\n`,
  )
  program.close()
  await eventuallyGives(
    () => processesOf(home),
    (left) => left.length === 0,
  )

  await start(home)
  const running = await processesOf(home)
  const second = { ...home, environment: { ...home.environment, PORT: String(port + 1) } }
  await expect(start(second)).rejects.toThrow(
    `The sandbox in ${home.dataDir} is open already, at ${home.url}. ` +
      `End it first, or open another one beside it: DATA_DIR=.data-2 PORT=${port + 2} npm start\n`,
  )
  await eventuallyGives(
    () => processesOf(home),
    (left) => left.join() === running.join(),
  )

  const nowhere = { ...home, environment: { ...home.environment, DATA_DIR: '/dev/null/data' } }
  await expect(start(nowhere)).rejects.toThrow(
    /wrong:\nDATA_DIR: this account cannot write in \/dev\/null\/data .+: DATA_DIR=\S+ npm start\n$/,
  )
})

test('with DATABASE_URL that server is used, and no embedded one is started', async () => {
  const database = await createTestDatabase()
  try {
    const home = await openHome({ DATABASE_URL: database.url })
    const service = await start(home)
    expect(existsSync(join(home.dataDir, 'pg'))).toBe(false)
    expect((await processesOf(home)).filter((line) => line.includes('postgres'))).toEqual([])
    const { rows } = await database.owner.query('select name from merchant')
    expect(rows).toEqual([{ name: 'Sandbox merchant' }])

    expect(await admin(home, 'ledger', 'verify')).toMatchObject({ code: 0 })
    await database.owner.query('update merchant_balance set available = available + 1')
    const broken = await admin(home, 'ledger', 'verify', '--json')
    expect(broken.code).toBe(1)
    expect(JSON.parse(broken.stdout)).toMatchObject({ holds: false, problems: [{ merchantId: 1 }] })
    expect(await service.end('SIGTERM')).toBe(0)
  } finally {
    await database.drop()
  }
})
