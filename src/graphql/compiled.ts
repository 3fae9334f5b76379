import {
  defaultFieldResolver,
  defaultTypeResolver,
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  getArgumentValues,
  getVariableValues,
  type GraphQLAbstractType,
  type GraphQLObjectType,
  type GraphQLOutputType,
  type GraphQLResolveInfo,
  type GraphQLSchema,
  isAbstractType,
  isLeafType,
  isListType,
  isNonNullType,
  isObjectType,
  Kind,
  locatedError,
  type OperationDefinitionNode,
  type SelectionSetNode,
  validate,
} from 'graphql'
import type { Context } from '../context.ts'
import { invariant } from '../shared/invariant.ts'
import { type AccessPlan, accessPlan, checkAccess, findOperation } from './access-plan.ts'
import { asMerchant } from '../database/merchant-pool.ts'

/** An operation of the service itself, parsed, validated, planned and compiled once. */
export interface Prepared {
  plan: AccessPlan
  run: Compiled
}

/**
 * Prepares an operation of a document that `checkDocument` has checked.
 * @throws Error where the document lacks the operation, or the operation needs more than can be compiled
 */
export function prepare(schema: GraphQLSchema, document: DocumentNode, operationName: string): Prepared {
  return {
    plan: accessPlan(schema, document, operationName),
    run: compile(schema, document, operationName),
  }
}

/** Checks a document against the schema. @throws Error that lists every problem of the document */
export function checkDocument(schema: GraphQLSchema, document: DocumentNode): DocumentNode {
  const problems = validate(schema, document)
  invariant(problems.length === 0, problems.map((problem) => problem.message).join('\n'))
  return document
}

/**
 * Runs a prepared operation in this process, without HTTP; access is checked before any of it runs.
 * @returns the value of its root field
 * @throws GraphQLError the first error of any field, not masked: the handler that answers masks it
 */
export function execute({ plan, run }: Prepared, variables: object, ctx: Context): Promise<unknown> {
  checkAccess(plan, ctx.actor, variables as Record<string, unknown>)
  return asMerchant(ctx.actor?.merchantId ?? null, () => run(variables, ctx))
}

/**
 * A function that runs a compiled operation.
 * @returns the value of its root field
 * @throws GraphQLError the first error of any field, with its path
 */
export type Compiled = (variables: object, ctx: Context) => Promise<unknown>

type Path = GraphQLResolveInfo['path']

/** The state of one run of an operation. */
interface Run {
  ctx: Context
  variableValues: GraphQLResolveInfo['variableValues']
}

/**
 * A function that converts the value of a resolver to the form of the answer; it returns a promise where it
 * has to wait.
 */
type Complete = (value: unknown, info: GraphQLResolveInfo, run: Run) => unknown

/** A function that computes one field of a source object, in the form of the answer. */
type Field = (source: unknown, above: Path | undefined, run: Run) => unknown

interface CompileContext {
  schema: GraphQLSchema
  operation: OperationDefinitionNode
  fragments: Readonly<Record<string, FragmentDefinitionNode>>
}

/**
 * Compiles an operation once, so that running it only calls its resolvers: the fields, their arguments and
 * the way to write their values are looked up here. It uses the same resolvers, arguments and types as
 * general execution, but supports only a part of it: one root field, no directives, and an error of any field
 * fails the whole operation.
 * @throws Error where the operation needs more than that
 */
export function compile(schema: GraphQLSchema, document: DocumentNode, operationName: string): Compiled {
  const operation = findOperation(document, operationName)
  const fragments = Object.fromEntries(
    document.definitions
      .filter((definition) => definition.kind === Kind.FRAGMENT_DEFINITION)
      .map((fragment) => [fragment.name.value, fragment]),
  )
  const context: CompileContext = { schema, operation, fragments }
  const root = schema.getRootType(operation.operation)
  invariant(root && operation.operation !== 'subscription', 'a compiled operation is a query or a mutation')
  const fields = compileFields(context, root, [operation.selectionSet])
  const [field] = fields.values()
  invariant(field && fields.size === 1, `${operationName} has one root field`)
  const definitions = operation.variableDefinitions ?? []
  return async (variables, ctx) => {
    const { variableValues, errors } = getVariableValues(schema, definitions, { ...variables })
    if (errors) throw errors[0]
    return field(undefined, undefined, { ctx, variableValues })
  }
}

function compileFields(
  context: CompileContext,
  type: GraphQLObjectType,
  sets: readonly SelectionSetNode[],
): Map<string, Field> {
  const nodes = new Map<string, FieldNode[]>()
  for (const set of sets) collect(context, type, set, nodes)
  return new Map(Array.from(nodes, ([key, asked]) => [key, compileField(context, type, key, asked)]))
}

/** Collects the fields that a selection asks of a type, by their names in the answer. */
function collect(
  context: CompileContext,
  type: GraphQLObjectType,
  set: SelectionSetNode,
  into: Map<string, FieldNode[]>,
): void {
  for (const selection of set.selections) {
    invariant(!selection.directives?.length, 'operations of our own have no directives')
    if (selection.kind === Kind.FIELD) {
      const key = selection.alias?.value ?? selection.name.value
      into.set(key, [...(into.get(key) ?? []), selection])
      continue
    }
    const fragment =
      selection.kind === Kind.FRAGMENT_SPREAD ? context.fragments[selection.name.value] : selection
    invariant(fragment, 'a valid document has the fragments that it names')
    const condition = fragment.typeCondition && context.schema.getType(fragment.typeCondition.name.value)
    const applies =
      !condition ||
      condition === type ||
      (isAbstractType(condition) && context.schema.isSubType(condition, type))
    if (applies) collect(context, type, fragment.selectionSet, into)
  }
}

