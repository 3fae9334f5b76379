import SchemaBuilder from '@pothos/core'
import ErrorsPlugin from '@pothos/plugin-errors'
import PrismaPlugin from '@pothos/plugin-prisma'
import RelayPlugin from '@pothos/plugin-relay'
import { JSONObjectResolver } from 'graphql-scalars'
import type PrismaTypes from '../../prisma/generated/pothos.ts'
import { getDatamodel } from '../../prisma/generated/pothos.ts'
import type { Context } from '../context.ts'
import * as scalars from './scalars.ts'
import './idempotency.ts'
import { limits } from '../shared/limits.ts'
import { listDefaults } from '../shared/page.ts'
import { resultName } from './results.ts'
import './scopes.ts'

interface SchemaTypes {
  PrismaTypes: PrismaTypes
  Context: Context
  DefaultFieldNullability: false
  Scalars: {
    ID: { Input: string; Output: string | number | bigint }
    Amount: { Input: bigint; Output: bigint }
    SafeInt: { Input: bigint; Output: bigint | number }
    DateTime: { Input: Date | string; Output: Date }
    Duration: { Input: number; Output: number }
    JSONObject: { Input: object; Output: object }
  }
}

/** The descriptions of the types, fields and arguments that the relay plugin makes. */
const relayDescriptions = {
  idFieldOptions: { description: 'The global id: `node(id:)` finds the object by it.' },
  nodeTypeOptions: { description: 'An object that has a global id.' },
  pageInfoTypeOptions: { description: 'The position of a page in its list.' },
  hasNextPageFieldOptions: { description: 'True when more entries follow the page.' },
  hasPreviousPageFieldOptions: { description: 'True when entries come before the page.' },
  startCursorFieldOptions: { description: 'The cursor of the first entry; null when the page is empty.' },
  endCursorFieldOptions: {
    description: 'The cursor of the last entry; null when the page is empty. Pass it as `after` to read on.',
  },
  edgesFieldOptions: { description: 'The entries of the page, each with its cursor.' },
  pageInfoFieldOptions: { description: 'The position of the page in the list.' },
  cursorFieldOptions: { description: 'The cursor of the entry, to pass as `after` or `before`.' },
  nodeFieldOptions: { description: 'The entry itself.' },
  defaultEdgeTypeOptions: { description: 'One entry of a page, with its cursor.' },
  afterArgOptions: {
    description: 'Only the entries after this cursor; together with `before`, those in between.',
  },
  beforeArgOptions: { description: 'Only the entries before this cursor.' },
  firstArgOptions: {
    defaultValue: listDefaults.first,
    description:
      `Page size from the start of the list, 1 to ${limits.pageSizeMax}. Its default does not count ` +
      'beside `last`.',
  },
  lastArgOptions: {
    description:
      `Page size from the end of the list, 1 to ${limits.pageSizeMax}. \`last\` with \`before\` reads ` +
      'backwards.',
  },
} as const

/** The builder with which the resources define the GraphQL schema in code. */
export const builder = new SchemaBuilder<SchemaTypes>({
  plugins: ['scopes', ErrorsPlugin, 'results', 'idempotency', RelayPlugin, PrismaPlugin],
  defaultFieldNullability: false,
  errors: { directResult: true, defaultUnionOptions: { name: resultName } },
  prisma: { client: (ctx) => ctx.database.prisma, dmmf: getDatamodel(), onUnusedQuery: 'warn' },
  relay: {
    clientMutationId: 'omit',
    cursorType: 'String',
    nodesOnConnection: { description: 'The entries of the page, without cursors.' },
    ...relayDescriptions,
    // `nodes.ts` has these queries.
    nodeQueryOptions: false,
    nodesQueryOptions: false,
  },
})

builder.queryType({ description: 'All operations that only read data.' })
builder.mutationType({ description: 'All operations that change data.' })
builder.subscriptionType({ description: 'All live streams of changes.' })
builder.addScalarType('Amount', scalars.Amount)
builder.addScalarType('SafeInt', scalars.SafeInt)
builder.addScalarType('DateTime', scalars.DateTime)
builder.addScalarType('Duration', scalars.Duration)
builder.addScalarType('JSONObject', JSONObjectResolver)
