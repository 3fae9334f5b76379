import { MapperKind, mapSchema } from '@graphql-tools/utils'
import {
  DirectiveLocation,
  getNamedType,
  getNullableType,
  GraphQLBoolean,
  GraphQLDirective,
  type GraphQLFieldConfig,
  GraphQLInt,
  GraphQLList,
  GraphQLNonNull,
  GraphQLSchema,
  GraphQLString,
  isCompositeType,
  isListType,
} from 'graphql'
import { limits } from '../shared/limits.ts'
import { assumedLength, isConnection, isWrapping, lengthMaxOf } from './query-limits.ts'

// This file tells clients, in the printed schema, how the cost of an operation is computed. The names and
// arguments are those of the Cost Directives draft (ibm.github.io/graphql-specs).

const names = new GraphQLList(new GraphQLNonNull(GraphQLString))

const costDirectives: readonly GraphQLDirective[] = [
  new GraphQLDirective({
    name: 'cost',
    description:
      'The cost of an object of the type. Without this directive it is 1. Scalars and enums cost 0.',
    args: { weight: { type: new GraphQLNonNull(GraphQLString) } },
    locations: [DirectiveLocation.OBJECT],
  }),
  new GraphQLDirective({
    name: 'listSize',
    description: [
      'How many entries count for a list: the value of the slicing argument, else `assumedSize`.',
      'On a connection, the number counts for its `sizedFields`.',
      'If a list takes ids, the number of the ids counts.',
    ].join(' '),
    args: {
      assumedSize: { type: GraphQLInt },
      slicingArguments: { type: names },
      sizedFields: { type: names },
      requireOneSlicingArgument: { type: GraphQLBoolean, default: { value: true } },
    },
    locations: [DirectiveLocation.FIELD_DEFINITION],
  }),
]

/** Returns a copy of the schema whose types and lists carry the directives `@cost` and `@listSize`. */
export function withCostDirectives(schema: GraphQLSchema): GraphQLSchema {
  const marked = mapSchema(schema, {
    [MapperKind.OBJECT_TYPE]: (type) => {
      if (!isConnection(type) && !isWrapping(type)) return undefined
      const { directives, ...others } = { directives: {}, ...type.extensions }
      type.extensions = { ...others, directives: { ...directives, cost: { weight: '0' } } }
      return type
    },
    [MapperKind.COMPOSITE_FIELD]: (field, _name, parent) => {
      const size = sizeOf(field, parent.endsWith('Connection'))
      if (!size) return undefined
      const { directives, ...others } = { directives: {}, ...field.extensions }
      return { ...field, extensions: { ...others, directives: { ...directives, listSize: size } } }
    },
  })
  const config = marked.toConfig()
  return new GraphQLSchema({ ...config, directives: [...config.directives, ...costDirectives] })
}

interface ListSize {
  assumedSize: number
  slicingArguments?: readonly string[]
  sizedFields?: readonly string[]
  requireOneSlicingArgument?: false
}

/** Returns how many entries of a field count; null for a field that gives no list. */
function sizeOf(field: GraphQLFieldConfig<unknown, unknown>, isInConnection: boolean): ListSize | null {
  const given = getNamedType(field.type)
  if (!isCompositeType(given)) return null
  if (isConnection(given)) {
    return {
      assumedSize: Math.min(limits.pageSizeDefault, lengthMaxOf(field)),
      slicingArguments: ['first', 'last'].filter((name) => field.args && name in field.args),
      sizedFields: ['edges', 'nodes'],
      requireOneSlicingArgument: false,
    }
  }
  if (isInConnection || !isListType(getNullableType(field.type))) return null
  return { assumedSize: assumedLength(field) }
}
