import {
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  getNamedType,
  getNullableType,
  type GraphQLCompositeType,
  GraphQLError,
  type GraphQLField,
  type GraphQLNamedType,
  type GraphQLSchema,
  isCompositeType,
  isInterfaceType,
  isListType,
  isObjectType,
  Kind,
  type OperationDefinitionNode,
  type SelectionSetNode,
} from 'graphql'
import { limits } from '../shared/limits.ts'

/** The largest depth of a GraphQL document (see docs/design/architecture.md#limits-of-graphql). */
const graphqlDepthMax = 12

/** The most fields at one place of the answer, equal ones included: validation compares each with each. */
const graphqlBreadthMax = 200
const graphqlAliasesMax = 30
const graphqlRootAliasesMax = 20
const graphqlDirectivesMax = 20

/**
 * The largest depth of a query of the schema itself (introspection): tools need 13 levels. Validation refuses
 * lists nested in lists.
 */
const graphqlIntrospectionDepthMax = 20

/**
 * The cost of reading the schema, in objects: an operation may read five whole schemas or a hundred types.
 */
const schemaCost = limits.graphqlCostMax / 5
const typeCost = limits.graphqlCostMax / 100

/** A selection set, and the fragments that lead to it. */
interface Part {
  set: SelectionSetNode
  within: Trail | null
}

interface Trail {
  fragment: string
  above: Trail | null
}

/**
 * Bounds the work that a document causes, before any other step reads it, validation included. A fragment
 * counts at each place that uses it: twenty lines of fragments can expand to more fields than memory holds.
 * All fields of one name in one parent count together, because validation compares each of them with each.
 * @throws GraphQLError COST_EXCEEDED that names the bound
 */
export function checkShape(document: DocumentNode): void {
  const fragments = fragmentsOf(document)
  let selections = 0
  let aliases = 0
  let directives = 0

  function countDirectives(node: { directives?: readonly unknown[] | undefined }): void {
    directives += node.directives?.length ?? 0
    bound('has', directives, graphqlDirectivesMax, 'directives')
  }

  /** Counts the fields at one place of the answer, and then those below them. */
  function walk(parts: readonly Part[], depth: number, isIntrospection: boolean): void {
    const below = new Map<string, Part[]>()
    let breadth = 0
    const aliasesAbove = aliases

    function take({ set, within }: Part): void {
      for (const selection of set.selections) {
        selections += 1
        bound('has', selections, limits.graphqlSelectionsMax, 'fields and fragments')
        countDirectives(selection)
        if (selection.kind === Kind.FIELD) takeField(selection, within)
        else if (selection.kind === Kind.INLINE_FRAGMENT) take({ set: selection.selectionSet, within })
        else {
          const fragment = selection.name.value
          const found = fragments.get(fragment)
          // Skip a fragment inside itself, or an unknown one: validation refuses it with a better message.
          if (found && !isOn(within, fragment)) {
            take({ set: found.selectionSet, within: { fragment, above: within } })
          }
        }
      }
    }

    function takeField({ alias, name, selectionSet }: FieldNode, within: Trail | null): void {
      breadth += 1
      bound('has', breadth, graphqlBreadthMax, 'fields side by side')
      if (alias) aliases += 1
      bound('has', aliases, graphqlAliasesMax, 'aliases')
      if (depth === 1) bound('has', aliases - aliasesAbove, graphqlRootAliasesMax, 'aliases at its top')
      const isInside = isIntrospection || name.value === '__schema' || name.value === '__type'
      const depthMax = isInside ? graphqlIntrospectionDepthMax : graphqlDepthMax
      bound('goes', depth, depthMax, 'levels deep')
      if (!selectionSet) return
      const key = `${isInside ? '!' : ''}${alias?.value ?? name.value}`
      const same = below.get(key)
      if (same) same.push({ set: selectionSet, within })
      else below.set(key, [{ set: selectionSet, within }])
    }

    for (const part of parts) take(part)
    for (const [name, same] of below) walk(same, depth + 1, name.startsWith('!'))
  }

  for (const definition of document.definitions) {
    if (definition.kind !== Kind.OPERATION_DEFINITION) continue
    countDirectives(definition)
    walk([{ set: definition.selectionSet, within: null }], 1, false)
  }
}

function isOn(trail: Trail | null, fragment: string): boolean {
  for (let at = trail; at; at = at.above) if (at.fragment === fragment) return true
  return false
}

function bound(verb: string, value: number, max: number, what: string): void {
  if (value <= max) return
  throw new GraphQLError(`The document ${verb} more than ${max} ${what}.`, {
    extensions: { code: 'COST_EXCEEDED' },
  })
}

/**
 * Computes the most objects that an operation may return: each counts once for every entry of the pages
 * around it. The result depends on variables, so it is computed for each request.
 * @param operation an operation of a valid document that passed `checkShape`
 * @throws GraphQLError COST_EXCEEDED, with `cost: { requested, limit }`
 */
