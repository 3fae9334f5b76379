import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { sweepIdempotencyKeys } from '../../../src/idempotency/idempotency-keys.ts'
import { type App, startApp } from '../../../src/app.ts'
import { DomainError } from '../../../src/shared/errors.ts'
import type { TestMerchant } from '../../kit/app.ts'
import { customer, hour, openFixture } from '../../kit/fixture.ts'

// The header `Idempotency-Key` (see docs/design/rules.md#idempotency).

const fixture = await openFixture()
const shop = await fixture.merchant()
const { owner } = fixture.database
const { services } = fixture.app

interface Reply {
  status: number
  text: string
  headers: Headers
  body: ReturnType<typeof JSON.parse>
}

let other: App
beforeAll(async () => {
  other = await startApp({ ...services.config, port: 0 }, fixture.database.connection)
})
afterAll(() => other.close())

async function send(url: string, merchant: TestMerchant, key: string | null, body: object): Promise<Reply> {
  const response = await fetch(url, {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json',
      Authorization: `Bearer ${merchant.token}`,
      ...(key !== null && { 'Idempotency-Key': key }),
    },
    body: JSON.stringify(body),
  })
  const text = await response.text()
  return { status: response.status, text, headers: response.headers, body: JSON.parse(text) }
}

const pay = (key: string | null, body: object, merchant = shop, base = fixture.url) =>
  send(`${base}/merchant/api/pay`, merchant, key, body)

const payment = (more: object = {}) => ({
  amount: 5_000,
  payment_method: 'OperatorA',
  customer_phone: customer('11'),
  ...more,
})

const replayed = ({ headers }: Reply) => headers.get('idempotent-replayed')

/** The payments of a customer, as recorded. */
async function paymentsOf(phone: string): Promise<unknown[]> {
  const { rows } = await owner.query('SELECT id FROM transaction WHERE customer_phone = $1', [phone])
  return rows
}

/** Leaves the state of a process that died after its work and before it kept the answer. */
const forgetAnswer = (key: string, lockedForMs = -1) =>
  owner.query(
    `UPDATE idempotency_key SET answer = NULL, locked_until = clock_timestamp() + $2 * interval '1 ms'
     WHERE key = $1`,
    [key, lockedForMs],
  )

/** Pays while each change of a key of this kind meets a trigger. */
async function payDuring(when: 'DELETE' | 'UPDATE', does: string, key: string, body: object): Promise<Reply> {
  await owner.query(
    `CREATE FUNCTION meet() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ${does} END $$;
     CREATE TRIGGER meet BEFORE ${when} ON idempotency_key FOR EACH ROW EXECUTE FUNCTION meet()`,
  )
  try {
    return await pay(key, body)
  } finally {
    await owner.query('DROP FUNCTION meet CASCADE')
  }
}

