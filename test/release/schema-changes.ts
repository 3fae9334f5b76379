import {
  findBreakingChanges,
  type GraphQLSchema,
  isEnumType,
  isInputObjectType,
  isInterfaceType,
  isObjectType,
} from 'graphql'

/** A field, an argument, an input field or an enum value. */
interface Member {
  name: string
  deprecationReason?: string | null | undefined
}

/** How the reason of a deprecation ends: with the first day on which the member may be missing. */
const removalDay = /Removed from (\d{4}-\d\d-\d\d)\.$/

/**
 * Returns the changes that break programs written for `before`. A change is left out where the changelog
 * names it, and where a deprecated member is removed on or after the day that its reason names.
 * @param named the names in the changelog: `Type`, `Type.field`, `field` or `Type.field(argument:)`
 * @param today in the form 2026-11-24
 */
export function unnamedChanges(
  before: GraphQLSchema,
  after: GraphQLSchema,
  { named, today }: { named: ReadonlySet<string>; today: string },
): string[] {
  const deprecated = deprecationsOf(before)
  return findBreakingChanges(before, after)
    .map(({ description }) => description)
    .filter((description) => {
      const [place = ''] =
        /[A-Z]\w*\.\w+(\(\w+:\))?|\b[A-Z]\w*(?= (was|changed))|@\w+/.exec(description) ?? []
      const day = removalDay.exec(deprecated.get(place) ?? '')?.[1]
      const isOver = day !== undefined && day <= today && /was removed/.test(description)
      const [type = '', field = ''] = place.split(/[.(]/)
      return !isOver && ![place, `${type}.${field}`, field || type].some((name) => named.has(name))
    })
}

/** Returns the deprecations whose day of removal is missing, or sooner than twelve months after `from`. */
export function shortDeprecations(before: GraphQLSchema, after: GraphQLSchema, from: string): string[] {
  const known = deprecationsOf(before)
  const [year, ...rest] = from.split('-')
  const earliest = [Number(year) + 1, ...rest].join('-')
  return Array.from(deprecationsOf(after))
    .filter(([place, reason]) => {
      const day = removalDay.exec(reason)?.[1]
      return day === undefined || (known.get(place) !== reason && day < earliest)
    })
    .map(([place]) => place)
}

/** The reasons of all deprecated members, by `Type.field` or `Type.field(argument:)`. */
function deprecationsOf(schema: GraphQLSchema): Map<string, string> {
  const reasons = new Map<string, string>()
  const add = (place: string, { deprecationReason: reason }: Member) => {
    if (reason !== null && reason !== undefined) reasons.set(place, reason)
  }
  for (const type of Object.values(schema.getTypeMap())) {
    if (type.name.startsWith('__')) continue
    if (isEnumType(type)) for (const value of type.getValues()) add(`${type.name}.${value.name}`, value)
    if (isInputObjectType(type))
      for (const field of Object.values(type.getFields())) add(`${type.name}.${field.name}`, field)
    if (!isObjectType(type) && !isInterfaceType(type)) continue
    for (const field of Object.values(type.getFields())) {
      add(`${type.name}.${field.name}`, field)
      for (const argument of field.args) add(`${type.name}.${field.name}(${argument.name}:)`, argument)
    }
  }
  return reasons
}
