import {
  getArgumentValues,
  getNullableType,
  getVariableValues,
  type GraphQLField,
  GraphQLError,
  isInputObjectType,
  print,
  separateOperations,
  TypeInfo,
  visit,
  visitWithTypeInfo,
} from 'graphql'
import { DomainError } from '../shared/errors.ts'
import { findOperation } from './access-plan.ts'
import type { CheckedOperation } from './checked-operation.ts'

/**
 * Reads an argument, or arguments of a field by their names, as the verb does. It stands as the extension
 * `readsAs` on the input type or the field, and may be asynchronous.
 * @throws DomainError INVALID_INPUT
 */
export type ReadsAs = (given: unknown) => unknown

/**
 * Returns all that the effect and the answer of a mutation with an `Idempotency-Key` depend on: the arguments
 * as the verb reads them, and what the client selects of the answer. So two spellings of one value are one
 * request, as in REST: variables or literals, capitals in a scheme, spaces in a telephone number.
 * @param operation one with a single root field
 * @returns the request as it was sent where its arguments do not fit: then it runs without an effect
 */
export async function keyedInput(operation: CheckedOperation): Promise<object> {
  const { document, operationName, variableValues } = operation
  try {
    const input = await inputAsRead(operation)
    if (input) return input
  } catch (error) {
    if (!(error instanceof GraphQLError)) throw error
  }
  return { document: print(document), operationName, variableValues }
}

async function inputAsRead({
  schema,
  document,
  operationName,
  variableValues,
}: CheckedOperation): Promise<object | null> {
  const node = findOperation(document, operationName)
  const { variableValues: values } = getVariableValues(schema, node.variableDefinitions ?? [], {
    ...variableValues,
  })
  if (!values) return null
  const types = new TypeInfo(schema)
  const given: Promise<unknown>[] = []
  const variables: Record<string, unknown> = {}
  const selected = visit(
    separateOperations(document)[node.name?.value ?? ''] ?? document,
    visitWithTypeInfo(types, {
      OperationDefinition: (each) => ({ ...each, name: undefined, variableDefinitions: [] }),
      Field(field) {
        const definition = types.getFieldDef()
        if (!definition || types.getParentType() !== schema.getMutationType()) return undefined
        given.push(asRead(definition, getArgumentValues(definition, field, values)))
        return { ...field, arguments: [] }
      },
      // Only variables of directives and of the answer's fields are left.
      Variable({ name }) {
        variables[name.value] = values.coerced[name.value]
      },
    }),
  )
  return { given: await Promise.all(given), selected: print(selected), variables }
}

async function asRead(
  { args, extensions }: GraphQLField<unknown, unknown>,
  sent: Readonly<Record<string, unknown>>,
): Promise<unknown> {
  // Null means the default of an argument, as where it is left out.
  const given: Record<string, unknown> = { ...sent }
  for (const { name, defaultValue } of args)
    if (given[name] === null && defaultValue !== undefined) given[name] = defaultValue
  const ofField = extensions['readsAs'] as ReadsAs | undefined
  // An argument that the reader leaves out counts as it was given.
  if (ofField) return Object.assign({}, given, await readOr(given, ofField))
  const read = args.map(async ({ name, type }) => {
    const plain = getNullableType(type)
    const ofType = isInputObjectType(plain) ? (plain.extensions['readsAs'] as ReadsAs | undefined) : undefined
    return [name, ofType && given[name] != null ? await readOr(given[name], ofType) : given[name]] as const
  })
  return Object.fromEntries(await Promise.all(read))
}

/** Returns a value as it is read; as it was given, where its verb refuses it. */
async function readOr(given: unknown, read: ReadsAs): Promise<unknown> {
  try {
    return await read(given)
  } catch (error) {
    if (error instanceof DomainError || error instanceof GraphQLError) return given
    throw error
  }
}
