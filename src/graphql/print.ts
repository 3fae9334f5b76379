import { printSchemaWithDirectives } from '@graphql-tools/utils'
import { type GraphQLSchema, lexicographicSortSchema } from 'graphql'
import { withCostDirectives } from './cost-directives.ts'

/** Prints the schema, always in the same order: this is the content of `schema.graphql`. */
export function printSdl(schema: GraphQLSchema): string {
  return `${printSchemaWithDirectives(lexicographicSortSchema(withCostDirectives(schema)))}\n`
}
