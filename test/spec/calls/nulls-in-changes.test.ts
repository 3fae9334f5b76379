import {
  getNamedType,
  type GraphQLInputField,
  type GraphQLInputObjectType,
  isEnumType,
  isInputObjectType,
  isNonNullType,
  isObjectType,
} from 'graphql'
import { describe, expect, test } from 'vitest'
import { schema } from '../../../src/resources/schema.ts'
import { snakeCase } from '../../../src/shared/input.ts'
import { openLimits, type TestMerchant } from '../../kit/app.ts'
import { openFixture } from '../../kit/fixture.ts'

// One rule for every field of every change: a field that is left out stays, null removes a value that may be
// missing, and is refused by its name for any other field. In REST null leaves these, and all settings, as
// they are: old systems send null for what they do not set.

const fixture = await openFixture(openLimits)

interface Change {
  mutation: string
  /** The type with the fields after the change. */
  shown: string
  /** The path of the list in REST, where the object has an id; else that of the object. */
  path: string
  /** The fields of the new object, in REST. Every field that can be removed has a value. */
  made: object
  /** Another value of each field than that of the new object. */
  values: Readonly<Record<string, unknown>>
}

const year = String(new Date().getUTCFullYear() + 2)

const changes: Readonly<Record<string, Change>> = {
  UpdateBeneficiaryInput: {
    mutation: 'updateBeneficiary',
    shown: 'Beneficiary',
    path: '/beneficiaries',
    made: { name: 'Awa', account: '+22370000001', payment_method: 'OperatorA' },
    values: {
      account: '+22370000002',
      category: 'SUPPLIER',
      isActive: false,
      name: 'Ba',
      paymentMethod: 'OperatorB',
    },
  },
  UpdatePaymentLinkInput: {
    mutation: 'updatePaymentLink',
    shown: 'PaymentLink',
    path: '/payment-links',
    made: {
      title: 'Riz',
      description: 'Un sac',
      amount: 5_000,
      usage_limit: 3,
      expires_at: `${year}-01-01T00:00:00Z`,
    },
    values: {
      amount: 6_000,
      currency: 'XOF',
      description: 'Deux sacs',
      expiresAt: `${year}-02-01T00:00:00.000Z`,
      isActive: false,
      title: 'Mil',
      usageLimit: 4,
    },
  },
  UpdateSettingsInput: {
    mutation: 'updateSettings',
    shown: 'Settings',
    path: '/settings',
    made: {
      notification_email: 'awa@shop.test',
      business_phone: '+22376123456',
      business_address: 'Hamdallaye, Bamako',
    },
    values: {
      approvalThreshold: 10_000,
      approvalsCoverDeposits: true,
      approvalsRequired: 2,
      businessAddress: 'Rue 12, Ségou',
      businessName: 'Awa & Filles',
      businessPhone: '+22320223344',
      ipWhitelist: ['127.0.0.1'],
      locale: 'EN',
      notificationEmail: 'ba@shop.test',
      payoutsRequireApproval: true,
      timeZone: 'Africa/Lagos',
    },
  },
  UpdateWebhookInput: {
    mutation: 'updateWebhook',
    shown: 'Webhook',
    path: '/webhooks',
    made: { url: 'https://93.184.216.34/a', events: ['payout_completed'] },
    values: { events: ['PAYMENT_RECEIVED'], isActive: false, url: 'https://93.184.216.34/b' },
  },
}

const types = Object.values(schema.getTypeMap()).filter(
  (type): type is GraphQLInputObjectType => isInputObjectType(type) && /^Update.*Input$/.test(type.name),
)

test('every type of changes is tried here, with a value for each of its fields', () => {
  expect(types.length).toBeGreaterThan(3)
  for (const type of types)
    expect(Object.keys(changes[type.name]?.values ?? {}).toSorted(), type.name).toEqual(
      Object.keys(type.getFields()).toSorted(),
    )
})

/** An object of a new merchant, changed through one of the doors. */
interface Subject {
  read(): Promise<Record<string, unknown>>
  /** @returns null, or the code of the refusal with the field that it names */
  change(fields: Record<string, unknown>): Promise<{ code: string; field: string } | null>
}

