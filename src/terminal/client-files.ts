import {
  type GraphQLSchema,
  isAbstractType,
  isObjectType,
  isScalarType,
  isSpecifiedScalarType,
} from 'graphql'
import { schema } from '../resources/schema.ts'

// Caches and code generators of clients need these facts of the schema (see docs/guide/graphql-clients.md).

/** A scalar of the schema, for people who write clients. */
export interface ScalarRow {
  name: string
  json: string
  typescript: string
  description: string
  specifiedBy: string
}

/** How JSON carries each scalar, and its type in TypeScript. */
export const scalarForms: Readonly<Record<string, readonly [json: string, typescript: string]>> = {
  Amount: ['whole number', 'number'],
  DateTime: ['string', 'string'],
  Duration: ['string', 'string'],
  JSONObject: ['object', 'Record<string, unknown>'],
  SafeInt: ['whole number', 'number'],
}

/** Lists the scalars that GraphQL itself does not have. @throws Error if one is not in `scalarForms` */
export function scalarRows(of: GraphQLSchema = schema): ScalarRow[] {
  return sorted(of).flatMap((type) => {
    if (!isScalarType(type) || isSpecifiedScalarType(type)) return []
    const { name, description, specifiedByURL } = type
    const form = scalarForms[name]
    if (!form || !description) throw new Error(`The scalar ${name} has no form in JSON, or no description.`)
    return [{ name, json: form[0], typescript: form[1], description, specifiedBy: specifiedByURL ?? '' }]
  })
}

/** Makes the object types of each interface and union, as `possibleTypes` of Apollo Client takes them. */
export function possibleTypesOf(of: GraphQLSchema = schema): Record<string, string[]> {
  const lists = sorted(of)
    .filter(isAbstractType)
    .map(
      (type) =>
        [
          type.name,
          of
            .getPossibleTypes(type)
            .map(({ name }) => name)
            .toSorted(),
        ] as const,
    )
  return Object.fromEntries(lists)
}

/** Lists the object types without an `id`: a cache keeps such a value inside of the object that has it. */
export function typesWithoutIdOf(of: GraphQLSchema = schema): string[] {
  const roots = new Set([of.getQueryType(), of.getMutationType(), of.getSubscriptionType()])
  return sorted(of)
    .filter((type) => isObjectType(type) && !type.name.startsWith('__') && !roots.has(type))
    .filter((type) => isObjectType(type) && !Object.hasOwn(type.getFields(), 'id'))
    .map(({ name }) => name)
}

const sorted = (of: GraphQLSchema) =>
  Object.values(of.getTypeMap()).toSorted((a, b) => (a.name < b.name ? -1 : 1))
