import { randomUUID } from 'node:crypto'
import { afterEach, expect, test } from 'vitest'
import { nextSlots, openAdmission, type Priority } from '../../../src/limits/admission.ts'
import { borrow } from '../../kit/client.ts'
import type { RestAnswer } from '../../kit/app.ts'
import { eventually } from '../../kit/eventually.ts'
import { customer, openFixture } from '../../kit/fixture.ts'

// More requests than can be served (see docs/design/architecture.md).

const fixture = await openFixture()
const shop = await fixture.merchant()
const { services } = fixture.app
await fixture.paid(shop)

const usual = services.admission
afterEach(() => {
  services.admission = usual
})

/** Gives the service a fixed number of slots, even on a slow machine. */
function haveSlots(count: number): void {
  services.admission = openAdmission(count, async () => {})
  services.admission.close()
}

const dashboard = () =>
  fixture.graphql('{ transactions(first: 100) { nodes { reference status amount } } }', {}, shop.token)
const read = () => fixture.rest('GET', '/transactions', { token: shop.token })
const status = () => fixture.rest('GET', '/status')
const pay = (headers: Record<string, string> = {}) =>
  fixture.rest('POST', '/pay', {
    token: shop.token,
    headers,
    body: { amount: 5_000, payment_method: 'OperatorA', customer_phone: customer('11') },
  })

const isBusy = ({ status: code, headers }: RestAnswer) => code === 503 && headers.get('retry-after') === '1'

test('of ten slots dashboards fill two, reads four, status six, and money all', async () => {
  haveSlots(10)
  const gate = Promise.withResolvers<void>()
  const running: Promise<void>[] = []
  const served: string[] = []
  for (const taken of [0, 2, 4, 6, 10]) {
    while (running.length < taken) running.push(services.admission.run('money', () => gate.promise))
    const answers: string[] = []
    for (const ask of [dashboard, read, status, pay]) {
      const answer = await ask()
      answers.push(isBusy(answer) ? '-' : String(answer.status))
    }
    served.push(answers.join(' '))
  }
  expect(served).toEqual(['200 200 200 202', '- 200 200 202', '- - 200 202', '- - - 202', '- - - -'])
  gate.resolve()
  await Promise.all(running)
  expect((await dashboard()).status).toBe(200)
})

test('a rejected request gets its reason, has written nothing and used up no key', async () => {
  haveSlots(8)
  const gate = Promise.withResolvers<void>()
  const running = Array.from({ length: 8 }, () => services.admission.run('money', () => gate.promise))
  const before = await fixture.rowCounts()
  const key = { 'Idempotency-Key': randomUUID() }
  const [rest, graphql] = await Promise.all([pay(key), dashboard()])
  expect(rest.body).toMatchObject({
    success: false,
    message: expect.stringMatching(/busy/),
    request_id: expect.any(String),
  })
  expect(graphql.body).toMatchObject({ errors: [{ extensions: { code: 'OVERLOADED', retryAfter: 1 } }] })
  expect(await fixture.rowCounts()).toEqual(before)
  gate.resolve()
  await Promise.all(running)
  expect(await pay(key)).toMatchObject({ status: 202 })
})

test('while the database stands still, reads stay within their slots and money still comes in', async () => {
  haveSlots(10)
  const owner = await borrow(fixture.database.owner)
  await owner.query('BEGIN; LOCK TABLE transaction IN ACCESS EXCLUSIVE MODE')
  const results: string[] = []
  const tell = async (kind: Priority, asked: Promise<RestAnswer>) => {
    const answer = await asked
    results.push(`${kind} ${isBusy(answer) ? 'busy' : answer.status}`)
  }
  const settled = (count: number) => eventually(() => expect(results).toHaveLength(count))
  const reads = Array.from({ length: 20 }, () => tell('read', read()))
  await settled(16)
  const payments = Array.from({ length: 20 }, () => tell('money', pay()))
  await settled(30)
  await owner.query('COMMIT')
  owner.release()
  await Promise.all([...reads, ...payments])
  const count = (what: string) => results.filter((line) => line === what).length
  expect(results.slice(0, 30).every((line) => line.endsWith('busy'))).toBe(true)
  expect(['read busy', 'read 200', 'money busy', 'money 202'].map(count)).toEqual([16, 4, 14, 6])
})

test('slots become fewer while the database is late, counted from the slots in use, and come back', () => {
  const bounds = { fewest: 10, most: 1_000 }
  const after = (samples: number, from: number, isLate: boolean) =>
    Array.from({ length: samples }).reduce<number>(
      (slots) => nextSlots({ ...bounds, slots, taken: 100, isLate }),
      from,
    )
  expect([after(1, 1_000, true), after(2, 1_000, true), after(30, 1_000, true)]).toEqual([80, 64, 10])
  expect([after(1, 10, false), after(100, 10, false)]).toEqual([10.5, 1_000])
})

test('a database that answers late makes them fewer', async () => {
  const gate = Promise.withResolvers<void>()
  const admission = openAdmission(400, () => gate.promise)
  const running = Array.from({ length: 100 }, () => admission.run('money', () => gate.promise))
  admission.check('read')
  await eventually(() => expect(() => admission.check('read')).toThrow(/busy/))
  admission.check('money')
  gate.resolve()
  await Promise.all(running)
  admission.check('read')
  admission.close()
})