async function make(type: GraphQLInputObjectType, door: string): Promise<Subject> {
  const { mutation, shown, path, made } = changes[type.name] as Change
  const shop = await fixture.merchant()
  const { token } = shop
  const isSettings = shown === 'Settings'
  const { body } = await fixture.rest(isSettings ? 'PUT' : 'POST', path, { token, body: made })
  expect(body).toMatchObject({ success: true })
  const id = body['data'].id as number
  const fields = Object.keys(type.getFields()).join(' ')
  const root = isSettings ? 'settings' : `${shown.charAt(0).toLowerCase()}${shown.slice(1)}(id: "${id}")`
  return {
    async read() {
      const answer = await fixture.graphql(`{ read: ${root} { ${fields} } }`, {}, token)
      return answer.body['data'].read as Record<string, unknown>
    },
    change: (given) =>
      door === 'REST'
        ? put(shop, isSettings ? path : `${path}/${id}`, inRest(type, given))
        : mutate(shop, `${mutation}(${isSettings ? '' : `id: "${id}", `}input: $input)`, type.name, given),
  }
}

async function put({ token }: TestMerchant, path: string, body: object) {
  const answer = await fixture.rest('PUT', path, { token, body })
  if (answer.status === 200) return null
  expect(answer.status).toBe(400)
  const { code, errors } = answer.body
  return { code: code as string, field: errors[0].field as string }
}

async function mutate({ token }: TestMerchant, call: string, type: string, input: object) {
  const document = `mutation ($input: ${type}!) { done: ${call} {
    ... on InvalidInputError { code problems { field } } } }`
  const { body } = await fixture.graphql(document, { input }, token)
  expect(body['errors']).toBeUndefined()
  const { code, problems } = body['data'].done
  return code ? { code: code as string, field: snakeCase(problems[0].field as string) } : null
}

/** Writes the fields with the names and the words of REST. */
function inRest(type: GraphQLInputObjectType, given: Record<string, unknown>): object {
  const word = ({ type: of }: GraphQLInputField, value: unknown): unknown => {
    const named = getNamedType(of)
    return isEnumType(named) ? (named.getValue(String(value))?.value as unknown) : value
  }
  return Object.fromEntries(
    Object.entries(given).map(([name, value]) => {
      const field = type.getFields()[name] as GraphQLInputField
      const written = Array.isArray(value) ? value.map((each) => word(field, each)) : word(field, value)
      return [snakeCase(name), value === null ? null : written]
    }),
  )
}

const fields = types.flatMap((type) =>
  Object.keys(type.getFields()).map((name) => [type.name, name, type] as const),
)

describe.each(['GraphQL', 'REST'])('a change by %s', (door) => {
  test.each(fields)('%s %s: left out, null, a value', async (_type, name, type) => {
    const { shown, values } = changes[type.name] as Change
    const subject = await make(type, door)
    const before = await subject.read()
    expect(await subject.change({})).toBeNull()
    expect(await subject.read()).toEqual(before)

    const output = schema.getType(shown)
    const isRequired = isObjectType(output) && isNonNullType(output.getFields()[name]?.type)
    const isRefused = isRequired && door === 'GraphQL'
    const isRemoved = !isRequired && (door === 'GraphQL' || shown !== 'Settings')
    const refused = isRefused ? { code: 'INVALID_INPUT', field: snakeCase(name) } : null
    expect(before[name]).not.toBeNull()
    expect(await subject.change({ [name]: null })).toEqual(refused)
    expect(await subject.read()).toEqual(isRemoved ? { ...before, [name]: null } : before)

    expect(await subject.change({ [name]: values[name] })).toBeNull()
    expect(await subject.read()).toEqual({ ...before, [name]: values[name] })
  })

  test('an empty text removes the addresses and the telephone number', async () => {
    const subject = await make(schema.getType('UpdateSettingsInput') as GraphQLInputObjectType, door)
    const empty = { notificationEmail: '', businessPhone: '', businessAddress: '' }
    expect(await subject.change(empty)).toBeNull()
    const removed = { notificationEmail: null, businessPhone: null, businessAddress: null }
    expect(await subject.read()).toMatchObject(removed)
  })
})