export function checkCost(
  schema: GraphQLSchema,
  document: DocumentNode,
  operation: OperationDefinitionNode,
  variables: Readonly<Record<string, unknown>>,
): number {
  const fragments = fragmentsOf(document)
  const valueOf = argumentReader(operation, variables)
  let cost = 0

  /** @param page where `parent` is a connection, the length of its page */
  function walk(set: SelectionSetNode, parent: GraphQLCompositeType, times: number, page: number): void {
    for (const selection of set.selections) {
      if (selection.kind !== Kind.FIELD) {
        const fragment =
          selection.kind === Kind.FRAGMENT_SPREAD ? fragments.get(selection.name.value) : selection
        const type = fragment?.typeCondition ? schema.getType(fragment.typeCondition.name.value) : parent
        if (fragment && isCompositeType(type)) walk(fragment.selectionSet, type, times, page)
        continue
      }
      if (selection.name.value === '__schema') cost += schemaCost
      if (selection.name.value === '__type') cost += typeCost
      const field = fieldOf(parent, selection)
      const given = field && getNamedType(field.type)
      if (!field || !isCompositeType(given) || !selection.selectionSet) continue
      const many = times * lengthOf(field, selection, isConnection(parent) ? page : null, valueOf)
      if (!isConnection(given) && !isWrapping(given)) cost += many
      const listed = isConnection(given) ? Math.min(pageSize(selection, valueOf), lengthMaxOf(field)) : 1
      walk(selection.selectionSet, given, many, listed)
    }
  }

  const root = schema.getRootType(operation.operation)
  if (root) walk(operation.selectionSet, root, 1, 1)
  if (cost <= limits.graphqlCostMax) return cost
  throw new GraphQLError(
    `The operation may give ${cost} objects, more than ${limits.graphqlCostMax}. Ask for less at a time.`,
    {
      extensions: { code: 'COST_EXCEEDED', cost: { requested: cost, limit: limits.graphqlCostMax } },
    },
  )
}

type ArgumentReader = (field: FieldNode, name: string) => unknown

/**
 * Makes a function that reads an argument from its literal, its variable or the variable's default. Of
 * literals and defaults, it reads whole numbers and lists; any other gives null.
 */
function argumentReader(
  operation: OperationDefinitionNode,
  variables: Readonly<Record<string, unknown>>,
): ArgumentReader {
  const defaults = new Map(
    operation.variableDefinitions?.map(({ variable, defaultValue }) => [variable.name.value, defaultValue]),
  )
  return (field, name) => {
    const given = field.arguments?.find((argument) => argument.name.value === name)?.value
    const variable = given?.kind === Kind.VARIABLE ? given.name.value : null
    if (variable !== null && variables[variable] !== undefined) return variables[variable]
    const literal = variable === null ? given : defaults.get(variable)
    if (literal?.kind === Kind.INT) return Number(literal.value)
    return literal?.kind === Kind.LIST ? literal.values : null
  }
}

/**
 * Returns the size of the page that a field requests. An invalid size counts as the maximum (100) here; the
 * field's resolver refuses it later.
 */
function pageSize(field: FieldNode, valueOf: ArgumentReader): number {
  const size = valueOf(field, 'last') ?? valueOf(field, 'first') ?? limits.pageSizeDefault
  return typeof size === 'number' && size > 0 ? Math.min(size, limits.pageSizeMax) : limits.pageSizeMax
}

/**
 * Returns how many objects a field gives: the page length in a connection, the length of a list of ids, the
 * length that the field states, or the default page for a list of nodes; else one.
 * @param page the length of the connection to which the field belongs
 */
function lengthOf(
  field: GraphQLField<unknown, unknown>,
  selection: FieldNode,
  page: number | null,
  valueOf: ArgumentReader,
): number {
  if (!isListType(getNullableType(field.type))) return 1
  const ids = valueOf(selection, 'ids')
  if (Array.isArray(ids)) return ids.length
  return page ?? assumedLength(field)
}

/** A field of the schema, or its configuration. */
type ListField = Pick<GraphQLField<unknown, unknown>, 'type'> & {
  extensions?: Readonly<Record<string, unknown>> | null | undefined
}

/** Returns how many entries count for a list without arguments that is not a part of a connection. */
export function assumedLength(field: ListField): number {
  const own = lengthMaxOf(field)
  if (own < Infinity) return own
  return isNode(getNamedType(field.type)) ? limits.pageSizeDefault : 1
}

/** Returns the largest length of a list, where its field states one (`extensions: { lengthMax }`). */
export function lengthMaxOf({ extensions }: ListField): number {
  return Number(extensions?.['lengthMax'] ?? Infinity)
}

function fieldOf(
  parent: GraphQLCompositeType,
  { name }: FieldNode,
): GraphQLField<unknown, unknown> | undefined {
  return isObjectType(parent) || isInterfaceType(parent) ? parent.getFields()[name.value] : undefined
}

/** Whether a type is a page of a list. */
export function isConnection({ name }: GraphQLCompositeType): boolean {
  return name.endsWith('Connection')
}

function isNode(type: GraphQLNamedType): boolean {
  return isObjectType(type) && type.getInterfaces().some(({ name }) => name === 'Node')
}

/** Whether a type only wraps the objects of a connection, and so counts as no object itself. */
export function isWrapping({ name }: GraphQLCompositeType): boolean {
  return name.endsWith('Edge') || name === 'PageInfo'
}

function fragmentsOf(document: DocumentNode): ReadonlyMap<string, FragmentDefinitionNode> {
  return new Map(
    document.definitions
      .filter((definition) => definition.kind === Kind.FRAGMENT_DEFINITION)
      .map((fragment) => [fragment.name.value, fragment]),
  )
}
