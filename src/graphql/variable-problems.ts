import { GraphQLError, isInputType, isNonNullType, typeFromAST, validateInputValue } from 'graphql'
import { fieldPath } from '../shared/input.ts'
import { limits } from '../shared/limits.ts'
import { findOperation } from './access-plan.ts'
import type { CheckedOperation } from './checked-operation.ts'

/** The most characters of a reason: GraphQL repeats the value in some of them. */
const reasonLengthMax = 300

/**
 * Finds the values of an operation's variables that do not fit their types, at most the first
 * `limits.graphqlErrorsMax`. GraphQL's own errors say what is wrong, but not where.
 * @returns an error for each value: its message begins with the place, `input.recipients[3].amount`, and
 *   `extensions.problems` has the place and the reason, as INVALID_INPUT has them
 */
export function variableProblems(
  { schema, document, operationName, variableValues }: CheckedOperation,
  hideSuggestions: boolean,
): GraphQLError[] {
  const problems: GraphQLError[] = []
  for (const definition of findOperation(document, operationName).variableDefinitions ?? []) {
    const name = definition.variable.name.value
    const value = Object.hasOwn(variableValues, name) ? variableValues[name] : undefined
    const type = typeFromAST(schema, definition.type)
    const isLeftOut = value === undefined && (definition.defaultValue !== undefined || !isNonNullType(type))
    if (isLeftOut || !isInputType(type)) continue
    const add = (error: GraphQLError, path: readonly (string | number)[]) => {
      const field = fieldPath([name, ...path])
      const message = error.message.slice(0, reasonLengthMax)
      const extensions = { ...error.extensions, problems: [{ field, message }] }
      problems.push(new GraphQLError(`${field}: ${message}`, { nodes: definition, extensions }))
      if (problems.length === limits.graphqlErrorsMax) throw error
    }
    try {
      validateInputValue(value, type, add, hideSuggestions)
    } catch (error) {
      if (problems.length < limits.graphqlErrorsMax) throw error
      return problems
    }
  }
  return problems
}
