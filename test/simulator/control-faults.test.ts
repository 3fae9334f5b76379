import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { eventuallyGives } from '../kit/eventually.ts'
import {
  addFault as fault,
  type SimulatorAnswer,
  checkoutClient,
  gsmaClient,
  type Json,
  openBench,
  send,
  word,
} from '../kit/simulator.ts'

const payer = '+22370000001'
const statusOf = (answer: Promise<SimulatorAnswer>) => answer.then(({ status }) => status)

test('the same seed strikes the same requests, in any order of arrival', async () => {
  const references = Array.from({ length: 40 }, (_, nth) => `R${nth}`)
  const struck = async (order: readonly string[], seed: number) => {
    await using bench = await openBench({ seed })
    await fault(bench, 'status', { match: { op: 'disburse' }, probability: 0.5 })
    const client = await gsmaClient(bench.url, 'd')
    const answers = await Promise.all(
      order.map(async (reference) => {
        const first = await statusOf(client.disburse(payer, { reference }))
        return [reference, first, await statusOf(client.disburse(payer, { reference }))] as const
      }),
    )
    return answers.toSorted(([one], [other]) => one.localeCompare(other))
  }
  const forwards = await struck(references, 1)
  expect(await struck(references.toReversed(), 1)).toEqual(forwards)
  expect(await struck(references, 2)).not.toEqual(forwards)
  const hits = forwards.filter(([, first]) => first === 503).length
  expect(hits).toBeGreaterThan(10)
  expect(hits).toBeLessThan(30)
})

test('chance may go by the customer’s number, under any reference', async () => {
  const numbers = Array.from({ length: 20 }, (_, nth) => `+223760000${String(nth).padStart(2, '0')}`)
  const struck = async () => {
    await using bench = await openBench({ seed: 3 })
    await fault(bench, 'status', { match: { op: 'disburse' }, probability: 0.5, draw: 'msisdn' })
    const client = await gsmaClient(bench.url, 'd')
    const answers = numbers.map((number) => statusOf(client.disburse(number, { reference: randomUUID() })))
    return await Promise.all(answers)
  }
  expect(await struck()).toEqual(await struck())
})

test('a fault strikes the customer that it names, so often as it says, until it is taken back', async () => {
  await using bench = await openBench()
  const client = await gsmaClient(bench.url, 'd')
  const match = { operator: 'OperatorD', op: ['disburse'], msisdn: payer, clientRef: 'MINE' }
  const { id } = await fault(bench, 'status', { match, times: 2 })
  const pay = (msisdn: string, reference: string) => statusOf(client.disburse(msisdn, { reference }))
  expect([await pay(payer, 'OTHER'), await pay('+22370000002', 'MINE')]).toEqual([201, 201])
  expect([await pay(payer, 'MINE'), await pay(payer, 'MINE'), await pay(payer, 'MINE')]).toEqual([
    503, 503, 201,
  ])
  expect((await bench.control('GET', '/faults')).body).toEqual([
    {
      id,
      match,
      effect: 'status',
      params: { status: 503 },
      when: 'before',
      times: 2,
      probability: 1,
      draw: 'reference',
      happened: 2,
    },
  ])
  expect((await bench.control('DELETE', `/faults/${String(id)}`)).status).toBe(204)
  expect((await bench.control('DELETE', `/faults/${String(id)}`)).status).toBe(404)
  await fault(bench, 'hang')
  await bench.control('POST', '/reset')
  expect((await bench.control('GET', '/faults')).body).toEqual([])
  expect(await pay(payer, 'MINE')).toBe(201)
})

test('taking back every fault takes nothing from the count of a test number', async () => {
  await using bench = await openBench()
  const client = await gsmaClient(bench.url, 'd')
  const pay = () => statusOf(client.disburse('+22370220100', { reference: 'TWENTY-TWO' }))
  await fault(bench, 'html')
  expect([await pay(), await pay()]).not.toContain(201)
  expect((await bench.control('DELETE', '/faults')).status).toBe(204)
  expect((await bench.control('GET', '/faults')).body).toEqual([])
  expect(await pay()).toBe(201)
  // The next fault has a name of its own: earlier counts do not apply to it.
  expect(await fault(bench, 'html')).toMatchObject({ id: 'fault-2', happened: 0 })
})

test.each([
  [{}, 'effect: one of close_before'],
  [{ effect: 'earthquake' }, 'effect: one of close_before'],
  [{ effect: 'cb_drop', match: { operator: 'OperatorC' } }, 'polled and sends no callbacks'],
  [{ effect: 'token_expired', match: { operator: 'OperatorB' } }, 'keys and no tokens'],
  [{ effect: 'link_foreign_origin', match: { operator: 'OperatorB' } }, 'carry no links'],
  [{ effect: 'no_dedupe', match: { op: 'query' } }, 'happens to collect, disburse, reverse'],
  [{ effect: 'hang', match: { op: 'steal' } }, 'match.op: collect'],
  [{ effect: 'hang', match: { phone: '1' } }, 'match.phone: not known'],
  [{ effect: 'hang', match: { operator: 'OperatorX' } }, 'match.operator'],
  [{ effect: 'hang', params: { ms: 1 } }, 'params.ms: not known'],
  [{ effect: 'delay', params: { ms: -1 } }, 'ms: out of its bounds'],
  [{ effect: 'status', params: { when: 'never' } }, 'params.when'],
  [{ effect: 'stmt_drop', times: 1 }, 'times: a statement'],
  [{ effect: 'hang', times: 0 }, 'times: out'],
  [{ effect: 'hang', probability: 2 }, 'probability: out'],
  [{ effect: 'hang', draw: 'lots' }, 'draw: reference or msisdn'],
])('%j is refused: %s', async (body, message) => {
  await using bench = await openBench()
  const answer = await bench.control('POST', '/faults', body)
  expect(answer.status).toBe(400)
  expect(answer.body['message']).toContain(message)
})

test('without the control token no fault can be asked for', async () => {
  await using bench = await openBench()
  expect((await send(bench.url, 'POST', '/_sim/faults', {}, { effect: 'hang' })).status).toBe(401)
})

test('the movements of our float add up to its balance', async () => {
  await using bench = await openBench()
  const b = checkoutClient(bench.url)
  await b.payout(payer)
  const { body } = await b.session(payer)
  await eventuallyGives(
    () => bench.control('POST', `/transactions/${word(body, 'id')}/reverse`),
    ({ status }) => status === 200,
  )
  expect((await bench.control('POST', `/transactions/${word(body, 'id')}/reverse`)).status).toBe(409)
  const all = (await bench.control('GET', '/invariants')).body
  const { OperatorB: change } = all['movement'] as Record<string, Record<string, string>>
  expect(change).toEqual({
    opening: '50000000',
    top_up: '0',
    collect: '5000',
    disburse: '-5000',
    reverse: '-5000',
    fees: '-100',
  })
  expect((all['pools'] as Json)['OperatorB']).toBe('49994900')
})
