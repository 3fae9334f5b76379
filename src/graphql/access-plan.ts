import {
  type DocumentNode,
  type FragmentDefinitionNode,
  getNamedType,
  type GraphQLCompositeType,
  GraphQLError,
  type GraphQLSchema,
  isCompositeType,
  isInterfaceType,
  isObjectType,
  Kind,
  type OperationDefinitionNode,
  type SelectionNode,
  type SelectionSetNode,
} from 'graphql'
import type { Actor } from '../identity/callers/actor.ts'
import type { Scope } from '../identity/callers/scopes.ts'
import { tokenProblems } from '../shared/challenge.ts'
import { invariant } from '../shared/invariant.ts'
import { limits } from '../shared/limits.ts'

/**
 * The rule of who may use a field or a type: any caller, any signed-in caller, or tokens that hold all of
 * these scopes, or one of them.
 */
export type AccessRule =
  | 'public'
  | 'authenticated'
  | readonly [Scope, ...Scope[]]
  | { readonly anyOf: readonly [Scope, ...Scope[]] }

/** Returns the alternatives of a rule: a token must hold every scope of one of these lists. */
export function alternatives(rule: Exclude<AccessRule, string>): readonly (readonly Scope[])[] {
  return 'anyOf' in rule ? rule.anyOf.map((scope) => [scope]) : [rule]
}

/**
 * One demand of an operation: a rule, the schema coordinate that has the rule, and the variables of `@skip`
 * and `@include` that may lift the demand.
 */
interface Demand {
  rule: AccessRule
  coordinate: string
  /** The values of variables under which the field is part of the answer. */
  when: readonly { variable: string; is: boolean }[]
}

/** The demands and properties of an operation, known before any of it runs. */
export interface AccessPlan {
  demands: readonly Demand[]
  /** The number of mutations that move money. */
  payments: number
  /** Whether the operation changes anything besides the caller's own way of signing in. */
  changes: boolean
  /** Whether the answer may show a secret: a field that is marked `isSecret`. */
  showsSecret: boolean
  /** The names of the root fields that the operation runs; a field that runs twice is listed twice. */
  rootFields: readonly string[]
  /** Whether the operation asks for the schema itself (introspection). */
  readsSchema: boolean
  /** Whether the operation has a field whose value depends on the calling person (`perPerson`). */
  perPerson: boolean
}

const plans = new WeakMap<DocumentNode, Map<string, AccessPlan>>()

/**
 * Computes the demands of an operation of a valid document, once per operation: for each field the rule of
 * the field, of its parent type and of its own type.
 * @throws GraphQLError COST_EXCEEDED where the document expands to too many fields
 */
export function accessPlan(
  schema: GraphQLSchema,
  document: DocumentNode,
  operationName?: string | null,
): AccessPlan {
  const known = plans.get(document) ?? new Map<string, AccessPlan>()
  plans.set(document, known)
  const name = operationName ?? ''
  const plan = known.get(name) ?? makePlan(schema, document, findOperation(document, operationName))
  known.set(name, plan)
  return plan
}

/**
 * Refuses an operation before any of it runs.
 * @throws GraphQLError UNAUTHENTICATED, FORBIDDEN (with `requiredScopes`, except for a role that only reads),
 *   ONE_PAYMENT_PER_OPERATION
 */
export function checkAccess(
  plan: AccessPlan,
  actor: Actor | null,
  variables: Readonly<Record<string, unknown>> | null | undefined,
): void {
  for (const { rule, coordinate, when } of plan.demands) {
    // An absent variable lifts no demand, because it may have a default value.
    const lifted = when.some(({ variable, is }) => variables?.[variable] === !is)
    if (!lifted) checkRule(rule, coordinate, actor)
  }
  if (plan.changes) checkMayChange(actor)
  if (plan.payments > 1) {
    throw new GraphQLError('An operation can make one payment only. Send one payment at a time.', {
      extensions: { code: 'ONE_PAYMENT_PER_OPERATION' },
    })
  }
}

/**
 * Returns the access rule that the schema states for a type, for handlers that show the type without GraphQL.
 * @throws Error where the schema has no such type, or the type states no rule: the service does not start
 */
export function accessRuleOf(schema: GraphQLSchema, typeName: string): AccessRule {
  const rule = schema.getType(typeName)?.extensions['accessRule']
  invariant(rule !== undefined, `the type ${typeName} states its access rule`)
  return rule as AccessRule
}

/** Refuses a caller that does not fulfil a rule. @throws GraphQLError UNAUTHENTICATED, FORBIDDEN */
export function checkRule(rule: AccessRule, coordinate: string, actor: Actor | null): void {
  if (rule === 'public') return
  if (!actor) {
    throw new GraphQLError(tokenProblems.missing, {
      extensions: { code: 'UNAUTHENTICATED', tokenProblem: 'missing', coordinate },
    })
  }
  if (rule === 'authenticated') return
  if (fulfils(rule, actor)) return
  const anyOf = alternatives(rule)
  const words = anyOf.map((scopes) => scopes.join(', ')).join(' or ')
  throw new GraphQLError(`The token lacks a required scope: ${words}.`, {
    extensions: { code: 'FORBIDDEN', requiredScopes: anyOf.flat(), anyOf, coordinate },
  })
}

/** Whether a signed-in caller fulfils a rule. */
export function fulfils(rule: AccessRule, { scopes }: Pick<Actor, 'scopes'>): boolean {
  if (rule === 'public' || rule === 'authenticated') return true
  return alternatives(rule).some((all) => all.every((scope) => scopes.has(scope)))
}