function compileField(
  context: CompileContext,
  parent: GraphQLObjectType,
  key: string,
  nodes: readonly FieldNode[],
): Field {
  const [node] = nodes
  invariant(node, 'a collected field has a node')
  if (node.name.value === '__typename') return () => parent.name
  const field = parent.getFields()[node.name.value]
  invariant(field, 'a valid document asks only for fields that exist')
  const resolve = field.resolve ?? defaultFieldResolver
  const complete = compileValue(context, field.type, nodes)
  const constant = {
    fieldName: field.name,
    fieldNodes: [...nodes] as const,
    returnType: field.type,
    parentType: parent,
    schema: context.schema,
    fragments: context.fragments,
    rootValue: undefined,
    operation: context.operation,
    // No operation of the service itself is stopped halfway.
    getAbortSignal: () => undefined,
    getAsyncHelpers: () => ({ promiseAll: Promise.all.bind(Promise), track: () => {} }),
  }
  return (source, above, run) => {
    const path = { prev: above, key, typename: parent.name }
    const info = { ...constant, path, variableValues: run.variableValues } as unknown as GraphQLResolveInfo
    try {
      const args = field.args.length > 0 ? getArgumentValues(field, node, run.variableValues) : {}
      const resolved: unknown = resolve(source, args, run.ctx, info)
      const completed = isPromise(resolved)
        ? resolved.then((value) => complete(value, info, run))
        : complete(resolved, info, run)
      return isPromise(completed)
        ? completed.catch((error: unknown) => {
            throw located(error, info)
          })
        : completed
    } catch (error) {
      throw located(error, info)
    }
  }
}

function compileValue(
  context: CompileContext,
  type: GraphQLOutputType,
  nodes: readonly FieldNode[],
): Complete {
  const inner = compileNullable(context, isNonNullType(type) ? type.ofType : type, nodes)
  return (value, info, run) => {
    if (value instanceof Error) throw value
    if (value !== null && value !== undefined) return inner(value, info, run)
    if (!isNonNullType(type)) return null
    throw new Error(`Cannot return null for non-nullable field ${info.parentType.name}.${info.fieldName}.`)
  }
}

function compileNullable(
  context: CompileContext,
  type: GraphQLOutputType,
  nodes: readonly FieldNode[],
): Complete {
  if (isLeafType(type)) return (value) => type.coerceOutputValue(value)
  if (isListType(type)) {
    const item = compileValue(context, type.ofType, nodes)
    return (value, info, run) => {
      const items = Array.from(value as Iterable<unknown>, (each, index) => {
        const path = { prev: info.path, key: index, typename: undefined }
        return () => item(each, { ...info, path }, run)
      })
      return together(items, (values) => values)
    }
  }
  if (isAbstractType(type)) return compileAbstract(context, type, nodes)
  invariant(isObjectType(type), 'the type of a field is a leaf, a list, abstract or an object')
  return compileObject(context, type, nodes)
}

function compileAbstract(
  context: CompileContext,
  type: GraphQLAbstractType,
  nodes: readonly FieldNode[],
): Complete {
  const resolveType = type.resolveType ?? defaultTypeResolver
  const possible = new Map(
    context.schema.getPossibleTypes(type).map((each) => [each.name, compileObject(context, each, nodes)]),
  )
  return (value, info, run) => {
    const complete = (name: string | undefined) => {
      const chosen = possible.get(name ?? '')
      invariant(chosen, `${info.parentType.name}.${info.fieldName} gives a ${name}, which is no ${type.name}`)
      return chosen(value, info, run)
    }
    const name = resolveType(value, run.ctx, info, type)
    return isPromise(name) ? name.then(complete) : complete(name)
  }
}

function compileObject(
  context: CompileContext,
  type: GraphQLObjectType,
  nodes: readonly FieldNode[],
): Complete {
  const sets = nodes.flatMap(({ selectionSet }) => selectionSet ?? [])
  const fields = [...compileFields(context, type, sets)]
  const select = (value: unknown, info: GraphQLResolveInfo, run: Run) =>
    together(
      fields.map(
        ([, field]) =>
          () =>
            field(value, info.path, run),
      ),
      (values) => Object.fromEntries(fields.map(([key], index) => [key, values[index]])),
    )
  const { isTypeOf } = type
  if (!isTypeOf) return select
  return (value, info, run) => {
    const check = (isOne: boolean) => {
      invariant(isOne, `${info.parentType.name}.${info.fieldName} gives no ${type.name}`)
      return select(value, info, run)
    }
    const isOne = isTypeOf(value, run.ctx, info)
    return isPromise(isOne) ? isOne.then(check) : check(isOne)
  }
}

/** Calls all functions at once, and returns a promise only where one of them returned a promise. */
function together<T>(works: readonly (() => unknown)[], finish: (values: unknown[]) => T): T | Promise<T> {
  const values: unknown[] = []
  let waits = false
  try {
    for (const work of works) {
      const value = work()
      waits ||= isPromise(value)
      values.push(value)
    }
  } catch (error) {
    // The first error is the answer: the results and errors of the other functions are ignored.
    for (const value of values) if (isPromise(value)) value.catch(() => {})
    throw error
  }
  return waits ? Promise.all(values).then(finish) : finish(values)
}

function located(error: unknown, { fieldNodes, path }: GraphQLResolveInfo): Error {
  const keys: (string | number)[] = []
  for (let part: Path | undefined = path; part; part = part.prev) keys.unshift(part.key)
  return locatedError(error, [...fieldNodes], keys)
}

function isPromise(value: unknown): value is Promise<unknown> {
  return value instanceof Promise || (typeof value === 'object' && value !== null && 'then' in value)
}
