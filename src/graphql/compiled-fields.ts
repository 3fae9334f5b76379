import {
  defaultFieldResolver,
  defaultTypeResolver,
  type FieldNode,
  type FragmentDefinitionNode,
  getArgumentValues,
  getNullableType,
  type GraphQLAbstractType,
  GraphQLError,
  type GraphQLField,
  type GraphQLLeafType,
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
} from 'graphql'
import type { Context } from '../context.ts'
import { invariant } from '../shared/invariant.ts'

// This file compiles selections: it looks up the fields, their arguments and the way to write their values
// once. Resolvers, values and errors are those of general execution.

type Path = GraphQLResolveInfo['path'] | undefined

export interface OperationRun {
  ctx: Context
  variableValues: GraphQLResolveInfo['variableValues']
  signal: AbortSignal | undefined
  /** The errors of fields so far. */
  errors: GraphQLError[]
  /** The arguments of each field: rows of a list have the same. */
  args: Map<object, object>
}

/**
 * A function that converts the value of a resolver to the form of the answer; it returns a promise where it
 * has to wait.
 */
type Complete = (value: unknown, info: GraphQLResolveInfo, path: Path, run: OperationRun) => unknown

/** A function that computes a field, or all fields, of a source object in the form of the answer. */
type Compute = (source: unknown, path: Path, run: OperationRun) => unknown

/** The parts of an operation that are the same for all of its fields. */
export interface CompileContext {
  schema: GraphQLSchema
  operation: OperationDefinitionNode
  fragments: Readonly<Record<string, FragmentDefinitionNode>>
}

/** An object of the answer. It has no inherited names, because a client may choose any name as an alias. */
class Answer {
  [name: string]: unknown
}
Object.setPrototypeOf(Answer.prototype, null)

/** Compiles the fields that selections ask of a type, when the first object of the type is selected. */
export function compileSelection(
  context: CompileContext,
  type: GraphQLObjectType,
  sets: readonly SelectionSetNode[],
): Compute {
  let compiled: (readonly [string, Compute])[] | undefined
  return (source, path, run) => {
    run.signal?.throwIfAborted()
    compiled ??= compileFields(context, type, sets)
    const answer = new Answer()
    const waiting: Promise<unknown>[] = []
    try {
      for (const [key, field] of compiled) {
        const value = field(source, path, run)
        answer[key] = value
        if (isPromise(value)) waiting.push(value.then((settled) => (answer[key] = settled)))
      }
    } catch (error) {
      if (waiting.length === 0) throw error
      const rethrow = () => {
        throw error
      }
      // The fields that wait may fail too: their errors are part of the result.
      return Promise.all(waiting).then(rethrow, rethrow)
    }
    return waiting.length === 0 ? answer : Promise.all(waiting).then(() => answer)
  }
}

function compileFields(
  context: CompileContext,
  type: GraphQLObjectType,
  sets: readonly SelectionSetNode[],
): (readonly [string, Compute])[] {
  const nodes = new Map<string, FieldNode[]>()
  const spread = new Set<string>()
  for (const set of sets) collect(context, type, set, { nodes, spread })
  return Array.from(nodes, ([key, asked]) => [key, compileField(context, type, key, asked)] as const)
}

/**
 * Collects the fields that a selection asks of a type, by their names in the answer.
 * @param into.spread the named fragments so far: a second spread of one adds nothing
 */
