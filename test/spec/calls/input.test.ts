import { describe, expect, test } from 'vitest'
import { customer, each, openFixture, perOperator } from '../../kit/fixture.ts'

const fixture = await openFixture()
const shop = await fixture.merchant()

/** `POST /pay` with a body written by hand, where `JSON.stringify` cannot say it. */
const raw = (body: string) => fixture.rest('POST', '/pay', { token: shop.token, body })
const bodyWith = (field: string, json: string) => {
  const fields = { amount: '5000', customer_phone: `"${customer('11')}"`, payment_method: '"OperatorA"' }
  const all = Object.entries({ ...fields, [field]: json })
  return `{${all.map(([name, value]) => `${JSON.stringify(name)}: ${value}`).join(', ')}}`
}

/** The result of a value of a field: the status, the named fields, and the rows that it left. */
async function outcomeOf(field: string, json: string) {
  const before = await fixture.rowCounts()
  const { status, body } = await raw(bodyWith(field, json))
  const after = await fixture.rowCounts()
  const fields = body['errors']?.map((problem: { field: string }) => problem.field)
  return { status, fields, left: JSON.stringify(after) === JSON.stringify(before) ? 'nothing' : after }
}
const refusedFor = (field: string) => ({ status: 400, fields: [field], left: 'nothing' })

describe('amounts', () => {
  test.each([
    '"5000"',
    '1000.5',
    '0.01',
    '100.1',
    '99',
    '0',
    '-0',
    '-5000',
    '1000001',
    '1e7',
    '1e999',
    '-1e999',
    '9007199254740993',
    '123456789012345678901234567890',
    'null',
    'true',
    '[5000]',
    '{"value": 5000}',
    '""',
  ])('400 amount %s', async (json) => expect(await outcomeOf('amount', json)).toEqual(refusedFor('amount')))

  test.each([
    ['100', 100],
    ['1000000', 1_000_000],
    ['1e3', 1_000],
    ['1000.0', 1_000],
    ['5000', 5_000],
  ])('202 amount %s', async (json, amount) => {
    const { status, body } = await raw(bodyWith('amount', json))
    expect(status).toBe(202)
    expect(body['data'].amount).toBe(amount)
  })

  test('a fraction is refused with the reason that XOF has no minor unit', async () => {
    expect((await raw(bodyWith('amount', '1000.5'))).body['message']).toContain('XOF has no minor unit')
  })

  test('a refusal names the minimum', async () => {
    expect((await raw(bodyWith('amount', '99'))).body['message']).toContain('100 XOF')
  })

  test.each(['NaN', 'Infinity', '0x64', '1_000', '+5000', '05000', '.5', '5000.'])(
    '400 %s is not even JSON',
    async (json) => {
      expect((await raw(bodyWith('amount', json))).status).toBe(400)
    },
  )
})

describe('phone numbers', () => {
  test.each([
    (digits: string) => `+223${digits}`,
    (digits: string) => `223${digits}`,
    (digits: string) => `00223${digits}`,
    (digits: string) => digits,
    (digits: string) => `+223 ${digits.replace(/(..)(?=.)/g, '$1 ')}`,
    (digits: string) => digits.replace(/(..)(?=.)/g, '$1-'),
    (digits: string) => `00 223 ${digits}`,
    (digits: string) => `  ${digits} `,
  ])('every usual notation is accepted and kept as E.164: %s', async (write) => {
    const phone = customer('11')
    const { transaction_id: id } = await fixture.paid(shop, { customer_phone: write(phone.slice(4)) })
    expect((await fixture.record(shop, id))['customer_phone']).toBe(phone)
  })

  test.each(['50000001', '60000001', '70110001', '82000001', '90000001'])(
    'no number is refused because of its network prefix: %s',
    async (digits) => {
      const answers = await perOperator(async (operator) => {
        const answer = await fixture.pay(shop, { customer_phone: digits, payment_method: operator })
        return answer.status
      })
      expect(answers).toEqual(each(202))
    },
  )

  test.each([
    '""',
    '"7011000"',
    '"701100011"',
    '"+33612345678"',
    '"+22170110001"',
    '"+22320212223"',
    '"+22570110001"',
    '"70 11 00 0x"',
    '"+223+70110001"',
    '"tel:+22370110001"',
    '"٧٠١١٠٠٠١"',
    '"70110001;ext=1"',
    '"70110001\\u0000"',
    '"70110001\\n"',
    '70110001',
    'null',
    '["70110001"]',
    `"${'7'.repeat(5_000)}"`,
  ])('400 customer_phone %s', async (json) =>
    expect(await outcomeOf('customer_phone', json)).toEqual(refusedFor('customer_phone')),
  )
})

