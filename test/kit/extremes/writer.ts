import {
  getNamedType,
  isObjectType,
  isUnionType,
  type GraphQLObjectType,
  type GraphQLOutputType,
} from 'graphql'
import { readGlobalId } from '../../../src/shared/ids.ts'
import { routes } from '../../../src/http/rest/routes.ts'
import type { RestAnswer } from '../app.ts'
import { type InputField, inRestWords, rootFields, snakeCase, withValue } from './input-fields.ts'

// Writes one value into one field of a mutation, at the door of GraphQL or at the REST route of the same
// mutation.

export type Door = 'graphql' | 'rest'
export type Arguments = Readonly<Record<string, unknown>>

/** A value that was taken, and the row that shows it. */
export interface Written {
  type: string
  /** The id of the row in REST. */
  id: string
  /** The name of the field in GraphQL. */
  field: string
  /** The value as the row shows it. */
  shown: string | number | null
  /** The call, the door and the value, for messages. */
  sent: string
}

/** The place of the value in a body until the body is text. */
const hole = '@the value@'

/** Returns the REST route that runs a mutation with a JSON body or a path; undefined where there is none. */
export function routeOf(mutation: string) {
  return routes.find(
    ({ operation, method }) =>
      method !== 'GET' && operation.charAt(0).toLowerCase() + operation.slice(1) === mutation,
  )
}

/** A client of the service that sends JSON as it is written. */
export function writerOn(url: string) {
  async function send(
    method: string,
    path: string,
    { token, body, headers = {} }: { token?: string; body?: string; headers?: Record<string, string> },
  ): Promise<RestAnswer> {
    const answer = await fetch(`${url}${path}`, {
      method,
      headers: {
        ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
        ...(token !== undefined && { Authorization: `Bearer ${token}` }),
        ...headers,
      },
      ...(body !== undefined && { body }),
    })
    const text = await answer.text()
    return { status: answer.status, headers: answer.headers, body: text ? JSON.parse(text) : {} }
  }

  /** Writes a value, given as JSON, into a field of a mutation. */
  async function write(
    door: Door,
    field: InputField,
    asked: { base: Arguments; value: string; token: string },
  ): Promise<RestAnswer> {
    const { base, value, token } = asked
    const filled = withValue(base, field.path, hole) as Arguments
    const put = (body: unknown) => JSON.stringify(body).replace(JSON.stringify(hole), () => value)
    const mutation = callOf(field)
    if (door === 'graphql') {
      const body = put({ query: documentOf(mutation), variables: filled })
      return send('POST', '/graphql', { token, body })
    }
    const { path, body } = inRest(mutation, filled, value)
    const method = routeOf(mutation)?.method ?? 'POST'
    return send(method, `/merchant/api${path}`, { token, ...(body && { body: put(body) }) })
  }
  return { send, write }
}

export const callOf = ({ name }: InputField) => name.slice(0, name.indexOf('.'))

/** Returns the path of the route, and the body: the other arguments, those of `input` at its top. */
function inRest(mutation: string, { id, input, ...others }: Arguments, value: string) {
  const args = rootFields('mutation')[mutation]?.args ?? []
  const words = (name: string, given: unknown) => {
    const type = args.find((arg) => arg.name === name)?.type
    return type ? inRestWords(type, given) : given
  }
  const parsed: unknown = id === hole ? JSON.parse(value) : id
  const asText = typeof parsed === 'string' ? parsed : JSON.stringify(parsed)
  const path = (routeOf(mutation)?.path ?? '').replace('{id}', () =>
    encodeURIComponent((readGlobalId(asText)?.id ?? asText).toWellFormed()),
  )
  const top = Object.entries(others).map(([name, given]) => [snakeCase(name), words(name, given)])
  const body = { ...(words('input', input) as object | undefined), ...Object.fromEntries(top) }
  return { path, body: routeOf(mutation)?.method === 'DELETE' && top.length === 0 ? undefined : body }
}

const documents = new Map<string, string>()

/** Makes the document of a mutation, which asks for the ids of what was written, and for refusals. */
function documentOf(mutation: string): string {
  const known = documents.get(mutation)
  if (known !== undefined) return known
  const field = rootFields('mutation')[mutation]
  if (!field) throw new Error(`there is no mutation ${mutation}`)
  const head = field.args.map(({ name, type }) => `$${name}: ${String(type)}`).join(', ')
  const given = field.args.map(({ name }) => `${name}: $${name}`).join(', ')
  const result = getNamedType(field.type)
  const problems = isRefusedByField(result) ? '... on InvalidInputError { problems { field message } }' : ''
  const refusals = `... on Refusal { code message } ${problems}`
  const parts = resultsOf(result as never).map((type) => `... on ${type.name} ${idsOf(type)}`)
  const isMoney = parts.some((part) => part.includes('PaymentInitiation'))
  if (isMoney) parts.push('... on PaymentRefusedError { initiation { databaseId } }')
  const selection = parts.length === 0 ? '' : `{ __typename ${refusals} ${parts.join(' ')} }`
  const made = `mutation (${head}) { made: ${mutation}(${given}) ${selection} }`
  documents.set(mutation, made)
  return made
}

const isRefusedByField = (type: unknown) =>
  isUnionType(type) && type.getTypes().some(({ name }) => name === 'InvalidInputError')

function resultsOf(type: unknown): readonly GraphQLObjectType[] {
  if (isObjectType(type)) return [type]
  return isUnionType(type) ? type.getTypes().filter(({ name }) => !name.endsWith('Error')) : []
}

/** The fields of a result that hold the row. */
const within = ['transaction', 'apiKey', 'webhook', 'batch']

function idsOf(type: GraphQLObjectType): string {
  const fields = type.getFields()
  const own = ['id', 'databaseId'].filter((name) => name in fields)
  const inner = within.filter((name) => name in fields).map((name) => `${name} { id databaseId }`)
  return `{ ${['__typename', ...own, ...inner].join(' ')} }`
}

/** The type of the row that a mutation writes. */
export function writtenType(mutation: string): string {
  const [type] = resultsOf(getNamedType(rootFields('mutation')[mutation]?.type as never))
  const fields = type?.getFields() ?? {}
  const inner = within.find((name) => name in fields)
  return inner ? String(getNamedType(fields[inner]?.type as GraphQLOutputType)) : (type?.name ?? '')
}

/** The id of the row that an answer says was written; '' where it names none. */
export function writtenId({ headers, body }: RestAnswer): string {
  const made = body['data']?.made
  if (made) {
    const row = made.initiation ?? made
    const inner = within.map((name) => row[name]).find((each) => each != null)
    return String((inner ?? row).databaseId ?? '')
  }
  const data = body['data'] ?? {}
  const at = /\/(\d+)$/.exec(headers.get('location') ?? '')?.[1]
  return String(data.transaction_id ?? data.id ?? at ?? '')
}
