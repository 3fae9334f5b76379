import {
  getNamedType,
  type GraphQLArgument,
  isInputObjectType,
  isListType,
  isNonNullType,
  getNullableType,
  parse,
} from 'graphql'
import { describe, expect, test } from 'vitest'
import type { CheckedOperation } from '../../src/graphql/checked-operation.ts'
import { keyedInput, type ReadsAs } from '../../src/graphql/keyed-input.ts'
import { schema } from '../../src/resources/schema.ts'

// Two requests under one `Idempotency-Key` are one only where they mean the same: the second one of them is
// answered with the answer of the first one, and does not run.

/** One value of each field, and others that mean something else. */
type Samples = Readonly<Record<string, readonly [usual: unknown, ...others: unknown[]]>>

const [phone, otherPhone] = ['70000001', '70000002']
const at = ['2030-01-31T10:00:00Z', '2030-01-31T10:00:01Z', '2030-01-31T10:00:00-01:00'] as const
const method = ['OperatorA', 'OperatorB'] as const
const web = (path: string) => `https://shop.example/${path}`

const link: Samples = {
  amount: [5_000, 5_001, null],
  currency: ['XOF'],
  description: ['a', 'A', 'a ', null],
  expiresAt: [...at, null],
  title: ['a', 'b'],
  usageLimit: [1, 2, null],
}
const recipient = { account: phone, amount: 1_000, name: 'Awa', paymentMethod: 'OperatorA' }

/** The inputs of mutations. */
const inputs: Readonly<Record<string, readonly [mutation: string, samples: Samples]>> = {
  CollectPaymentInput: [
    'collectPayment',
    {
      amount: [5_000, 5_001],
      cancelUrl: [web('a'), web('A'), web('a/'), web('a?b'), null],
      currency: ['XOF'],
      customerEmail: ['awa@shop.example', 'ba@shop.example', null],
      customerPhone: [phone, otherPhone],
      description: ['a', 'b', 'a\n', null],
      paymentMethod: method,
      reference: ['a', 'A', 'a-', null],
      returnUrl: [web('a'), web('%41'), web('a%2F'), web('a/'), null],
    },
  ],
  DepositInput: [
    'deposit',
    {
      amount: [5_000, 5_001],
      currency: ['XOF'],
      customerPhone: [phone, otherPhone],
      description: ['a', 'b', null],
      paymentMethod: method,
      reference: ['a', 'A', null],
    },
  ],
  CreatePayoutInput: [
    'createPayout',
    {
      amount: [5_000, 5_001],
      beneficiaryId: [null, '1', '2'],
      currency: ['XOF'],
      destination: [null],
      destinationAccount: [null],
      destinationPhone: [phone, otherPhone],
      paymentMethod: method,
      reference: ['a', 'A', null],
      scheduledAt: [...at, null],
    },
  ],
  CreatePaymentLinkInput: ['createPaymentLink', { ...link, urlSlug: ['aaaa', 'aaab', null] }],
  UpdatePaymentLinkInput: ['updatePaymentLink', { ...link, isActive: [true, false] }],
  CreateBatchInput: [
    'createBatch',
    {
      paymentMethod: [...method, null],
      recipients: [
        [recipient],
        [],
        [recipient, recipient],
        [{ ...recipient, account: otherPhone }],
        [{ ...recipient, amount: 1_001 }],
        [{ ...recipient, name: 'Ba' }],
        [{ ...recipient, paymentMethod: null }],
        [{ ...recipient, paymentMethod: 'OperatorB' }],
      ],
      title: ['a', 'b', null],
    },
  ],
}

/** The request as the digest of a key takes it. */
async function read(document: string, variableValues: object): Promise<string> {
  const operation = { schema, document: parse(document), operationName: undefined, variableValues }
  const input = await keyedInput(operation as unknown as CheckedOperation)
  expect(input).toHaveProperty('given')
  return JSON.stringify(input, (_name, part: unknown) => (typeof part === 'bigint' ? String(part) : part))
}

