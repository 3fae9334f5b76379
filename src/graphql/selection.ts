import { type GraphQLResolveInfo, Kind, type SelectionSetNode } from 'graphql'

/**
 * Whether a field with one of the names is selected below the field that is resolved, at any depth. A field
 * that `@skip` leaves out counts too.
 */
export function selects({ fieldNodes, fragments }: GraphQLResolveInfo, names: readonly string[]): boolean {
  const isIn = (set: SelectionSetNode | undefined): boolean =>
    set?.selections.some((selection) => {
      if (selection.kind === Kind.FRAGMENT_SPREAD) return isIn(fragments[selection.name.value]?.selectionSet)
      if (selection.kind === Kind.FIELD && names.includes(selection.name.value)) return true
      return isIn(selection.selectionSet)
    }) ?? false
  return fieldNodes.some(({ selectionSet }) => isIn(selectionSet))
}
