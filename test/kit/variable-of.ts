import { getNullableType, type GraphQLArgument, type GraphQLInputType } from 'graphql'

/**
 * Returns the variable that gives an argument its value: it may be left out where the argument has a default,
 * though null is refused there.
 */
export function variableOf({ name, type, defaultValue }: GraphQLArgument): {
  name: string
  type: GraphQLInputType
} {
  return { name, type: defaultValue === undefined ? type : getNullableType(type) }
}
