import SchemaBuilder from '@pothos/core'
import { type GraphQLSchema, specifiedDirectives } from 'graphql'
import { describe, expect, test } from 'vitest'
import { getDatamodel } from '../../prisma/generated/pothos.ts'
import { openAdmission } from '../../src/limits/admission.ts'
import type { Actor } from '../../src/identity/callers/actor.ts'
import type { Scope } from '../../src/identity/callers/scopes.ts'
import type { Context } from '../../src/context.ts'
import type { AccessRule } from '../../src/graphql/access-plan.ts'
import { createOperations } from '../../src/graphql/operation.ts'
import { printSdl } from '../../src/graphql/print.ts'
import { accessDirectives } from '../../src/graphql/scopes.ts'
import { createLog } from '../../src/telemetry/log.ts'
import { testLimits } from '../kit/graphql.ts'

// The plugin on a builder of its own: the schemas it refuses to build, and the data it refuses to reveal.

interface Card {
  id: string
  pin: string
}

function newBuilder() {
  const builder = new SchemaBuilder<{
    Context: { actor: Actor | null }
    DefaultFieldNullability: false
  }>({
    plugins: ['scopes'],
    defaultFieldNullability: false,
    // Unused here; its types require it once any file loads the plugin.
    prisma: { dmmf: getDatamodel(), client: noDatabase },
  })
  builder.queryType({})
  return builder
}
function noDatabase(): never {
  throw new Error('there is no database here')
}
type Builder = ReturnType<typeof newBuilder>

function build(add: (builder: Builder) => void): GraphQLSchema {
  const builder = newBuilder()
  add(builder)
  return builder.toSchema({ directives: [...specifiedDirectives, ...accessDirectives] })
}

/** A card behind `balance`, reached as a `Node` and as a member of a union: only its type is guarded. */
function cards(builder: Builder): void {
  const Node = builder.interfaceRef<Card>('Node').implement({
    resolveType: () => 'Card',
    fields: (t) => ({ id: t.exposeID('id') }),
  })
  const CardType = builder.objectRef<Card>('Card').implement({
    scope: ['balance'],
    interfaces: [Node],
    fields: (t) => ({ pin: t.exposeString('pin') }),
  })
  const Result = builder.unionType('Result', { types: [CardType], resolveType: () => 'Card' })
  const card = { id: '1', pin: '0000' }
  builder.queryField('node', (t) =>
    t.field({ type: Node, nullable: true, scope: 'authenticated', resolve: () => card }),
  )
  builder.queryField('found', (t) =>
    t.field({ type: Result, nullable: true, scope: 'authenticated', resolve: () => card }),
  )
  builder.mutationType({})
  builder.mutationField('pay', (t) =>
    t.field({
      type: Result,
      nullable: true,
      scope: ['pay'],
      movesMoney: true,
      resolve: () => {
        payments += 1
        return card
      },
    }),
  )
}
let payments = 0

async function ask(query: string, scopes: readonly Scope[] | null) {
  const actor = scopes && ({ merchantId: 1, scopes: new Set(scopes) } as unknown as Actor)
  const admission = openAdmission(10_000, async () => {})
  const base = {
    config: { mode: 'sandbox' },
    admission,
    requestLimits: testLimits(),
    responseHeaders: new Map(),
  }
  const ctx = { ...base, actor, requestId: 'r', log: createLog('silent') } as unknown as Context
  const operations = createOperations(build(cards))
  const operation = await operations.read({ query }, ctx)
  const result = Array.isArray(operation) ? { errors: operation } : await operations.run(operation)
  if ('deliver' in result) throw new Error('no subscription was asked for')
  return { data: result.data, codes: (result.errors ?? []).map(({ extensions }) => extensions['code']) }
}

describe('a schema that does not build', () => {
  const any: AccessRule = ['pay']

  test('has a root field without a scope', () => {
    const add = (builder: Builder) =>
      // @ts-expect-error the compiler says so, too
      builder.queryField('open', (t) => t.string({ resolve: () => '' }))
    expect(() => build(add)).toThrow('Query.open is a root field: it must state its scope')
  })

  test('has a Node without a scope', () => {
    const add = (builder: Builder) => {
      const Node = builder.interfaceRef<Card>('Node').implement({ fields: (t) => ({ id: t.exposeID('id') }) })
      builder.objectRef<Card>('Card').implement({ interfaces: [Node] })
      builder.queryField('node', (t) =>
        t.field({ type: Node, scope: 'public', resolve: () => ({ id: '', pin: '' }) }),
      )
    }
    expect(() => build(add)).toThrow('Card is reached by node(id): it must state its scope')
  })

  test.each<[string, (builder: Builder) => void]>([
    [
      'an interface',
      (builder) =>
        builder
          .interfaceRef<Card>('Face')
          .implement({ scope: any, fields: (t) => ({ id: t.exposeID('id') }) }),
    ],
    [
      'a field of an interface',
      (builder) =>
        builder
          .interfaceRef<Card>('Face')
          .implement({ fields: (t) => ({ id: t.exposeID('id', { scope: any }) }) }),
    ],
    [
      'a union',
      (builder) => {
        const Plain = builder
          .objectRef<Card>('Plain')
          .implement({ fields: (t) => ({ id: t.exposeID('id') }) })
        builder.unionType('Either', { types: [Plain], resolveType: () => 'Plain', scope: any })
      },
    ],
  ])('has a scope on %s, where no code would check it', (_what, add) => {
    const withRoot = (builder: Builder) => {
      builder.queryField('hello', (t) => t.string({ scope: 'public', resolve: () => '' }))
      add(builder)
    }
    expect(() => build(withRoot)).toThrow(/scope/)
  })
})

test('the printed schema shows the scopes', () => {
  const sdl = printSdl(build(cards))
  expect(sdl).toContain('type Card implements Node @requiresScopes(scopes: [["balance"]])')
  expect(sdl).toContain('node: Node @authenticated')
  expect(sdl).toContain('pay: Result @requiresScopes(scopes: [["pay"]])')
})

describe('data that a type guards', () => {
  test.each(['{ node { id } }', '{ node { __typename } }', '{ found { __typename } }'])(
    'is not revealed where the document does not name the type: %s',
    async (query) => {
      const field = query.includes('node') ? 'node' : 'found'
      expect(await ask(query, ['pay'])).toEqual({ data: { [field]: null }, codes: ['FORBIDDEN'] })
      expect((await ask(query, ['balance'])).codes).toEqual([])
    },
  )

  test('makes the whole document refused where the document names the type', async () => {
    expect(await ask('{ node { ... on Card { pin } } }', ['pay'])).toEqual({
      data: undefined,
      codes: ['FORBIDDEN'],
    })
    expect((await ask('{ node { id } }', null)).codes).toEqual(['UNAUTHENTICATED'])
  })

  test('is shown in the answer of a payment; a payment is refused before it is made', async () => {
    payments = 0
    expect(await ask('mutation { pay { ... on Card { pin } } }', ['pay'])).toMatchObject({
      codes: ['FORBIDDEN'],
    })
    expect(payments).toBe(0)
    expect(await ask('mutation { pay { __typename } }', ['pay'])).toEqual({
      data: { pay: { __typename: 'Card' } },
      codes: [],
    })
    expect(payments).toBe(1)
  })
})
