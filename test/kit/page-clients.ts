import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ApolloClient, gql, HttpLink, InMemoryCache } from '@apollo/client'
import { Client, fetchExchange } from '@urql/core'
import { cacheExchange } from '@urql/exchange-graphcache'
import { buildSchema, introspectionFromSchema, isObjectType } from 'graphql'
import relay from 'relay-runtime'
import { expect } from 'vitest'
import { type PageName, queryOf, readPage } from './dashboard-pages.ts'
import { compilePages } from './relay-pages.ts'
import { root } from './sources.ts'

// Three clients with normalised caches, set up as the guide `graphql-clients.md` says.

type Variables = Record<string, unknown>

/** A client that runs the operations of the pages. */
export interface PageClient {
  /** Reads a page: from the cache where all of it is there, otherwise over HTTP. */
  read(page: PageName, variables: Variables): Promise<unknown>
  /** Runs the mutation of a page. */
  change(page: PageName, variables: Variables): Promise<unknown>
  /** The names of the entries of the cache that have an id, as `Transaction:...`. */
  entities(): string[]
}

/** Opens a client whose requests go through `ask`. */
export type OpenClient = (url: string, ask: typeof fetch) => PageClient | Promise<PageClient>

const schema = buildSchema(readFileSync(join(root, 'schema.graphql'), 'utf8'))
const readReference = (name: string) =>
  JSON.parse(readFileSync(join(root, 'src/docs/reference', name), 'utf8')) as unknown
export const possibleTypes = readReference('possibleTypes.json') as Record<string, string[]>
const typesWithoutId = readReference('typesWithoutId.json') as string[]

const mutationOf = (page: PageName) => queryOf(page).replace(/Query$/, 'Mutation')

/** A document with one of the operations of a page, and the fragments. */
export function only(page: PageName, operation: string) {
  const { definitions, ...document } = gql(readPage(page))
  const wanted = definitions.filter(
    (one) => one.kind !== 'OperationDefinition' || one.name?.value === operation,
  )
  return { ...document, definitions: wanted }
}

/** @param known the types of interfaces and unions */
export function openApollo(url: string, ask: typeof fetch, known = possibleTypes): PageClient {
  const typePolicies = Object.fromEntries(typesWithoutId.map((name) => [name, { merge: true }]))
  const cache = new InMemoryCache({ possibleTypes: known, typePolicies })
  const client = new ApolloClient({ cache, link: new HttpLink({ uri: url, fetch: ask }) })
  return {
    read: async (page, variables) => {
      const query = only(page, queryOf(page))
      return (await client.query({ query, variables })).data
    },
    change: async (page, variables) => {
      const mutation = only(page, mutationOf(page))
      return (await client.mutate({ mutation, variables })).data
    },
    entities: () => Object.keys(cache.extract()).filter((name) => name.includes(':')),
  }
}

export function openUrql(url: string, ask: typeof fetch): PageClient {
  const warnings: string[] = []
  const embedded = typesWithoutId.map((name) => [name, () => null] as const)
  // Graphcache shows its entries to no one, but it asks for the key of each.
  const kept = new Set<string>()
  const keyed = Object.values(schema.getTypeMap())
    .filter((type) => isObjectType(type) && Object.hasOwn(type.getFields(), 'id'))
    .map(({ name }) => {
      const keyOf = ({ id }: { id?: unknown }) => {
        kept.add(`${name}:${String(id)}`)
        return String(id)
      }
      return [name, keyOf] as const
    })
  const cache = cacheExchange({
    schema: introspectionFromSchema(schema),
    keys: Object.fromEntries([...embedded, ...keyed]),
    // Graphcache warns of a type without a key, and of a fragment that it must guess about.
    logger: (severity, message) => void (severity === 'debug' || warnings.push(message)),
  })
  const client = new Client({
    url,
    fetch: ask,
    preferGetMethod: false,
    exchanges: [cache, fetchExchange],
  })
  return {
    read: async (page, variables) => {
      const { data, error } = await client.query(only(page, queryOf(page)), variables)
      expect([error, warnings]).toEqual([undefined, []])
      return data
    },
    change: async (page, variables) => {
      const { data, error } = await client.mutation(only(page, mutationOf(page)), variables)
      expect([error, warnings]).toEqual([undefined, []])
      return data
    },
    entities: () => [...kept],
  }
}

export async function openRelay(url: string, ask: typeof fetch): Promise<PageClient> {
  const compiled = await compilePages()
  const operationOf = (name: string) => {
    const operation = compiled.get(name)
    if (!operation) throw new Error(`the Relay compiler made no ${name}`)
    return operation
  }
  const network = relay.Network.create(async ({ text }, variables) => {
    const body = JSON.stringify({ query: text, variables })
    const headers = { 'Content-Type': 'application/json' }
    return (await ask(url, { method: 'POST', headers, body })).json()
  })
  const store = new relay.Store(new relay.RecordSource())
  const environment = new relay.Environment({
    network,
    store,
    // Some types share ids: a deposit and its approval, a member in several roles.
    getDataID: ({ id }, type) => (id === undefined ? undefined : `${type}:${id}`),
  })
  return {
    read: async (page, variables) => {
      const operation = operationOf(queryOf(page))
      environment.retain(relay.createOperationDescriptor(operation, variables))
      return relay
        .fetchQuery(environment, operation, variables, { fetchPolicy: 'store-or-network' })
        .toPromise()
    },
    change: (page, variables) =>
      new Promise((resolve, reject) => {
        const mutation = operationOf(mutationOf(page))
        relay.commitMutation(environment, { mutation, variables, onCompleted: resolve, onError: reject })
      }),
    entities: () =>
      store
        .getSource()
        .getRecordIDs()
        .filter((name) => /^[A-Z]\w+:/.test(name)),
  }
}
