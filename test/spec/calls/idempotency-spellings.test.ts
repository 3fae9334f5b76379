import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import { eventually } from '../../kit/eventually.ts'
import { customer, openFixture } from '../../kit/fixture.ts'

// Both doors compare the meaning of a request under an `Idempotency-Key`: another spelling of the same values
// is a repetition, and other values are another request.

const fixture = await openFixture()
const shop = await fixture.merchant()
beforeAll(() => fixture.fund(shop, 1_000_000))

interface Answer {
  status: number
  text: string
  isReplayed: boolean
}

/** Sends JSON as it is spelled here. */
async function send(path: string, key: string, json: string): Promise<Answer> {
  const headers = {
    'Content-Type': 'application/json',
    Authorization: `Bearer ${shop.token}`,
    'Idempotency-Key': key,
  }
  const response = await fetch(`${fixture.url}${path}`, { method: 'POST', headers, body: json })
  const isReplayed = response.headers.get('idempotent-replayed') === 'true'
  return { status: response.status, text: await response.text(), isReplayed }
}

/** Sends two requests under one key. @returns the first answer, and what the second one is told */
async function twice(path: string, one: string, other: string): Promise<[Answer, string]> {
  const key = randomUUID()
  const first = await send(path, key, one)
  const second = await send(path, key, other)
  if (second.isReplayed && second.text === first.text) return [first, 'the first answer']
  return [first, second.text.includes('IDEMPOTENCY_KEY_REUSED') ? 'another request' : second.text]
}

const phone = customer('11')
const spaced = phone.replace(/^\+223(..)(..)(..)(..)$/, '$1 $2 $3 $4')
const collection = {
  amount: '5000',
  customerPhone: JSON.stringify(phone),
  paymentMethod: '"OperatorA"',
  returnUrl: '"https://shop.example/f%C3%AAte"',
}
type Fields = Readonly<Record<string, string>>
const objectOf = (fields: Fields) =>
  `{${Object.entries(fields)
    .map(([name, value]) => `${JSON.stringify(name)}: ${value}`)
    .join()}}`

const answerOf = '{ ... on PaymentInitiation { status reference } ... on Refusal { code message } }'
const mutation = `mutation Collect($input: CollectPaymentInput!) {
  collectPayment(input: $input) ${answerOf} }`
const asked = (query: string, variables = '{}') =>
  `{"query": ${JSON.stringify(query)}, "variables": ${variables}}`

const doors: Record<string, [path: string, write: (fields: Fields) => string]> = {
  REST: [
    '/merchant/api/pay',
    (fields) => objectOf(fields).replaceAll(/"\w+":/g, (name) => name.replaceAll(/[A-Z]/g, snake)),
  ],
  GraphQL: ['/graphql', (fields) => asked(mutation, `{"input": ${objectOf(fields)}}`)],
}
const snake = (letter: string) => `_${letter.toLowerCase()}`

describe.each(Object.entries(doors))('at %s', (_door, [path, write]) => {
  test.each<[string, Fields]>([
    ['capitals in a scheme and a host', { returnUrl: '"HTTPS://Shop.Example/f%C3%AAte"' }],
    ['a letter in place of its escape', { returnUrl: '"https://shop.example/fête"' }],
    ['a port that the scheme has anyway', { returnUrl: '"https://shop.example:443/f%C3%AAte"' }],
    ['a telephone with spaces', { customerPhone: JSON.stringify(spaced) }],
    ['a telephone with 00223', { customerPhone: JSON.stringify(phone.replace('+', '00')) }],
    ['an amount with an empty fraction', { amount: '5000.0' }],
    ['an amount with an exponent', { amount: '5e3' }],
  ])('%s is another spelling of one request', async (_what, spelled) => {
    const [first, told] = await twice(path, write(collection), write({ ...collection, ...spelled }))
    expect(first.status).toBeLessThan(300)
    expect(told).toBe('the first answer')
  })

  test('the composed form of a reference, and line breaks of Windows, are another spelling', async () => {
    const reference = `caf\u00e9 ${randomUUID()}`
    const one = { ...collection, reference: `"${reference}"`, description: '"a\\nb"' }
    const other = {
      description: '"a\\r\\nb"',
      reference: `"${reference.normalize('NFD')}"`,
      ...collection,
    }
    const [first, told] = await twice(path, write(one), write(other))
    expect(first.text).toMatch(/pending/i)
    expect(told).toBe('the first answer')
  })

  test.each<[string, Fields]>([
    ['amount', { amount: '5001' }],
    ['telephone', { customerPhone: JSON.stringify(customer('11')) }],
    ['operator', { paymentMethod: '"OperatorB"' }],
    ['path', { returnUrl: '"https://shop.example/F%C3%AAte"' }],
    ['reference', { reference: '"given-the-second-time"' }],
    ['description', { description: '"given the second time"' }],
  ])('another %s is another request', async (_what, other) => {
    const [first, told] = await twice(path, write(collection), write({ ...collection, ...other }))
    expect(first.status).toBeLessThan(300)
    expect(told).toBe('another request')
  })
})

