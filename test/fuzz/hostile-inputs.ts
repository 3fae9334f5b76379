import fc from 'fast-check'
import {
  getNamedType,
  getNullableType,
  type GraphQLInputType,
  isEnumType,
  isInputObjectType,
  isListType,
  isNonNullType,
} from 'graphql'

/** Text that has broken other systems: what cannot be stored, shown, compared or put into a query. */
const hostileTexts = [
  '',
  ' ',
  '\u0000',
  'a\u0000b',
  '\ud800',
  '\udfff\ud800',
  '\u202ereversed',
  '\ufeff',
  'é'.normalize('NFD'),
  '👩‍👩‍👧‍👦',
  'x'.repeat(101),
  'x'.repeat(9_000),
  "'; DROP TABLE transaction; --",
  '$1',
  '%00',
  '../../etc/passwd',
  '.',
  '..',
  '__proto__',
  'constructor',
  'toString',
  'NaN',
  'Infinity',
  '1e999',
  '0x10',
  '-1',
  '1.5',
  '9007199254740993',
  '9223372036854775808',
  '99999999999999999999999999',
  'true',
  'null',
  '{}',
  '[]',
  '${1+1}',
  '<script>alert(1)</script>',
  '2026-02-30',
  '-000001-01-01T00:00:00Z',
  '+275760-09-13T00:00:00.001Z',
  'P99999999D',
]

const hostileNumbers = [
  0,
  -0,
  -1,
  0.5,
  1e21,
  1e308,
  2 ** 31,
  2 ** 31 - 1,
  -(2 ** 31),
  2 ** 53,
  2 ** 53 - 1,
  2 ** 63,
]

/** As the unit `binary` of fast-check, which first makes a table of all of them. */
const codePoint = fc
  .integer({ min: 0, max: 0x10_ff_ff - 0x8_00 })
  .map((n) => String.fromCodePoint(n < 0xd8_00 ? n : n + 0x8_00))

export const hostileText = fc.oneof(
  fc.constantFrom(...hostileTexts),
  fc.string({ maxLength: 40 }),
  fc.string({ unit: codePoint, maxLength: 40 }),
)

/** Any JSON value, the odd ones often. */
export const hostileValue: fc.Arbitrary<unknown> = fc.oneof(
  { weight: 4, arbitrary: hostileText },
  { weight: 3, arbitrary: fc.constantFrom(...hostileNumbers) },
  { weight: 2, arbitrary: fc.double({ noNaN: true }) },
  { weight: 1, arbitrary: fc.constantFrom(null, true, false, [], {}, [[]], [null]) },
  { weight: 1, arbitrary: fc.jsonValue({ maxDepth: 3 }) },
)

const dayMs = 86_400_000

/** The usual values of a field by its name, so that inputs pass the first check. */
export const usual: Record<string, fc.Arbitrary<unknown>> = {
  amount: fc.integer({ min: 100, max: 1_000_000 }),
  customerPhone: fc.constantFrom('70000001', '+22370020000', '0022376123456', '76 12 34 56', '70030000'),
  paymentMethod: fc.constantFrom('OperatorA', 'OperatorB', 'OperatorC', 'OperatorD'),
  currency: fc.constant('XOF'),
  // Some are taken already.
  reference: fc.oneof(fc.uuid(), fc.constantFrom('order-1', 'order-2', 'order-3')),
  id: fc.constantFrom(1, 2, 3),
  databaseId: fc.integer({ min: 1, max: 50 }),
  limit: fc.integer({ min: 1, max: 100 }),
  first: fc.integer({ min: 1, max: 100 }),
  offset: fc.integer({ min: 0, max: 50 }),
  after: fc.constantFrom('0', '1', btoa('cursor:1')),
  scopes: fc.constant(['balance']),
  expiresInHours: fc.integer({ min: 1, max: 720 }),
  by: fc.constantFrom('PT1S', 'PT1H'),
  returnUrl: fc.constant('https://shop.example/merci'),
  cancelUrl: fc.constant('https://shop.example/'),
  customerEmail: fc.constant('awa@example.com'),
  description: fc.constant('Commande 1042'),
  name: fc.constant('Awa Traoré'),
  // Some are invited already.
  email: fc.oneof(fc.nat(10_000), fc.constant('x')).map((n) => `awa${n}@shop.test`),
  role: fc.constantFrom('finance', 'viewer'),
  password: fc.constant('le soleil de Bamako'),
  token: fc.constant('A'.repeat(43)),
  code: fc.constantFrom('123456', 'ABCDE-FGHIJ'),
  account: fc.constantFrom('70000001', '+22376123456'),
  category: fc.constantFrom('supplier', 'customer'),
  destinationPhone: fc.constantFrom('70000001', '+22370020000', '76 12 34 56'),
  beneficiaryId: fc.constantFrom(1, 2, 3),
  scheduledAt: fc
    .integer({ min: 1, max: 300 })
    .map((days) => new Date(Date.now() + days * dayMs).toISOString()),
  expiresAt: fc
    .integer({ min: 1, max: 300 })
    .map((days) => new Date(Date.now() + days * dayMs).toISOString()),
  title: fc.constant('Sac de riz'),
  // Some are taken already.
  urlSlug: fc.oneof(fc.nat(10_000), fc.constant('x')).map((n) => `link-${n}`),
  usageLimit: fc.integer({ min: 1, max: 9 }),
  isActive: fc.boolean(),
  activeOnly: fc.boolean(),
  url: fc.constantFrom('http://127.0.0.1:1/hooks', 'https://10.0.0.1/', 'https://[2001:db8::1]/'),
  webhookId: fc.constant(1),
  ids: fc.constantFrom(['evt_1'], ['evt_2', 'evt_1'], [btoa('Payout:1')], []),
  businessName: fc.constant('Chez Awa'),
  businessPhone: fc.constantFrom('76 12 34 56', '+33 1 42 68 53 00', ''),
  businessAddress: fc.constantFrom('Hamdallaye ACI 2000, Bamako', ''),
  notificationEmail: fc.constantFrom('awa@example.com', ''),
  digest: fc.constant('a'.repeat(64)),
  approvalsRequired: fc.integer({ min: 1, max: 3 }),
  approvalThreshold: fc.integer({ min: 0, max: 1_000_000 }),
  // All who call here come from there.
  ipWhitelist: fc.constantFrom(['10.0.0.0/8'], ['2001:db8::/32', '0.0.0.0/0'], ['10.0.0.1/8'], []),
  from: fc.constant('2026-01-01T00:00:00Z'),
  at: fc.constant('2026-01-01T00:00:00Z'),
  createdFrom: fc.constant('2026-01-01'),
}

