import { getNamedType, type GraphQLInputType, isInputObjectType, isUnionType } from 'graphql'
import { expect, test } from 'vitest'
import { hasReference } from '../../src/graphql/idempotency.ts'
import { schema } from '../../src/resources/schema.ts'

/** Fills an argument with every field of its type, and a text for each reference. */
function filled(name: string, type: GraphQLInputType): unknown {
  const named = getNamedType(type)
  if (!isInputObjectType(named)) return name === 'reference' ? 'r' : null
  return Object.fromEntries(
    Object.values(named.getFields()).map((field) => [field.name, filled(field.name, field.type)]),
  )
}

const mutations = Object.values(schema.getMutationType()?.getFields() ?? {})
const named = mutations.filter(({ args }) =>
  JSON.stringify(args.map(({ name, type }) => filled(name, type))).includes('"r"'),
)

test('each mutation that takes a reference may be repeated with it, and refuses a second one', () => {
  expect(named.map(({ name }) => name).toSorted()).toEqual([
    'collectPayment',
    'createPayout',
    'deposit',
    'refundTransaction',
  ])
  for (const { name, args, type } of named) {
    const given = Object.fromEntries(args.map((arg) => [arg.name, filled(arg.name, arg.type)]))
    expect([name, hasReference(given)]).toEqual([name, true])
    const result = getNamedType(type)
    const members = isUnionType(result) ? result.getTypes().map((member) => member.name) : []
    expect([name, members.some((member) => /^Duplicate(?:Payout|Reference)Error$/.test(member))]).toEqual([
      name,
      true,
    ])
  }
})

test.each([
  [{}],
  [{ input: null }],
  [{ input: { reference: null } }],
  [{ reference: undefined, input: 'reference' }],
  [{ recipients: ['reference'] }],
])('without a text for a reference there is none: %j', (args) => {
  expect(hasReference(args)).toBe(false)
})