describe('a repeat', () => {
  test('gets the first answer, byte for byte, and does nothing', async () => {
    const body = payment()
    const key = randomUUID()
    const first = await pay(key, body)
    const again = await pay(key, body)
    expect(first.status).toBe(202)
    expect(replayed(first)).toBeNull()
    expect(again.status).toBe(202)
    expect(again.text).toBe(first.text)
    expect(replayed(again)).toBe('true')
    expect(again.headers.get('x-request-id')).toBe(again.body.request_id)
    expect(again.headers.get('x-graphql-operation')).toBe('CollectPayment')
    expect(await paymentsOf(body.customer_phone)).toHaveLength(1)
    const prompts = await fixture.seen(body.customer_phone)
    expect(prompts.filter(({ method }) => method === 'POST')).toHaveLength(1)
  })

  test('is the same request where only its notation differs, else 400', async () => {
    const key = randomUUID()
    const body = payment({ description: 'Thé' })
    const first = await pay(key, body)
    const { customer_phone: phone, amount, ...rest } = body
    const rewritten = await pay(key, {
      customer_phone: phone.replace('+223', ''),
      unknown: 1,
      ...rest,
      amount,
    })
    expect(rewritten.text).toBe(first.text)
    const another = await pay(key, { ...body, amount: 5_001 })
    expect(another.status).toBe(400)
    expect(another.body).toMatchObject({
      success: false,
      message: expect.stringContaining('Idempotency-Key'),
    })
    expect(replayed(another)).toBeNull()
    expect((await pay(key, body)).text).toBe(first.text)
    expect(await paymentsOf(phone)).toHaveLength(1)
  })

  test('of a payment that the operator refused gets the same refusal', async () => {
    const body = payment({ customer_phone: customer('03'), reference: randomUUID() })
    const key = randomUUID()
    const [first, again] = [await pay(key, body), await pay(key, body)]
    expect(first).toMatchObject({ status: 400, body: { data: { status: 'failed' } } })
    expect(again.text).toBe(first.text)
    expect(again.status).toBe(400)
    expect(replayed(again)).toBe('true')
  })

  test('by another merchant is a request of its own', async () => {
    const neighbour = await fixture.merchant()
    const key = randomUUID()
    const body = payment()
    const answers = [await pay(key, body), await pay(key, body, neighbour)]
    expect(answers.map(({ status }) => status)).toEqual([202, 202])
    expect(answers.map(replayed)).toEqual([null, null])
    expect(await paymentsOf(body.customer_phone)).toHaveLength(2)
  })

  test('100 at once over two instances make one payment', async () => {
    for (const reference of [undefined, randomUUID()]) {
      const body = payment({ reference })
      const key = randomUUID()
      const bases = [fixture.url, other.services.addresses.publicUrl]
      const answers = await Promise.all(
        Array.from({ length: 100 }, (_, n) => pay(key, body, shop, bases[n % 2])),
      )
      const [first, ...more] = answers.filter((reply) => reply.status === 202 && replayed(reply) === null)
      expect(more).toEqual([])
      const kinds = answers.map((reply) => {
        if (reply.status === 409 && Number(reply.headers.get('retry-after')) > 0) return 'must wait'
        return reply.status === 202 && reply.text === first?.text ? 'repeated' : reply
      })
      expect(kinds.filter((kind) => kind !== 'repeated' && kind !== 'must wait')).toEqual([])
      expect((await pay(key, body)).text).toBe(first?.text)
      expect(await paymentsOf(body.customer_phone)).toHaveLength(1)
    }
  })
})

describe('a key is not used up', () => {
  test('by an invalid body', async () => {
    const key = randomUUID()
    const body = payment()
    expect(await pay(key, { ...body, amount: 1 })).toMatchObject({ status: 400 })
    expect(await pay(key, body)).toMatchObject({ status: 202 })
  })

  test('by a refusal that leaves no row', async () => {
    const taken = randomUUID()
    await fixture.paid(shop, { reference: taken })
    const key = randomUUID()
    const refused = await pay(key, payment({ reference: taken }))
    expect(refused).toMatchObject({ status: 409, body: { existing_transaction: { status: 'pending' } } })
    expect(await pay(key, payment({ reference: randomUUID() }))).toMatchObject({ status: 202 })
  })

  test('by a failure of ours: the repeat runs, once', async () => {
    const key = randomUUID()
    const body = payment({ reference: 'unlucky' })
    await owner.query(
      `ALTER TABLE transaction ADD CONSTRAINT unlucky CHECK (reference <> 'unlucky') NOT VALID`,
    )
    expect(await pay(key, body)).toMatchObject({ status: 500 })
    await owner.query('ALTER TABLE transaction DROP CONSTRAINT unlucky')
    const repaired = await pay(key, body)
    expect(repaired).toMatchObject({ status: 202 })
    expect((await pay(key, body)).text).toBe(repaired.text)
    expect(await paymentsOf(body.customer_phone)).toHaveLength(1)
  })
})

