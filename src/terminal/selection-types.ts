import {
  type FieldNode,
  type FragmentDefinitionNode,
  getNamedType,
  type GraphQLCompositeType,
  type GraphQLNamedType,
  type GraphQLObjectType,
  type GraphQLOutputType,
  type GraphQLSchema,
  isAbstractType,
  isCompositeType,
  isEnumType,
  isListType,
  isNonNullType,
  Kind,
  OperationTypeNode,
  type SelectionNode,
  type SelectionSetNode,
} from 'graphql'
import { scalarForms } from './client-files.ts'

// Prints the type of a selection of a GraphQL document in TypeScript.

/** The schema and the fragments, and the types that the printed texts name. */
export interface Printing {
  readonly schema: GraphQLSchema
  readonly fragments: ReadonlyMap<string, FragmentDefinitionNode>
  /** The enums and input types in use, and the printed text of each. */
  readonly named: Map<string, string>
  /** The interfaces and unions that fragments name. */
  readonly abstract: Set<string>
}

/** A selection; a conditional one may be absent from a result (`@include`, `@skip`). */
interface Selected<Node> {
  readonly node: Node
  readonly isConditional: boolean
}

/** Prints the type of a selection: one object type, or a union of the possible ones. */
export function printSelection(
  printing: Printing,
  parent: GraphQLCompositeType,
  node: SelectionSetNode,
): string {
  return printShapes(printing, parent, [{ node, isConditional: false }])
}

/** Prints the object types that a value may have; those of the same shape are one type. */
function printShapes(
  printing: Printing,
  parent: GraphQLCompositeType,
  sets: readonly Selected<SelectionSetNode>[],
): string {
  const shapes = new Map<string, string[]>()
  const types = isAbstractType(parent) ? printing.schema.getPossibleTypes(parent) : [parent]
  for (const type of types) {
    const shape = printFields(printing, type, sets)
    shapes.set(shape, [...(shapes.get(shape) ?? []), type.name])
  }
  return Array.from(shapes, ([shape, names]) =>
    shape.replaceAll(typenameMark, names.toSorted().map(quoted).join(' | ')),
  ).join(' | ')
}

/** Stands for the name of the object type until types of the same shape are put together. */
const typenameMark = '%typename%'

function printFields(
  printing: Printing,
  type: GraphQLObjectType,
  sets: readonly Selected<SelectionSetNode>[],
): string {
  const fields = new Map<string, Selected<FieldNode>[]>()
  for (const { node, isConditional } of sets) collectFields(printing, type, node, isConditional, fields)
  checkId(printing, type, [...fields.values()].flat())
  const lines = Array.from(fields, ([name, nodes]) => {
    const isOptional = nodes.every(({ isConditional }) => isConditional)
    return `${name}${isOptional ? '?' : ''}: ${printField(printing, type, nodes, isOptional)}`
  })
  return printBlock(lines)
}

function collectFields(
  printing: Printing,
  type: GraphQLObjectType,
  set: SelectionSetNode,
  isConditional: boolean,
  fields: Map<string, Selected<FieldNode>[]>,
): void {
  for (const node of set.selections) {
    const one = { isConditional: isConditional || hasCondition(node) }
    if (node.kind === Kind.FIELD) {
      const name = node.alias?.value ?? node.name.value
      fields.set(name, [...(fields.get(name) ?? []), { ...one, node }])
      continue
    }
    const fragment = node.kind === Kind.INLINE_FRAGMENT ? node : fragmentOf(printing, node.name.value)
    const condition = printing.schema.getType(fragment.typeCondition?.name.value ?? type.name)
    if (isAbstractType(condition)) printing.abstract.add(condition.name)
    const matches =
      condition === type || (isAbstractType(condition) && printing.schema.isSubType(condition, type))
    if (matches) collectFields(printing, type, fragment.selectionSet, one.isConditional, fields)
  }
}

function printField(
  printing: Printing,
  parent: GraphQLObjectType,
  nodes: readonly Selected<FieldNode>[],
  isOptional: boolean,
): string {
  const name = nodes[0]?.node.name.value ?? ''
  if (name === '__typename') return typenameMark
  const field = parent.getFields()[name]
  if (!field) throw new Error(`The field ${parent.name}.${name} cannot be printed.`)
  const sets = nodes.flatMap(({ node, isConditional }) =>
    // The fields of a field that is itself optional are there with it, if only one selection names them.
    node.selectionSet
      ? [{ node: node.selectionSet, isConditional: isConditional && !(isOptional && nodes.length === 1) }]
      : [],
  )
  return printOutput(printing, field.type, sets)
}

function printOutput(
  printing: Printing,
  type: GraphQLOutputType,
  sets: readonly Selected<SelectionSetNode>[],
): string {
  if (!isNonNullType(type)) return `${printPresent(printing, type, sets)} | null`
  return printPresent(printing, type.ofType, sets)
}

function printPresent(
  printing: Printing,
  type: GraphQLOutputType,
  sets: readonly Selected<SelectionSetNode>[],
): string {
  if (isListType(type)) return `Array<${printOutput(printing, type.ofType, sets)}>`
  const named = getNamedType(type)
  return isCompositeType(named) ? printShapes(printing, named, sets) : printLeaf(printing, named)
}

/** @throws Error if fields of an object are selected without its `id`, by which a cache knows the object */
function checkId(
  { schema }: Printing,
  type: GraphQLObjectType,
  fields: readonly Selected<FieldNode>[],
): void {
  if (!type.getFields()['id'] || roots.some((root) => schema.getRootType(root) === type)) return
  const names = fields.map(({ node }) => node.alias?.value ?? node.name.value)
  if (names.includes('id') || fields.every(({ node }) => node.name.value === '__typename')) return
  throw new Error(`A selection of ${type.name} lacks \`id\`: a cache cannot know the object without it.`)
}

const roots = [OperationTypeNode.QUERY, OperationTypeNode.MUTATION, OperationTypeNode.SUBSCRIPTION]

/** Names the type of a scalar or an enum. An enum is printed once, as the union of its values. */
export function printLeaf({ named }: Printing, type: GraphQLNamedType): string {
  if (!isEnumType(type)) {
    const form = standardScalars[type.name] ?? scalarForms[type.name]?.[1]
    if (form === undefined) throw new Error(`The scalar ${type.name} has no form in TypeScript.`)
    return form
  }
  const values = type.getValues().map(({ name }) => quoted(name))
  named.set(type.name, `export type ${type.name} = ${values.join(' | ')}`)
  return type.name
}

const standardScalars: Readonly<Record<string, string>> = {
  Boolean: 'boolean',
  Float: 'number',
  ID: 'string',
  Int: 'number',
  String: 'string',
}

export function fragmentOf({ fragments }: Printing, name: string): FragmentDefinitionNode {
  const fragment = fragments.get(name)
  if (!fragment) throw new Error(`There is no fragment ${name}.`)
  return fragment
}

function hasCondition({ directives = [] }: SelectionNode): boolean {
  return directives.some(({ name }) => name.value === 'include' || name.value === 'skip')
}

/** Prints an object type, one member per line. */
export function printBlock(members: readonly string[]): string {
  return `{\n${members.map((member) => `  ${member.replaceAll('\n', '\n  ')}\n`).join('')}}`
}

export const quoted = (text: string) => JSON.stringify(text)
