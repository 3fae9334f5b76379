import { printSchemaWithDirectives } from '@graphql-tools/utils'
import { type GraphQLSchema, lexicographicSortSchema } from 'graphql'

/** The schema as text, always in the same order: what `schema.graphql` holds. */
export function printSdl(schema: GraphQLSchema): string {
  return `${printSchemaWithDirectives(lexicographicSortSchema(schema))}\n`
}