describe.each(Object.entries(inputs))('of two requests with %s', (type, [mutation, samples]) => {
  const usual = Object.fromEntries(Object.entries(samples).map(([name, [value]]) => [name, value]))
  const id = mutation.startsWith('update') ? 'id: 1, ' : ''
  const document = `mutation ($input: ${type}!) { ${mutation}(${id}input: $input) { __typename } }`

  test('the samples name every field', () => {
    const made = schema.getType(type)
    expect(isInputObjectType(made) && Object.keys(made.getFields()).toSorted()).toEqual(
      Object.keys(samples).toSorted(),
    )
  })

  const pairs = Object.entries(samples).flatMap(([name, values]) =>
    values.flatMap((one, index) => values.slice(index + 1).map((other) => [name, one, other] as const)),
  )
  const readsAs = schema.getType(type)?.extensions['readsAs'] as ReadsAs
  test.each(pairs)('%s %j is another request than %j', async (name, one, other) => {
    const [a, b] = [
      { ...usual, [name]: one },
      { ...usual, [name]: other },
    ]
    for (const input of [a, b]) expect(readsAs(input)).toEqual(expect.anything())
    expect(await read(document, { input: a })).not.toBe(await read(document, { input: b }))
  })
})

/** Two values of each type of a plain argument. */
const plain: Readonly<Record<string, readonly [unknown, unknown]>> = {
  Amount: [5_000, 5_001],
  Boolean: [true, false],
  Duration: ['PT1H', 'PT2H'],
  ID: ['1', '2'],
  MemberRole: ['OWNER', 'VIEWER'],
  SafeInt: [1, 2],
  String: ['a', 'b'],
}

const mutations = Object.values(schema.getMutationType()?.getFields() ?? {})
const plainArguments = mutations.flatMap(({ name: mutation, args }) =>
  args.flatMap((arg) =>
    getNamedType(arg.type).name in plain ? [{ mutation, args, arg, name: arg.name }] : [],
  ),
)

test.each(plainArguments)(
  '$mutation with another $name is another request',
  async ({ mutation, args, arg }) => {
    const valuesOf = ({ name, type }: GraphQLArgument) => {
      const values = plain[getNamedType(type).name] ?? [name === 'input' ? {} : recipient]
      return isListType(getNullableType(type)) ? values.map((value) => [value]) : values
    }
    const isChoice = ({ type }: GraphQLArgument) => {
      const named = getNamedType(type)
      return isInputObjectType(named) && named.isOneOf
    }
    const given = args.filter((each) => !isChoice(each))
    const usual = Object.fromEntries(given.map((each) => [each.name, valuesOf(each)[0]]))
    const declared = given.map(({ name, type }) => `$${name}: ${String(type)}`).join()
    const document = `mutation (${declared}) {
    ${mutation}(${given.map(({ name }) => `${name}: $${name}`).join()}) { __typename } }`
    const others = [valuesOf(arg)[1], ...(isNonNullType(arg.type) ? [] : [null])]
    for (const other of others)
      expect(await read(document, { ...usual, [arg.name]: other })).not.toBe(await read(document, usual))
  },
)

test.each([
  ['createBatch', 'input: { title: "Primes" }', 'dryRun', 'false'],
  ['processBatch', 'id: 1', 'dryRun', 'false'],
  ['rotateWebhookSecret', 'id: 1', 'oldEndsNow', 'false'],
  [
    'createBeneficiary',
    'input: { name: "A", account: "70000001", paymentMethod: OperatorA, ',
    'category',
    'CUSTOMER',
  ],
  ['inviteMember', 'input: { name: "A", email: "a@shop.example", ', 'role', 'VIEWER'],
])(
  '%s with %s is one request without %s, with null and with its default',
  async (mutation, own, name, value) => {
    const end = own.includes('input') && !own.endsWith('}') ? ' }' : ''
    const asked = ['', `${name}: null`, `${name}: ${value}`].map((given) =>
      read(`mutation { ${mutation}(${own} ${given}${end}) { __typename } }`, {}),
    )
    expect(new Set(await Promise.all(asked)).size).toBe(1)
  },
)

test.each([
  [
    'a number',
    'destinationPhone: "70000001", paymentMethod: OperatorA',
    'mobile: { phone: "+223 70 00 00 01", paymentMethod: OperatorA }',
  ],
  ['a beneficiary', 'beneficiaryId: 1', `beneficiaryId: "${btoa('Beneficiary:1')}"`],
])('a payout to %s is one request in both forms of its destination', async (_what, older, destination) => {
  const [one, other] = [older, `destination: { ${destination} }`].map((given) =>
    read(`mutation { createPayout(input: { amount: 1000, ${given} }) { __typename } }`, {}),
  )
  expect(await one).toBe(await other)
})
