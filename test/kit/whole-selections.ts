import {
  getNamedType,
  type GraphQLField,
  type GraphQLNamedType,
  type GraphQLObjectType,
  isAbstractType,
  isLeafType,
  isNonNullType,
  isObjectType,
} from 'graphql'
import { schema } from '../../src/resources/schema.ts'

/** Which fields with arguments a selection has: none, or those that can be left out. */
type Taken = 'without arguments' | 'all'

/** Selects all that can be asked of a type, so many levels deep. */
export function selectionOf(
  type: GraphQLNamedType,
  depth: number,
  taken: Taken = 'without arguments',
): string {
  if (isAbstractType(type)) return selectionOfMembers(schema.getPossibleTypes(type), depth, taken)
  return isObjectType(type) ? ` ${fieldsOf(type, depth, { beside: [], taken })}` : ''
}

/** Selects all that can be asked of the members of a union or an interface. */
export function selectionOfMembers(
  members: readonly GraphQLObjectType[],
  depth: number,
  taken: Taken = 'without arguments',
): string {
  const parts = members.map(
    (member) => `... on ${member.name} ${fieldsOf(member, depth, { beside: members, taken })}`,
  )
  return ` { __typename ${parts.join(' ')} }`
}

/**
 * Selects the fields of a type. The members of a union beside it may have a field of the same name and
 * another meaning: such a field gets an alias.
 */
function fieldsOf(
  type: GraphQLObjectType,
  depth: number,
  { beside, taken }: { beside: readonly GraphQLObjectType[]; taken: Taken },
): string {
  const parts = Object.values(type.getFields()).flatMap((field) => {
    const inner = getNamedType(field.type)
    if (!isTaken(field, taken) || (!isLeafType(inner) && depth === 0)) return []
    const others = beside.flatMap((member) => member.getFields()[field.name] ?? [])
    const clashes = others.some((other) => String(other.type) !== String(field.type))
    const alias = clashes ? `${type.name}_${field.name}: ` : ''
    // The list within a connection is no level of its own.
    const below = inner.name.endsWith('Connection') || inner.name.endsWith('Edge') ? depth : depth - 1
    // A field of the same type within itself would make the document too large.
    return [`${alias}${field.name}${selectionOf(inner, inner === type ? 0 : below, taken)}`]
  })
  return `{ ${['__typename', ...parts].join(' ')} }`
}

function isTaken({ args }: GraphQLField<unknown, unknown>, taken: Taken): boolean {
  return args.length === 0 || (taken === 'all' && args.every(({ type }) => !isNonNullType(type)))
}