describe('where the process died', () => {
  test.each([
    ['made by us', undefined],
    ['given', randomUUID()],
  ])('after the payment, its repeat finds it by the reference %s', async (_whose, reference) => {
    const key = randomUUID()
    const body = payment({ reference })
    const first = await pay(key, body)
    await forgetAnswer(key)
    const again = await pay(key, body)
    expect(again.status).toBe(202)
    expect(again.body.data).toEqual(first.body.data)
    expect(replayed(again)).toBeNull()
    expect((await pay(key, body)).text).toBe(again.text)
    expect(await paymentsOf(body.customer_phone)).toHaveLength(1)
    const prompts = await fixture.seen(body.customer_phone)
    expect(prompts.filter(({ method }) => method === 'POST')).toHaveLength(1)
  })

  test('a repeat that is refused leaves the payment to the next one', async () => {
    const [key, body] = [randomUUID(), payment()]
    const first = await pay(key, body)
    await forgetAnswer(key)
    const spy = vi.spyOn(services.sharedStatements, 'run').mockRejectedValue(new DomainError('OVERLOADED'))
    expect(await pay(key, body)).toMatchObject({ status: 503 })
    spy.mockRestore()
    expect((await pay(key, body)).body.data).toEqual(first.body.data)
  })

  test('an older payment of the same reference is still a duplicate', async () => {
    const body = payment({ reference: randomUUID() })
    await pay(null, body)
    const key = randomUUID()
    await payDuring('DELETE', 'RETURN NULL;', key, body)
    expect((await forgetAnswer(key)).rowCount).toBe(1)
    expect(await pay(key, body)).toMatchObject({ status: 409, body: { existing_transaction: {} } })
  })

  test('its repeat waits until the process is given up for dead, then goes on', async () => {
    const key = randomUUID()
    const body = payment()
    const first = await pay(key, body)
    await forgetAnswer(key, 60_000)
    const early = await pay(key, body)
    expect(early.status).toBe(409)
    expect(early.headers.get('retry-after')).toBe('1')
    await forgetAnswer(key)
    expect((await pay(key, body)).body.data).toEqual(first.body.data)
  })

  test('or could not keep its answer, the answer goes out and the repeat finds the payment', async () => {
    const key = randomUUID()
    const body = payment()
    const first = await payDuring('UPDATE', `RAISE EXCEPTION 'the disk is full';`, key, body)
    expect(first.status).toBe(202)
    await forgetAnswer(key)
    expect((await pay(key, body)).body.data).toEqual(first.body.data)
    expect(await paymentsOf(body.customer_phone)).toHaveLength(1)
  })
})

describe('over GraphQL', () => {
  test('a mutation is repeated like a REST write', async () => {
    const key = randomUUID()
    const phone = customer('11')
    const [first, again] = [await collect(key, phone), await collect(key, phone)]
    expect(first.body.data.collectPayment.status).toBe('PENDING')
    expect(again.text).toBe(first.text)
    expect(replayed(again)).toBe('true')
    expect(again.headers.get('x-request-id')).toBe(first.headers.get('x-request-id'))
    const another = await collect(key, customer('11'))
    expect(another).toMatchObject({
      status: 400,
      body: { errors: [{ extensions: { code: 'IDEMPOTENCY_KEY_REUSED' } }] },
    })
    expect(await paymentsOf(phone)).toHaveLength(1)
  })

  test('a refusal in the result leaves the key free', async () => {
    const key = randomUUID()
    expect((await collect(key, 'no number')).body.data.collectPayment.code).toBe('INVALID_INPUT')
    expect((await collect(key, customer('11'))).body.data.collectPayment.status).toBe('PENDING')
  })

  test('money of the sandbox is given once, also after a crash', async () => {
    const key = randomUUID()
    const fund = () => gql(key, 'mutation { sandboxFund(amount: 700) }')
    const before = await fixture.available(shop)
    const first = await fund()
    await forgetAnswer(key)
    await fund()
    expect((await fund()).text).toBe((await fund()).text)
    expect(first.body.data.sandboxFund).toBe(before + 700)
    expect(await fixture.available(shop)).toBe(before + 700)
  })

  test('the clock of the sandbox is moved once, also after a crash, at the operators and here', async () => {
    const key = randomUUID()
    const advance = () => gql(key, 'mutation { sandboxAdvanceClock(by: "PT1S") }')
    const offsets = async () => {
      const { rows } = await owner.query('SELECT offset_ms FROM sandbox_clock')
      return { here: Number(rows[0]?.offset_ms ?? 0), there: await fixture.operatorsOffsetMs() }
    }
    const { here, there } = await offsets()
    expect((await advance()).body.data.sandboxAdvanceClock).toMatch(/Z$/)
    await forgetAnswer(key)
    await advance()
    expect(await offsets()).toEqual({ here: here + 1_000, there: there + 1_000 })
    // The process died between the two.
    await owner.query(`UPDATE sandbox_clock SET offset_ms = offset_ms - 1000, moves = '{}'`)
    await forgetAnswer(key)
    await advance()
    expect(await offsets()).toEqual({ here: here + 1_000, there: there + 1_000 })
  })

  test('a key belongs to one mutation, and a query takes none', async () => {
    const two = await gql(randomUUID(), 'mutation { a: sandboxFund(amount: 1) b: sandboxFund(amount: 1) }')
    expect(two.status).toBe(400)
    expect((await gql(randomUUID(), '{ balance { available } }')).status).toBe(200)
  })
})

