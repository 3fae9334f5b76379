import { getDocumentNodeFromSchema } from '@graphql-tools/utils'
import {
  type ASTNode,
  type ConstValueNode,
  type GraphQLSchema,
  lexicographicSortSchema,
  parse,
  print,
  printSchema,
  visit,
} from 'graphql'
import { withCostDirectives } from './cost-directives.ts'

/** Prints the schema, always in the same order: this is the content of `schema.graphql`. */
export function printSdl(schema: GraphQLSchema): string {
  const sorted = lexicographicSortSchema(withCostDirectives(schema))
  // The tools print directives, and leave out the defaults that Pothos states; GraphQL prints only these.
  const defaults = new Map<string, ConstValueNode | undefined>()
  visit(parse(printSchema(sorted)), {
    InputValueDefinition(node, _key, _parent, _path, ancestors) {
      defaults.set(placeOf([...ancestors, node]), node.defaultValue)
    },
  })
  const document = visit(getDocumentNodeFromSchema(sorted), {
    InputValueDefinition(node, _key, _parent, _path, ancestors) {
      return { ...node, defaultValue: defaults.get(placeOf([...ancestors, node])) }
    },
  })
  return `${print(document)}\n`
}

/** Names an argument or input field with all that it is in: `Query.payouts.first`. */
function placeOf(nodes: readonly (ASTNode | readonly ASTNode[])[]): string {
  return nodes.flatMap((node) => ('name' in node && node.name ? [node.name.value] : [])).join('.')
}