/** Refuses a caller whose role only reads. @throws GraphQLError FORBIDDEN */
export function checkMayChange(actor: Actor | null): void {
  if (!actor?.readsOnly) return
  throw new GraphQLError(`The role ${actor.role} can only read.`, {
    extensions: { code: 'FORBIDDEN' },
  })
}

/** Finds the operation that a request names. @throws GraphQLError BAD_USER_INPUT */
export function findOperation(
  document: DocumentNode,
  name: string | null | undefined,
): OperationDefinitionNode {
  const operations = document.definitions.filter(
    (definition) => definition.kind === Kind.OPERATION_DEFINITION,
  )
  const found = name ? operations.find((operation) => operation.name?.value === name) : operations[0]
  if (found && (name || operations.length === 1)) return found
  throw new GraphQLError(
    name ? `The document has no operation ${name}.` : 'The request must name its operation.',
    {
      extensions: { code: 'BAD_USER_INPUT' },
    },
  )
}

function makePlan(
  schema: GraphQLSchema,
  document: DocumentNode,
  operation: OperationDefinitionNode,
): AccessPlan {
  const fragments = new Map(
    document.definitions
      .filter(
        (definition): definition is FragmentDefinitionNode => definition.kind === Kind.FRAGMENT_DEFINITION,
      )
      .map((fragment) => [fragment.name.value, fragment]),
  )
  const demands = new Map<string, Demand>()
  const rootFields: string[] = []
  let payments = 0
  let changes = false
  let readsSchema = false
  let showsSecret = false
  let perPerson = false
  let steps = 0

  function demand(rule: unknown, coordinate: string, when: Demand['when']): void {
    if (rule === undefined || rule === 'public') return
    demands.set(`${coordinate} ${JSON.stringify(when)}`, { rule: rule as AccessRule, coordinate, when })
  }

  function walk(
    set: SelectionSetNode,
    parent: GraphQLCompositeType,
    above: Demand['when'],
    isRoot: boolean,
  ): void {
    for (const selection of set.selections) {
      steps += 1
      if (steps > limits.graphqlSelectionsMax) throw tooLarge()
      const when = conditionsOf(selection, above)
      if (when === null) continue
      if (selection.kind === Kind.FIELD) {
        readsSchema ||= isRoot && ['__schema', '__type'].includes(selection.name.value)
        const field =
          isObjectType(parent) || isInterfaceType(parent)
            ? parent.getFields()[selection.name.value]
            : undefined
        if (!field) continue
        const given = getNamedType(field.type)
        demand(field.extensions['accessRule'], `${parent.name}.${field.name}`, when)
        demand(parent.extensions['accessRule'], parent.name, when)
        demand(given.extensions['accessRule'], given.name, when)
        showsSecret ||= field.extensions['isSecret'] === true
        perPerson ||= isPerPerson(schema, parent, field.name)
        if (isRoot) rootFields.push(field.name)
        if (isRoot && field.extensions['movesMoney'] === true) payments += 1
        changes ||= operation.operation === 'mutation' && isRoot && isChange(field.extensions)
        if (selection.selectionSet && isCompositeType(given)) walk(selection.selectionSet, given, when, false)
        continue
      }
      const fragment =
        selection.kind === Kind.FRAGMENT_SPREAD ? fragments.get(selection.name.value) : selection
      const condition = fragment?.typeCondition ? schema.getType(fragment.typeCondition.name.value) : parent
      if (fragment && isCompositeType(condition)) {
        demand(condition.extensions['accessRule'], condition.name, when)
        walk(fragment.selectionSet, condition, when, isRoot)
      }
    }
  }

  const root = schema.getRootType(operation.operation)
  if (root) walk(operation.selectionSet, root, [], true)
  return {
    demands: [...demands.values()],
    payments,
    rootFields,
    readsSchema,
    perPerson,
    changes,
    showsSecret,
  }
}

/**
 * Whether the field's value depends on the calling person; for an interface, in any type that implements it.
 */
function isPerPerson(schema: GraphQLSchema, parent: GraphQLCompositeType, name: string): boolean {
  const types = isObjectType(parent) ? [parent] : schema.getPossibleTypes(parent)
  return types.some((type) => type.getFields()[name]?.extensions['perPerson'] === true)
}

/** True unless a mutation is public, or changes only the person's own way of signing in. */
export function isChange(extensions: Readonly<Record<string, unknown>>): boolean {
  return extensions['accessRule'] !== 'public' && extensions['ownAccount'] !== true
}

/**
 * Returns the conditions of a selection and of those above it; null where the selection is always left out,
 * with any values of the variables.
 */
function conditionsOf(selection: SelectionNode, above: Demand['when']): Demand['when'] | null {
  let when = above
  for (const directive of selection.directives ?? []) {
    const name = directive.name.value
    if (name !== 'skip' && name !== 'include') continue
    const value = directive.arguments?.find((argument) => argument.name.value === 'if')?.value
    const wanted = name === 'include'
    if (value?.kind === Kind.BOOLEAN && value.value !== wanted) return null
    if (value?.kind === Kind.VARIABLE) when = [...when, { variable: value.name.value, is: wanted }]
  }
  return when
}

function tooLarge(): GraphQLError {
  return new GraphQLError(`The document has more than ${limits.graphqlSelectionsMax} fields and fragments.`, {
    extensions: { code: 'COST_EXCEEDED' },
  })
}