function collect(
  context: CompileContext,
  type: GraphQLObjectType,
  set: SelectionSetNode,
  into: { nodes: Map<string, FieldNode[]>; spread: Set<string> },
): void {
  for (const selection of set.selections) {
    if (selection.kind === Kind.FIELD) {
      const key = selection.alias?.value ?? selection.name.value
      into.nodes.set(key, [...(into.nodes.get(key) ?? []), selection])
      continue
    }
    if (selection.kind === Kind.FRAGMENT_SPREAD) {
      if (into.spread.has(selection.name.value)) continue
      into.spread.add(selection.name.value)
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
): Compute {
  const [node] = nodes
  invariant(node, 'a collected field has a node')
  if (node.name.value === '__typename') return () => parent.name
  const field = parent.getFields()[node.name.value]
  invariant(field, 'a valid document asks only for fields that exist')
  const resolve = field.resolve ?? defaultFieldResolver
  const complete = compileValue(context, field.type, nodes)
  const place: Place = { context, parent, field, nodes }
  const compute: Compute = (source, above, run) => {
    const path = { prev: above, key, typename: parent.name }
    try {
      const info = new Info(place, path, run) as unknown as GraphQLResolveInfo
      const resolved: unknown = resolve(source, argumentsOf(place, node, run), run.ctx, info)
      const completed = isPromise(resolved)
        ? resolved.then((value) => complete(value, info, path, run))
        : complete(resolved, info, path, run)
      if (!isPromise(completed)) return completed
      return completed.then(undefined, (error: unknown) => fail(error, nodes, path, field.type, run))
    } catch (error) {
      return fail(error, nodes, path, field.type, run)
    }
  }
  return columnReader(field, compute) ?? compute
}

/** A field of a type, and the selections that ask for it. */
interface Place {
  context: CompileContext
  parent: GraphQLObjectType
  field: GraphQLField<unknown, unknown>
  nodes: readonly FieldNode[]
}

/** The last argument of a resolver: its place in the operation. */
class Info {
  readonly fieldName: string
  readonly fieldNodes: readonly FieldNode[]
  readonly returnType: GraphQLOutputType
  readonly parentType: GraphQLObjectType
  readonly path: Path
  readonly schema: GraphQLSchema
  readonly fragments: CompileContext['fragments']
  readonly rootValue: unknown
  readonly operation: OperationDefinitionNode
  readonly variableValues: GraphQLResolveInfo['variableValues']
  readonly signal: AbortSignal | undefined

  constructor({ context, parent, field, nodes }: Place, path: Path, run: OperationRun) {
    this.fieldName = field.name
    this.fieldNodes = nodes
    this.returnType = field.type
    this.parentType = parent
    this.path = path
    this.schema = context.schema
    this.fragments = context.fragments
    this.rootValue = undefined
    this.operation = context.operation
    this.variableValues = run.variableValues
    this.signal = run.signal
  }

  getAbortSignal(): AbortSignal | undefined {
    return this.signal
  }

  getAsyncHelpers(): ReturnType<GraphQLResolveInfo['getAsyncHelpers']> {
    return { promiseAll: Promise.all.bind(Promise), track: () => {} }
  }
}

/** Reads the arguments of a field, once for all objects of a run; each resolver gets a copy of its own. */
function argumentsOf(place: Place, node: FieldNode, run: OperationRun): object {
  if (place.field.args.length === 0) return {}
  const known = run.args.get(place) ?? getArgumentValues(place.field, node, run.variableValues)
  run.args.set(place, known)
  return { ...known }
}

/**
 * Makes the function of a field that only shows a property of its object (`t.expose`): it needs neither
 * arguments nor its place in the operation. Where the property was not loaded, or cannot be shown,
 * `otherwise` computes the field.
 * @returns null where the field is another one, or has an access rule of its own
 */
function columnReader(
  { type, extensions }: GraphQLField<unknown, unknown>,
  otherwise: Compute,
): Compute | null {
  const { pothosExposedField: column, accessRule } = extensions
  const leaf = getNullableType(type)
  if (typeof column !== 'string' || accessRule !== undefined || !isLeafType(leaf)) return null
  const isNullable = !isNonNullType(type)
  return (source, path, run) => {
    const value = (source as Readonly<Record<string, unknown>>)[column]
    if (value === null && isNullable) return null
    if (value == null || typeof value === 'function' || isPromise(value) || value instanceof Error)
      return otherwise(source, path, run)
    try {
      return leaf.coerceOutputValue(value) ?? otherwise(source, path, run)
    } catch {
      return otherwise(source, path, run)
    }
  }
}

function compileValue(
  context: CompileContext,
  type: GraphQLOutputType,
  nodes: readonly FieldNode[],
): Complete {
  const inner = compileNullable(context, getNullableType(type), nodes)
  const isNullable = !isNonNullType(type)
  return (value, info, path, run) => {
    if (value instanceof Error) throw value
    if (value !== null && value !== undefined) return inner(value, info, path, run)
    if (isNullable) return null
    throw new Error(`Cannot return null for non-nullable field ${info.parentType.name}.${info.fieldName}.`)
  }
}

function compileNullable(
  context: CompileContext,
  type: GraphQLOutputType,
  nodes: readonly FieldNode[],
): Complete {
  if (isLeafType(type)) return (value) => writeLeaf(type, value)
  if (isListType(type)) return compileList(context, type.ofType, nodes)
  if (isAbstractType(type)) return compileAbstract(context, type, nodes)
  invariant(isObjectType(type), 'the type of a field is a leaf, a list, abstract or an object')
  return compileObject(context, type, nodes)
}

/** @throws Error never a GraphQLError: a value that its type cannot show is a bug, and stays hidden */
function writeLeaf(type: GraphQLLeafType, value: unknown): unknown {
  try {
    const written = type.coerceOutputValue(value)
    if (written !== null && written !== undefined) return written
  } catch (error) {
    throw error instanceof GraphQLError ? new Error(error.message, { cause: error }) : error
  }
  throw new Error(`${type.name} has no form for the value of a field.`)
}

function compileList(
  context: CompileContext,
  type: GraphQLOutputType,
  nodes: readonly FieldNode[],
): Complete {
  const complete = compileValue(context, type, nodes)
  return (value, info, path, run) => {
    if (typeof value !== 'object' || value === null || !(Symbol.iterator in value))
      throw new Error(`${info.parentType.name}.${info.fieldName} gives no list.`)
    const items: unknown[] = []
    let waits = false
    for (const each of value as Iterable<unknown>) {
      const at = { prev: path, key: items.length, typename: undefined }
      try {
        const item = isPromise(each)
          ? each.then((settled) => complete(settled, info, at, run))
          : complete(each, info, at, run)
        const isWaiting = isPromise(item)
        waits ||= isWaiting
        items.push(
          isWaiting ? item.then(undefined, (error: unknown) => fail(error, nodes, at, type, run)) : item,
        )
      } catch (error) {
        // Where this item fails the whole list, errors of the other items are ignored.
        for (const item of items) if (isPromise(item)) item.catch(() => {})
        items.push(fail(error, nodes, at, type, run))
      }
    }
    return waits ? Promise.all(items) : items
  }
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
  return (value, info, path, run) => {
    const complete = (name: string | undefined) => {
      const chosen = possible.get(name ?? '')
      invariant(chosen, `${info.parentType.name}.${info.fieldName} gives a ${name}, which is no ${type.name}`)
      return chosen(value, info, path, run)
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
  const select = compileSelection(context, type, sets)
  const { isTypeOf } = type
  if (!isTypeOf) return (value, _info, path, run) => select(value, path, run)
  return (value, info, path, run) => {
    const check = (isOne: boolean) => {
      invariant(isOne, `${info.parentType.name}.${info.fieldName} gives no ${type.name}`)
      return select(value, path, run)
    }
    const isOne = isTypeOf(value, run.ctx, info)
    return isPromise(isOne) ? isOne.then(check) : check(isOne)
  }
}

/**
 * Reports what a field or an item of a list threw, and replaces it by null.
 * @throws GraphQLError where its type does not allow null: then the object around it fails
 */
function fail(
  thrown: unknown,
  nodes: readonly FieldNode[],
  path: Path,
  type: GraphQLOutputType,
  { errors }: OperationRun,
): null {
  const keys: (string | number)[] = []
  for (let part = path; part; part = part.prev) keys.unshift(part.key)
  // A connection that fails at each of several addresses gives all of their errors in one.
  for (const each of thrown instanceof AggregateError ? (thrown.errors as unknown[]) : [thrown]) {
    const error = locatedError(each, [...nodes], keys)
    if (isNonNullType(type)) throw error
    errors.push(error)
  }
  return null
}

function isPromise(value: unknown): value is Promise<unknown> {
  return typeof (value as { then?: unknown } | null | undefined)?.then === 'function'
}
