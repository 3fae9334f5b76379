import SchemaBuilder from '@pothos/core'
import ErrorsPlugin from '@pothos/plugin-errors'
import PrismaPlugin from '@pothos/plugin-prisma'
import RelayPlugin from '@pothos/plugin-relay'
import { JSONObjectResolver } from 'graphql-scalars'
import type PrismaTypes from '../../prisma/generated/pothos.ts'
import { getDatamodel } from '../../prisma/generated/pothos.ts'
import type { Context } from '../context.ts'
import * as scalars from './scalars.ts'
import './effects.ts'
import './scopes.ts'

interface SchemaTypes {
  PrismaTypes: PrismaTypes
  Context: Context
  DefaultFieldNullability: false
  Scalars: {
    ID: { Input: string; Output: string | number | bigint }
    Amount: { Input: bigint; Output: bigint }
    SafeInt: { Input: bigint; Output: bigint | number }
    DateTime: { Input: Date; Output: Date }
    Duration: { Input: number; Output: number }
    JSONObject: { Input: object; Output: object }
  }
}

/** `collectPayment` gives a `CollectPaymentResult`. */
function resultName({ fieldName }: { fieldName: string }): string {
  return `${fieldName.charAt(0).toUpperCase()}${fieldName.slice(1)}Result`
}

/** What the resources' schemas are written with: the code-first schema is the core of the domain. */
export const builder = new SchemaBuilder<SchemaTypes>({
  plugins: ['scopes', ErrorsPlugin, 'effects', RelayPlugin, PrismaPlugin],
  defaultFieldNullability: false,
  errors: { directResult: true, defaultUnionOptions: { name: resultName } },
  prisma: { client: (ctx) => ctx.database.prisma, dmmf: getDatamodel(), onUnusedQuery: 'warn' },
  relay: {
    clientMutationId: 'omit',
    cursorType: 'String',
    nodesOnConnection: true,
    nodeQueryOptions: { scope: 'authenticated' },
    nodesQueryOptions: { scope: 'authenticated' },
  },
})

builder.queryType({})
builder.mutationType({})
builder.subscriptionType({})
builder.addScalarType('Amount', scalars.Amount)
builder.addScalarType('SafeInt', scalars.SafeInt)
builder.addScalarType('DateTime', scalars.DateTime)
builder.addScalarType('Duration', scalars.Duration)
builder.addScalarType('JSONObject', JSONObjectResolver)