describe('a key', () => {
  test.each(['', ' ', 'k'.repeat(256), 'clé', 'a\tb'])(
    '%j is refused with the name of the header',
    async (key) => {
      const phone = customer('11')
      const refused = await pay(key, payment({ customer_phone: phone }))
      expect(refused).toMatchObject({
        status: 400,
        body: {
          message: expect.stringContaining('Idempotency-Key'),
          errors: [{ field: 'idempotency-key', message: expect.any(String) }],
        },
      })
      expect(await paymentsOf(phone)).toEqual([])
    },
  )

  test('of 255 characters is taken', async () => {
    const key = `${randomUUID()}${'k'.repeat(219)}`
    expect(await pay(key, payment())).toMatchObject({ status: 202 })
  })

  test('leaves no answer in the database that could be read', async () => {
    const key = randomUUID()
    const { body } = await pay(key, payment())
    const { rows } = await owner.query<{ row: string }>(
      `SELECT encode(answer, 'escape') AS row FROM idempotency_key WHERE key = $1`,
      [key],
    )
    expect(rows).toHaveLength(1)
    expect(rows[0]?.row).not.toContain(body.data.reference)
  })

  test('is refused from a caller who is not signed in', async () => {
    const answer = await fixture.rest('POST', '/auth', {
      headers: {
        'X-API-Key': shop.apiKey,
        'X-API-Secret': shop.apiSecret,
        'Idempotency-Key': 'k'.repeat(300),
      },
    })
    expect(answer.status).toBe(200)
  })
})

// It moves the clock, so it is the last test of the file.
test('a key is kept for 30 days of the service, then it is new and its row is swept', async () => {
  const [kept, dropped] = [randomUUID(), randomUUID()]
  const body = payment()
  const first = await pay(kept, body)
  await pay(dropped, payment())
  await fixture.advance(30 * 24 * hour - 60_000)
  expect(await sweepIdempotencyKeys(fixture.database.database.pool)).toBe(false)
  expect((await pay(kept, body)).text).toBe(first.text)
  await fixture.advance(120_000)
  const later = await pay(kept, { ...body, amount: 6_000 })
  expect(later).toMatchObject({ status: 202, body: { data: { amount: 6_000 } } })
  await sweepIdempotencyKeys(fixture.database.database.pool)
  const { rows } = await owner.query<{ key: string }>(
    'SELECT key FROM idempotency_key WHERE key = ANY ($1)',
    [[kept, dropped]],
  )
  expect(rows.map(({ key }) => key)).toEqual([kept])
})

function collect(key: string, phone: string): Promise<Reply> {
  return gql(
    key,
    `mutation ($phone: String!) {
      collectPayment(input: { amount: 5000, customerPhone: $phone, paymentMethod: OperatorA }) {
        ... on PaymentInitiation { status reference transaction { id } }
        ... on Refusal { code message }
      }
    }`,
    { phone },
  )
}

function gql(key: string, query: string, variables: object = {}): Promise<Reply> {
  return send(`${fixture.url}/graphql`, shop, key, { query, variables })
}