describe('references', () => {
  test.each([
    ['one character', 'x'],
    ['100 characters', 'r'.repeat(100)],
    ['100 characters of two units each', '😀'.repeat(100)],
    ['slashes', 'a/b//c/'],
    ['a percent sign', '100%'],
    ['text that looks encoded', '%2Fetc%41'],
    ['unicode', 'Réf n° 7 — ߒߞߏ 日本'],
    ['question and hash', 'a?b=c&d#e'],
    ['quotes', `'"; DROP TABLE transaction; --`],
    ['a plus and spaces', 'a + b'],
    ['a backslash', 'a\\b'],
    ['dots', '...'],
    ['a semicolon and a colon', 'a;b:c'],
    ['braces', '{reference}'],
  ])('%s: accepted, kept and found in every path', async (_what, reference) => {
    const { transaction_id: id, reference: kept } = await fixture.paid(shop, { reference })
    expect(kept).toBe(reference)
    expect((await fixture.record(shop, id))['reference']).toBe(reference)
    const { status, body } = await fixture.check(reference)
    expect(status).toBe(200)
    expect(body['state']).toBe('pending')
    const list = await fixture.rest('GET', `/transactions?reference=${encodeURIComponent(reference)}`, shop)
    expect(list.body['data'].transactions.map((row: { id: number }) => row.id)).toEqual([id])
    expect((await fixture.pay(shop, { reference })).status).toBe(409)
  })

  test.each([
    ['empty', '""'],
    ['spaces alone', '"   "'],
    ['101 characters', `"${'r'.repeat(101)}"`],
    ['NUL', '"a\\u0000b"'],
    ['a line feed', '"a\\nb"'],
    ['a tab', '"a\\tb"'],
    ['delete', '"a\\u007fb"'],
    ['an escape', '"a\\u001b[31mb"'],
    ['half a character', '"a\\ud800b"'],
    ['the other half', '"a\\udc00"'],
    ['a zero-width space', '"a\\u200bb"'],
    ['a change of writing direction', '"a\\u202eb"'],
    ['a line separator', '"a\\u2028b"'],
    ['a byte order mark', '"\\ufeffa"'],
    ['a number', '7'],
    ['a list', '["a"]'],
    ['an object', '{"a": 1}'],
    ['true', 'true'],
  ])('400 %s', async (_what, json) =>
    expect(await outcomeOf('reference', json)).toEqual(refusedFor('reference')),
  )

  test.each(['%00', 'a%0Ab', '%ED%A0%80', 'r'.repeat(101), '%20%20'])(
    'a path with an impossible reference is 400 or 404, never 500: %s',
    async (path) => {
      const { status, body } = await fixture.rest('GET', `/payment/status/${path}`)
      expect([400, 404]).toContain(status)
      expect(body['success']).toBe(false)
    },
  )

  test.each(['%', '%zz', '%E0%A4%A'])('a path with a broken escape is 400 or 404: %s', async (path) => {
    expect([400, 404]).toContain((await fixture.rest('GET', `/payment/status/${path}`)).status)
  })
})

describe('other fields', () => {
  test.each([
    ['currency', '"EUR"'],
    ['currency', '"xof"'],
    ['currency', '""'],
    ['currency', '952'],
    ['customer_email', '"nobody"'],
    ['customer_email', '"a@b"'],
    ['customer_email', `"${'a'.repeat(250)}@example.com"`],
    ['customer_email', '7'],
    ['description', `"${'d'.repeat(256)}"`],
    ['description', '"a\\u0000"'],
    ['description', '["a"]'],
    ['return_url', '"javascript:alert(1)"'],
    ['return_url', '"/relative"'],
    ['return_url', '"ftp://shop.example/"'],
    ['return_url', `"https://shop.example/${'a'.repeat(2_048)}"`],
    ['cancel_url', '"data:text/html,x"'],
    ['cancel_url', 'false'],
    ['return_url', '"https:/shop.example/"'],
    ['cancel_url', '"https://shop.example:0/"'],
    ['payment_method', '{"toString": 1}'],
    ['payment_method', '"__proto__"'],
    ['payment_method', '"constructor"'],
    ['payment_method', '["OperatorA"]'],
  ])('400 %s %s', async (field, json) => expect(await outcomeOf(field, json)).toEqual(refusedFor(field)))

  test('null is as good as absent where a field is optional', async () => {
    const { status } = await fixture.pay(shop, {
      currency: null,
      customer_email: null,
      description: null,
      reference: null,
      return_url: null,
      cancel_url: null,
    })
    expect(status).toBe(202)
  })

  test('unknown fields are ignored and not kept', async () => {
    const { transaction_id: id, status } = await fixture.paid(shop, {
      status: 'success',
      id: 1,
      merchant_id: 999,
      amount_xof: 1,
      colour: { deep: ['red'] },
    })
    expect(status).toBe('pending')
    const text = JSON.stringify(await fixture.record(shop, id))
    for (const word of ['colour', 'amount_xof', '999']) expect(text).not.toContain(word)
  })

  test('a field with its GraphQL name is an unknown one', async () => {
    const { status, body } = await raw(
      bodyWith('customer_phone', 'null').replace('{', '{"customerPhone": "70110001", '),
    )
    expect(status).toBe(400)
    const message = 'is required: write customer_phone, not "customerPhone"'
    expect(body['errors']).toEqual([{ field: 'customer_phone', message }])
  })

  test.each(['amount', 'am\\u006funt'])('400 a field that comes twice, as %s', async (again) => {
    const { status, body } = await raw(bodyWith('amount', '5000').replace('{', `{"${again}": 500, `))
    expect([status, body['errors']]).toEqual([400, [{ field: '', message: 'The body names "amount" twice' }]])
  })

  test('the same name in two objects is no repetition', async () => {
    expect((await raw(bodyWith('colour', '[{"amount": 1}, {"amount": 2}, "amount"]'))).status).toBe(202)
  })
})

