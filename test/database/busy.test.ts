import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { DatabaseError } from 'pg'
import { expect, onTestFinished, test } from 'vitest'
import { UnsafeToRepeat } from '../../src/shared/errors.ts'
import { busyRefusal, isConnectionLost } from '../../src/database/busy.ts'
import { openDatabase } from '../../src/database/client.ts'

const withCode = (code: string) => Object.assign(new DatabaseError('stated', 6, 'error'), { code })

test.each([
  ['53300', 'OVERLOADED', false],
  ['55P03', 'OVERLOADED', false],
  ['57014', 'OVERLOADED', false],
  ['57P01', 'SERVICE_DOWN', false],
  ['57P03', 'SERVICE_DOWN', false],
  ['53100', 'SERVICE_DOWN', false],
  ['57P02', 'SERVICE_DOWN', true],
  ['08006', 'SERVICE_DOWN', true],
  ['ECONNRESET', 'SERVICE_DOWN', true],
  ['EPIPE', 'SERVICE_DOWN', true],
  ['P1001', 'SERVICE_DOWN', false],
  ['P1017', 'SERVICE_DOWN', true],
  ['23505', undefined, false],
  ['40001', undefined, false],
])('the code %s gives %s', (code, refusal, isLost) => {
  expect(busyRefusal(withCode(code))?.code).toBe(refusal)
  expect(busyRefusal({ meta: { driverAdapterError: { cause: { originalCode: code } } } })?.code).toBe(refusal)
  expect(isConnectionLost(withCode(code))).toBe(isLost)
})

test('each code with which the server ends a session is no fault of the service', () => {
  const refused = Object.assign(withCode('55000'), { severity: 'FATAL' })
  expect(busyRefusal(refused)).toMatchObject({ code: 'SERVICE_DOWN', detail: { retryAfterS: 1 } })
  expect(busyRefusal(withCode('55000'))).toBe(null)
})

test('a change whose outcome is unknown gives no refusal that asks for a repetition', () => {
  const lost = new Error('Connection terminated unexpectedly')
  expect(busyRefusal(lost)?.code).toBe('SERVICE_DOWN')
  expect(busyRefusal(new UnsafeToRepeat('the connection broke', { cause: lost }))).toBe(null)
})

test('a server that does not listen is down for every way into the database', async () => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  const connection = `postgres://stranger@127.0.0.1:${port}/none`
  const database = openDatabase({ connection, poolMax: 1, role: null, log: () => {} })
  onTestFinished(() => database.close())
  const errors = await Promise.all([
    database.pool.query('SELECT').catch((error: unknown) => error),
    database.merchantPool.query('SELECT').catch((error: unknown) => error),
    database.prisma.merchant.findMany().catch((error: unknown) => error),
    database.prisma.$queryRaw`SELECT 1`.catch((error: unknown) => error),
  ])
  expect(errors.map((error) => busyRefusal(error)?.code)).toEqual(errors.map(() => 'SERVICE_DOWN'))
  expect(errors.map(isConnectionLost)).toEqual(errors.map(() => false))
})
