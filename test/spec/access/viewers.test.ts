import { getNamedType, isLeafType } from 'graphql'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { isChange } from '../../../src/graphql/access-plan.ts'
import { routes } from '../../../src/http/rest/routes.ts'
import { schema } from '../../../src/resources/schema.ts'
import { makeMember } from '../../kit/members.ts'
import { startTestApp, type TestApp } from '../../kit/app.ts'

// A viewer changes nothing: every mutation of the schema and every writing route is tried.

let service: TestApp
let viewer: string
let finance: string
beforeAll(async () => {
  service = await startTestApp()
  const { access } = service.app.services
  const { merchantId } = await service.merchant()
  viewer = (await makeMember(access, merchantId, 'viewer')).token
  finance = (await makeMember(access, merchantId, 'finance')).token
})
afterAll(() => service.close())

const mutations = Object.values(schema.getMutationType()?.getFields() ?? {})
const changes = mutations.filter((field) => isChange(field.extensions))
const writes = routes.filter(({ method, path }) => method !== 'GET' && path !== '/auth')

test.each(changes.map((field) => [field.name, field] as const))(
  'is refused the mutation %s',
  async (name, field) => {
    const types = field.args.map((arg) => `$${arg.name}: ${String(arg.type)}`).join(', ')
    const given = field.args.map((arg) => `${arg.name}: $${arg.name}`).join(', ')
    const selection = isLeafType(getNamedType(field.type)) ? '' : ' { __typename }'
    const call = given ? `${name}(${given})` : name
    const { body } = await service.graphql(
      `mutation ${types ? `(${types})` : ''} { ${call}${selection} }`,
      {},
      viewer,
    )
    expect(body).toMatchObject({ errors: [{ extensions: { code: 'FORBIDDEN' } }] })
  },
)

test.each(writes.map(({ method, path }) => [method, path] as const))(
  'is refused the route %s %s',
  async (method, path) => {
    const { status, body } = await service.rest(method, path.replaceAll(/\{\w+\}/g, '1'), {
      token: viewer,
      body: {},
    })
    expect({ status, body }).toMatchObject({ status: 403, body: { success: false } })
  },
)

test('sees all that finance sees, and asks no operator, because that is recorded', async () => {
  for (const path of ['/balance', '/transactions', '/payouts', '/beneficiaries']) {
    expect(await service.rest('GET', path, { token: viewer })).toMatchObject({ status: 200 })
  }
  const asked = { token: viewer }
  expect(await service.rest('GET', '/balance?payment_method=OperatorA', asked)).toMatchObject({ status: 403 })
  const beneficiary = { name: 'Awa', account: '70000001', payment_method: 'OperatorA' }
  expect(await service.rest('POST', '/beneficiaries', { token: finance, body: beneficiary })).toMatchObject({
    status: 201,
  })
})