describe('hostile JSON', () => {
  test.each(['__proto__', 'constructor', 'prototype', 'toString', 'hasOwnProperty'])(
    'a field %s is an unknown one and changes nothing',
    async (name) => {
      const { status } = await raw(bodyWith(name, '{"amount": 1, "isAdmin": true}'))
      expect(status).toBe(202)
      expect(({} as Record<string, unknown>)['isAdmin']).toBeUndefined()
    },
  )

  test('required fields are not read from __proto__', async () => {
    const hidden = bodyWith('reference', 'null')
    const { status, body } = await raw(`{"__proto__": ${hidden}}`)
    expect(status).toBe(400)
    expect(body['errors']).toHaveLength(3)
  })

  test.each([
    ['lists', '['.repeat(30_000) + ']'.repeat(30_000)],
    ['objects', `${'{"a":'.repeat(10_000)}1${'}'.repeat(10_000)}`],
    ['never closed', '['.repeat(50_000)],
  ])('400 nested too deep: %s', async (_what, json) => {
    const before = await fixture.rowCounts()
    expect((await raw(bodyWith('colour', json))).status).toBe(400)
    expect(await fixture.rowCounts()).toEqual(before)
  })

  test('400 quotes that never end', async () => {
    expect((await raw('"\\'.repeat(50_000))).status).toBe(400)
  })

  test('braces within text do not count as nesting', async () => {
    expect((await raw(bodyWith('description', `"${'{['.repeat(100)}"`))).status).toBe(202)
  })

  test('five thousand fields are read, nine thousand are too large', async () => {
    const many = Array.from({ length: 9_000 }, (_, i) => `"f${i}": 1`).join(', ')
    expect((await raw(bodyWith('reference', 'null').replace('{', `{${many}, `))).status).toBe(413)
    const fewer = Array.from({ length: 5_000 }, (_, i) => `"f${i}": 1`).join(', ')
    expect((await raw(bodyWith('reference', 'null').replace('{', `{${fewer}, `))).status).toBe(202)
  })
})

describe('a 4xx writes nothing', () => {
  test('and never uses up a reference', async () => {
    const reference = 'tried-in-vain'
    const before = await fixture.rowCounts()
    const tries = [
      await fixture.pay(shop, { reference, amount: 1 }),
      await fixture.pay(shop, { reference, customer_phone: '1' }),
      await fixture.pay(shop, { reference, payment_method: 'BankTransfer' }),
      await fixture.pay(shop, { reference, currency: 'EUR' }),
      await fixture.pay({ token: 'nonsense' }, { reference }),
      await fixture.rest('POST', '/pay', { token: shop.token, body: `{"reference": "${reference}"` }),
      await fixture.rest('PUT', '/pay', { token: shop.token, body: { reference } }),
      await fixture.rest('GET', '/transactions/0', shop),
      await fixture.rest('GET', '/transactions?limit=0', shop),
      await fixture.rest('GET', '/balance?payment_method=x', shop),
      await fixture.check(reference),
    ]
    expect(tries.map(({ status }) => status)).toEqual([400, 400, 400, 400, 401, 400, 405, 400, 400, 400, 404])
    expect(await fixture.rowCounts()).toEqual(before)
    await fixture.paid(shop, { reference })
  })
})