/** The value of a field: usual, odd, or of its type. */
export function fieldValue(name: string, type: GraphQLInputType, enumAs: EnumWords): fc.Arbitrary<unknown> {
  return fc.oneof(
    { weight: 5, arbitrary: ordinary(name, type, enumAs) },
    { weight: 1, arbitrary: ofType(type, enumAs) },
    { weight: 3, arbitrary: hostileValue },
  )
}

/** Enum values in GraphQL's capitals, or in the words that REST speaks. */
export type EnumWords = 'names' | 'values'

function ordinary(name: string, type: GraphQLInputType, enumAs: EnumWords): fc.Arbitrary<unknown> {
  return usual[name] ?? ofType(type, enumAs)
}

function ofType(given: GraphQLInputType, enumAs: EnumWords): fc.Arbitrary<unknown> {
  const type = getNullableType(given)
  if (isListType(type)) return fc.array(ofType(type.ofType, enumAs), { maxLength: 5 })
  if (isEnumType(type)) {
    return fc.constantFrom(
      ...type.getValues().map(({ name, value }) => (enumAs === 'names' ? name : String(value))),
    )
  }
  if (isInputObjectType(type)) return fields(Object.values(type.getFields()), enumAs)
  switch (getNamedType(type).name) {
    case 'Int':
    case 'SafeInt':
    case 'Amount':
      return fc.oneof(fc.integer(), fc.maxSafeInteger())
    case 'Boolean':
      return fc.boolean()
    case 'DateTime':
      return fc.date({ noInvalidDate: true }).map((date) => date.toISOString())
    case 'Duration':
      return fc.constantFrom('PT1S', 'PT25H', 'P1W', 'P9999D', 'PT')
    default:
      return hostileText
  }
}

export interface Field {
  name: string
  type: GraphQLInputType
}

/**
 * An object of these fields. Most of its values are usual ones, so that inputs get far; up to two are
 * anything.
 */
export function fields(given: readonly Field[], enumAs: EnumWords): fc.Arbitrary<Record<string, unknown>> {
  const usually = Object.fromEntries(
    given.map(({ name, type }) => [
      name,
      isNonNullType(type)
        ? ordinary(name, type, enumAs)
        : fc.oneof(
            { weight: name in usual ? 1 : 4, arbitrary: fc.constant(undefined) },
            { weight: 1, arbitrary: ordinary(name, type, enumAs) },
          ),
    ]),
  )
  if (given.length === 0) return fc.constant({})
  const odd = fc.oneof(
    ...given.map(({ name, type }) => fieldValue(name, type, enumAs).map((value) => [name, value])),
    ...given.map(({ name }) => fc.constant([name, undefined])),
  )
  return fc
    .tuple(fc.record(usually, { noNullPrototype: true }), fc.array(odd, { maxLength: 2 }))
    .map(([values, changes]) => ({ ...values, ...(Object.fromEntries(changes) as object) }))
}