describe('a mutation', () => {
  const literal = (amount: string, more = '') =>
    asked(`mutation { collectPayment(input: {
      paymentMethod: OperatorA, amount: ${amount}, returnUrl: "https://shop.example/fête",
      customerPhone: ${JSON.stringify(spaced)} }) ${answerOf} }${more}`)
  const input = objectOf(collection)
  const variables = `{"input": ${input}}`

  test.each([
    ['literals in place of variables', literal('5000')],
    ['comments and another name', asked(`# Paie\n${mutation.replace('Collect', 'Pay')}`, variables)],
    [
      'a variable for one field',
      asked(
        mutation.replace('$input: CollectPaymentInput!', '$amount: Amount = 5000').replace(
          '$input)',
          `{ amount: $amount, customerPhone: "${phone}", paymentMethod: OperatorA,
          returnUrl: "https://shop.example/f%C3%AAte" })`,
        ),
      ),
    ],
    [
      'a fragment for the mutation, and another operation beside it',
      asked(
        `${mutation.replace(/\{\s+(collect.*) \}$/, '{ ...Of }')} query Other { balance { available } }
         fragment Of on Mutation { collectPayment(input: $input) ${answerOf} }`,
        variables,
      ).replace('{"query"', '{"operationName": "Collect", "query"'),
    ],
    ['a variable that nothing uses', asked(mutation, `{"input": ${input}, "more": 1}`)],
  ])('with %s is the same request, if it selects the same', async (what, other) => {
    const selected = other.includes('...Of')
      ? asked(
          `mutation { ...Of } fragment Of on Mutation { collectPayment(input: { amount: 5000,
           customerPhone: "${phone}", paymentMethod: OperatorA,
           returnUrl: "https://shop.example/f%C3%AAte" }) ${answerOf} }`,
        )
      : asked(mutation, variables)
    const [first, told] = await twice('/graphql', selected, other)
    expect([what, first.text]).toEqual([what, expect.stringContaining('PENDING')])
    expect(told).toBe('the first answer')
  })

  test.each([
    ['another amount', literal('5001')],
    ['another selection', asked(mutation.replace('reference }', 'reference databaseId }'), variables)],
    ['another alias', asked(mutation.replace('collectPayment(', 'paid: collectPayment('), variables)],
    [
      'another value of a directive',
      asked(
        mutation
          .replace('$input: ', '$no: Boolean = true, $input: ')
          .replace('status reference', 'status reference @skip(if: $no)'),
        variables,
      ),
    ],
  ])('with %s is another request', async (_what, other) => {
    const [first, told] = await twice('/graphql', asked(mutation, variables), other)
    expect(first.text).toContain('PENDING')
    expect(told).toBe('another request')
  })

  test('that selects by a variable is another request with another value of it', async () => {
    const query = mutation
      .replace('$input: ', '$no: Boolean!, $input: ')
      .replace('status reference', 'status reference @skip(if: $no)')
    const selecting = (no: boolean) => asked(query, `{"no": ${no}, "input": ${input}}`)
    expect((await twice('/graphql', selecting(true), selecting(true)))[1]).toBe('the first answer')
    expect((await twice('/graphql', selecting(true), selecting(false)))[1]).toBe('another request')
  })

  test('with variables that do not fit leaves the key free', async () => {
    const key = randomUUID()
    const wrong = await send('/graphql', key, asked(mutation, '{"input": {"amount": 0.5}}'))
    expect(wrong.text).toContain('errors')
    const { text, isReplayed } = await send('/graphql', key, asked(mutation, variables))
    expect([text, isReplayed]).toEqual([expect.stringContaining('PENDING'), false])
  })

  test('that refunds is compared by the meaning of its arguments', async () => {
    const { transaction_id: id } = await fixture.paid(shop, { customer_phone: customer('00') })
    await eventually(async () => expect(await fixture.statusOf(shop, id)).toBe('success'))
    const global = Buffer.from(`Transaction:${id as number}`).toString('base64')
    const refund = (of: string, reference: string, amount = 1_000) =>
      asked(
        `mutation { refundTransaction(id: "${of}", amount: ${amount}, reference: "${reference}")
        ${answerOf} }`,
      )
    const reference = `caf\u00e9 ${randomUUID()}`
    const one = refund(String(id), reference)
    const key = randomUUID()
    const first = await send('/graphql', key, one)
    expect(first.text).toContain('SUCCESS')
    for (const other of [refund(global, reference), refund(String(id), reference.normalize('NFD'))])
      expect(await send('/graphql', key, other)).toEqual({ ...first, isReplayed: true })
    expect((await send('/graphql', key, refund(String(id), reference, 1_001))).text).toContain('KEY_REUSED')
  })
  test('that makes or fills a batch is compared by the meaning of its recipients', async () => {
    const row = (account: string, amount = 1_000) => ({
      name: 'Awa',
      account,
      amount,
      paymentMethod: 'OperatorA',
    })
    const create = (recipient: object, dryRun = false) =>
      asked(
        `mutation ($input: CreateBatchInput!, $dryRun: Boolean) {
          createBatch(input: $input, dryRun: $dryRun) { ... on BatchPayload { batch { databaseId } } } }`,
        JSON.stringify({ input: { title: 'Paie', recipients: [recipient] }, dryRun }),
      )
    const [first, told] = await twice('/graphql', create(row(phone)), create(row(spaced)))
    expect(told).toBe('the first answer')
    for (const other of [create(row(phone, 1_001)), create(row(customer('11'))), create(row(phone), true)])
      expect((await twice('/graphql', create(row(phone)), other))[1]).toBe('another request')

    const { databaseId } = JSON.parse(first.text).data.createBatch.batch
    const fill = (id: unknown, recipient: object) =>
      asked(
        `mutation ($id: ID!, $recipients: [RecipientInput!]!) {
          addRecipients(id: $id, recipients: $recipients) { ... on BatchPayload { batch { databaseId } } } }`,
        JSON.stringify({ id, recipients: [recipient] }),
      )
    const global = Buffer.from(`Batch:${databaseId}`).toString('base64')
    const added = await twice('/graphql', fill(databaseId, row(phone)), fill(global, row(spaced)))
    expect(added[1]).toBe('the first answer')
    const other = await twice('/graphql', fill(databaseId, row(phone)), fill(databaseId, row(phone, 1_001)))
    expect(other[1]).toBe('another request')
  })
})
