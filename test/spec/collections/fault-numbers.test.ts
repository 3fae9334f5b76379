import { expect, test } from 'vitest'
import { scenarios } from '../../../src/simulator/scenarios.ts'
import { providers } from '../../../src/shared/providers.ts'
import { customer, openFixture, second } from '../../kit/fixture.ts'

const fixture = await openFixture()

/** Test numbers for which the simulator plays a failure of the operator: 20 to 27. */
const faults = scenarios.map(({ code }) => code).filter((code) => code >= '20' && code <= '27')

test('numbers that play a failure of the operator refuse no payment to another number', async () => {
  const [healthy, faulty] = [await fixture.merchant(), await fixture.merchant()]
  await fixture.fund(healthy, 1_000_000)
  const failing = perOperatorAndCode(3).map((body) => fixture.pay(faulty, body))
  const statuses: string[] = []
  for (let round = 0; round < 4; round += 1) {
    const answers = await Promise.all(
      providers.flatMap((operator) => [
        fixture.pay(healthy, at(operator, '00')),
        fixture.deposit(healthy, at(operator, '00')),
      ]),
    )
    statuses.push(...answers.map(({ status, body }) => `${status} ${body.message ?? body['data'].status}`))
    const { body } = await fixture.rest('GET', '/status')
    for (const row of body['data'].operators) statuses.push(`${row.payment_method} ${row.collect}`)
    await fixture.advance(10 * second)
  }
  expect([...new Set(statuses)].toSorted()).toEqual([
    '200 success',
    '202 pending',
    ...providers.map((operator) => `${operator} operational`),
  ])
  await Promise.all(failing)
})

const at = (operator: string, code: string) => ({
  amount: 1_000,
  payment_method: operator,
  customer_phone: customer(code),
})

const perOperatorAndCode = (times: number) =>
  Array.from({ length: times }, () =>
    providers.flatMap((operator) => faults.map((code) => at(operator, code))),
  ).flat()
