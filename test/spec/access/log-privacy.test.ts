import fs from 'node:fs'
import { afterAll, expect, test, vi } from 'vitest'
import { eventually } from '../../kit/eventually.ts'
import { openFixture } from '../../kit/fixture.ts'

// The service writes no whole telephone number to its log, under any failure.

const lines: string[] = []
const write = fs.writeSync.bind(fs)
const spy = vi.spyOn(fs, 'writeSync').mockImplementation(((fd: number, text: string, ...more: never[]) => {
  if (fd !== 2) return write(fd, text, ...more)
  lines.push(text)
  return Buffer.byteLength(text)
}) as typeof fs.writeSync)
afterAll(() => spy.mockRestore())

const fixture = await openFixture({ LOG_LEVEL: 'debug' })
const shop = await fixture.merchant()

test('payments under faults leave no telephone number in the log', async () => {
  const logged = () => lines.join('')
  // Failures of operators: less paid, a bad callback, a contradiction, refusals, an HTML page, a reversal.
  const numbers = ['41', '33', '35', '02', '03', '26', '40'].map((fault, nth) => `70${fault}010${nth}`)
  for (const [nth, phone] of numbers.entries()) {
    const operator = nth % 2 === 0 ? 'OperatorA' : 'OperatorC'
    await fixture.pay(shop, { customer_phone: phone, payment_method: operator })
    await fixture.pay(shop, { customer_phone: phone, payment_method: 'OperatorB' })
  }
  await eventually(() => expect(logged()).toContain('less was paid than asked'))

  // A row that the database refuses, and quotes.
  await fixture.database.owner.query(
    'ALTER TABLE transaction ADD CONSTRAINT planted CHECK (amount <> 7777) NOT VALID',
  )
  const { status } = await fixture.pay(shop, { amount: 7_777, customer_phone: '70000199' })
  expect(status).toBe(500)
  expect(logged()).toContain('planted')
  expect(logged()).toContain('23514')
  expect(logged()).not.toContain('Failing row')
  // A log entry without a rule of its own.
  fixture.app.services.log.warn({ payer: { account: '+22370000199' } }, 'asked 70000199 again')

  for (const phone of [...numbers, '70000199']) expect(logged()).not.toContain(phone)
  expect(logged()).not.toMatch(/\+223\d/)
  expect(logged()).toMatch(/\+223\*{6}\d\d/)
})
