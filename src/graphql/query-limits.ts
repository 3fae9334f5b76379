import {
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  getNamedType,
  GraphQLError,
  type GraphQLOutputType,
  type GraphQLSchema,
  isInterfaceType,
  isObjectType,
  Kind,
  type OperationDefinitionNode,
  type SelectionSetNode,
} from 'graphql'
import { limits } from '../shared/limits.ts'

type Fragments = ReadonlyMap<string, FragmentDefinitionNode>

/** How large a selection set is, with its fragments unfolded. */
interface Size {
  selections: number
  depth: number
  aliases: number
  directives: number
}

const nothing: Size = { selections: 0, depth: 0, aliases: 0, directives: 0 }

/**
 * Refuses a document by its shape alone, before validation: validation itself is what a hostile document attacks.
 * Each fragment is measured once, so that fragments in fragments cost nothing to measure.
 * @throws GraphQLError COST_EXCEEDED that says which bound it breaks
 */
export function checkShape(document: DocumentNode): void {
  const fragments = fragmentsOf(document)
  const measured = new Map<string, Size | 'measuring'>()

  function measureFragment(name: string): Size {
    const known = measured.get(name)
    // A circle: validation says so in words.
    if (known === 'measuring') return nothing
    if (known) return known
    measured.set(name, 'measuring')
    const fragment = fragments.get(name)
    const size = fragment ? measure(fragment.selectionSet) : nothing
    measured.set(name, size)
    return size
  }

  function measure(set: SelectionSetNode): Size {
    const total = { ...nothing }
    for (const selection of set.selections) {
      const isField = selection.kind === Kind.FIELD
      const inner =
        selection.kind === Kind.FRAGMENT_SPREAD
          ? measureFragment(selection.name.value)
          : selection.selectionSet
            ? measure(selection.selectionSet)
            : nothing
      // What describes the schema has depths of its own, which validation bounds.
      const describes = isField && selection.name.value.startsWith('__')
      total.selections += 1 + inner.selections
      total.depth = Math.max(total.depth, describes ? 0 : inner.depth + (isField ? 1 : 0))
      total.aliases += inner.aliases + (isField && selection.alias ? 1 : 0)
      total.directives += inner.directives + (selection.directives?.length ?? 0)
    }
    return total
  }

  for (const definition of document.definitions) {
    if (definition.kind !== Kind.OPERATION_DEFINITION && definition.kind !== Kind.FRAGMENT_DEFINITION)
      continue
    const size = measure(definition.selectionSet)
    const directives = size.directives + (definition.directives?.length ?? 0)
    refuseOver('selections', size.selections, limits.graphqlSelectionsMax)
    refuseOver('levels', size.depth, limits.graphqlDepthMax)
    refuseOver('aliases', size.aliases, limits.graphqlAliasesMax)
    refuseOver('directives', directives, limits.graphqlDirectivesMax)
  }
}

function refuseOver(what: string, found: number, max: number): void {
  if (found <= max) return
  throw new GraphQLError(`The document has more than ${max} ${what}.`, {
    extensions: { code: 'COST_EXCEEDED' },
  })
}

/**
 * What an operation of a valid document may cost: one for each object, times the page sizes above it. It depends on the
 * variables, so it is asked at each execution.
 * @throws GraphQLError COST_EXCEEDED
 */
export function checkCost(
  schema: GraphQLSchema,
  document: DocumentNode,
  operation: OperationDefinitionNode,
  variables: Readonly<Record<string, unknown>> | null | undefined,
): number {
  const fragments = fragmentsOf(document)

  function costOf(set: SelectionSetNode, parent: GraphQLOutputType | undefined): number {
    let cost = 0
    for (const selection of set.selections) {
      if (selection.kind !== Kind.FIELD) {
        const fragment =
          selection.kind === Kind.FRAGMENT_SPREAD ? fragments.get(selection.name.value) : selection
        const condition = fragment?.typeCondition ? schema.getType(fragment.typeCondition.name.value) : parent
        if (fragment) cost += costOf(fragment.selectionSet, condition as GraphQLOutputType | undefined)
        continue
      }
      if (!selection.selectionSet || selection.name.value.startsWith('__')) continue
      const known = isObjectType(parent) || isInterfaceType(parent)
      const type = known ? parent.getFields()[selection.name.value]?.type : undefined
      const named = type && getNamedType(type)
      const size = named?.name.endsWith('Connection') ? pageSize(selection, variables) : 1
      cost += 1 + size * costOf(selection.selectionSet, named)
    }
    return cost
  }

  const cost = costOf(operation.selectionSet, schema.getRootType(operation.operation) ?? undefined)
  if (cost > limits.graphqlCostMax) {
    throw new GraphQLError(`The operation costs ${cost}; at most ${limits.graphqlCostMax} is allowed.`, {
      extensions: { code: 'COST_EXCEEDED', cost: { requested: cost, limit: limits.graphqlCostMax } },
    })
  }
  return cost
}

/** `first` or `last` as given; an absurd one is refused by its resolver, and counts as a full page here. */
function pageSize(field: FieldNode, variables: Readonly<Record<string, unknown>> | null | undefined): number {
  const argument = field.arguments?.find(({ name }) => name.value === 'first' || name.value === 'last')
  if (!argument) return limits.pageSizeDefault
  const { value } = argument
  const size =
    value.kind === Kind.VARIABLE
      ? variables?.[value.name.value]
      : value.kind === Kind.INT
        ? Number(value.value)
        : undefined
  return typeof size === 'number' && size > 0 ? Math.min(size, limits.pageSizeMax) : limits.pageSizeMax
}

function fragmentsOf(document: DocumentNode): Fragments {
  return new Map(
    document.definitions.flatMap((definition) =>
      definition.kind === Kind.FRAGMENT_DEFINITION ? [[definition.name.value, definition] as const] : [],
    ),
  )
}
