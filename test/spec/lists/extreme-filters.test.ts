import { getNamedType, isNonNullType } from 'graphql'
import { beforeAll, describe, expect, test } from 'vitest'
import { routes } from '../../../src/http/rest/routes.ts'
import type { TestMerchant } from '../../kit/app.ts'
import {
  type InputField,
  inputFields,
  rootFields,
  snakeCase,
  withValue,
} from '../../kit/extremes/input-fields.ts'
import { lists } from '../../kit/extremes/reader.ts'
import { extremeIds, extremeNumbers, extremeTexts } from '../../kit/extremes/values.ts'
import { isVerdict, verdict } from '../../kit/extremes/verdicts.ts'
import { writerOn } from '../../kit/extremes/writer.ts'
import { openFixture } from '../../kit/fixture.ts'
import { variableOf } from '../../kit/variable-of.ts'
import { selectionOf } from '../../kit/whole-selections.ts'

// Texts, numbers, ids and cursors at the edges of what can be asked, in every argument and filter of every
// query and subscription, and in every parameter and path of REST. Each answer is a success or a refusal that
// names the argument.

const fixture = await openFixture({
  RATE_LIMIT_WRITES: '100000',
  RATE_LIMIT_READS: '100000',
  RATE_LIMIT_OBJECTS: '100000000',
})
const { send } = writerOn(fixture.url)
let shop: TestMerchant
beforeAll(async () => {
  shop = await fixture.merchant()
  await fixture.paid(shop)
  const { token } = shop
  await fixture.rest('POST', '/payment-links', { token, body: { title: 'Riz' } })
})

/** The arguments that a query requires beside the one that is tried. */
const required: Record<string, unknown> = { from: '2026-01-01', id: '1', reference: 'x', ids: ['1'] }
/** The codes of refusals that need not name the value: no row has the id. */
const codes = ['NOT_FOUND']
const valuesOf = ({ scalar }: InputField): readonly string[] =>
  scalar === 'String' ? extremeTexts : scalar === 'ID' ? extremeIds : extremeNumbers

async function ask(kind: 'query' | 'subscription', field: InputField, value: string) {
  const call = field.name.slice(0, field.name.indexOf('.'))
  const root = rootFields(kind)[call]
  if (!root) throw new Error(`there is no ${call}`)
  const given = root.args
    .map(variableOf)
    .filter(({ name, type }) => name === field.path[0] || isNonNullType(type))
  const base = Object.fromEntries(given.map(({ name }) => [name, required[name]]))
  const variables = withValue({ ...base, [field.path[0] ?? '']: undefined }, field.path, '@hole@')
  const head = given.map(({ name, type }) => `$${name}: ${String(type)}`).join(', ')
  const args = given.map(({ name }) => `${name}: $${name}`).join(', ')
  const query = `${kind} (${head}) { asked: ${call}(${args})${selectionOf(getNamedType(root.type), 0)} }`
  const body = JSON.stringify({ query, variables }).replace('"@hole@"', () => value)
  // A stream that begins would never end: only a client that takes no events is refused at once.
  const headers = { Accept: 'application/json' }
  return send('POST', '/graphql', { token: shop.token, body, headers })
}

describe('an extreme value in an argument of GraphQL', () => {
  const fields = (['query', 'subscription'] as const).flatMap((kind) =>
    inputFields(kind).map((field) => [`${kind} ${field.name}`, kind, field] as const),
  )
  test.each(fields)('%s is taken, or refused by name', async (_name, kind, field) => {
    const name = field.path.findLast((part) => part !== '0') ?? ''
    const verdicts: string[] = []
    for (const value of valuesOf(field)) {
      const answer = await ask(kind, field, value)
      const isStream = kind === 'subscription' && /accept/i.test(JSON.stringify(answer.body))
      const given = isStream ? 'taken' : verdict(answer, { field: name, codes }, `${field.name} ${value}`)
      verdicts.push(given)
    }
    expect(verdicts.filter((given) => !isVerdict(given))).toEqual([])
  })
})

/** The parameters of REST that are texts or numbers, by the list: its filter in GraphQL has the same. */
const parameters = routes.flatMap(({ method, path, operation }) => {
  const list = lists.find(({ name }) => name === operation.charAt(0).toLowerCase() + operation.slice(1))
  if (method !== 'GET' || !list) return []
  const filters = inputFields('query').filter(({ name }) => name.startsWith(`${list.name}.filter.`))
  const names = filters.map(({ path: [, name = ''] }) => snakeCase(name))
  return ['limit', 'offset', ...names].map((name) => [path, name] as const)
})

describe('an extreme value in REST', () => {
  const asTexts = [...extremeTexts, ...extremeNumbers, ...extremeIds].map((value) => {
    const read: unknown = value.startsWith('"') ? JSON.parse(value) : value
    return String(read)
  })

  test.each(parameters)('in %s?%s= is taken, or refused by name', async (path, name) => {
    const verdicts: string[] = []
    for (const value of asTexts) {
      const at = `/merchant/api${path}?${name}=${encodeURIComponent(value.toWellFormed())}`
      const given = verdict(await send('GET', at, { token: shop.token }), { field: name, codes }, at)
      verdicts.push(given)
    }
    expect(verdicts.filter((given) => !isVerdict(given))).toEqual([])
  })

  const paths = routes.filter(({ path, method }) => method === 'GET' && path.includes('{'))
  test.each(paths.map(({ path }) => [path] as const))('in %s is taken, or refused by name', async (path) => {
    const name = /\{(\w+)\}/.exec(path)?.[1] ?? ''
    const verdicts: string[] = []
    for (const value of asTexts) {
      const part = encodeURIComponent(value.toWellFormed()).replaceAll('.', '%2E')
      const at = `/merchant/api${path.replace(/\{\w+\}/, () => part)}`
      const given = verdict(await send('GET', at, { token: shop.token }), { field: name, codes }, at)
      verdicts.push(given)
    }
    expect(verdicts.filter((given) => !isVerdict(given))).toEqual([])
  })
})
