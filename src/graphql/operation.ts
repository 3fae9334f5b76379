import { normalizedExecutor } from '@graphql-tools/executor'
import {
  type DocumentNode,
  type ExecutionResult,
  GraphQLError,
  type GraphQLSchema,
  type OperationDefinitionNode,
  parse,
  validate,
} from 'graphql'
import type { Context } from '../context.ts'
import { limits } from '../shared/limits.ts'
import { accessPlan, checkAccess, findOperation } from './access-plan.ts'
import { toGraphQLError } from './errors.ts'
import { checkCost, checkShape } from './query-limits.ts'

/** What a caller asks to run, as it came. */
export interface OperationRequest {
  query?: unknown
  operationName?: unknown
  variables?: unknown
}

/** An operation that may run: read, valid, allowed and affordable. */
export interface Operation {
  kind: OperationDefinitionNode['operation']
  schema: GraphQLSchema
  document: DocumentNode
  operationName: string | undefined
  variableValues: Readonly<Record<string, unknown>> | undefined
  contextValue: Context
  /** Objects that it may give, at most. */
  cost: number
}

/** The results of a subscription, one by one as they are asked for. */
export type ResultStream = AsyncGenerator<ExecutionResult, void, void>

/** What every transport does with operations. */
export interface Operations {
  /** Refuses what must not run before any of it does. @returns the operation, or what is wrong */
  read(request: OperationRequest, ctx: Context): Operation | GraphQLError[]
  /** Runs it. Errors are shown as `toGraphQLError` shows them; a query that takes too long is given up. */
  run(operation: Operation): Promise<ExecutionResult | ResultStream>
}

/** Reads and runs operations of a schema; keeps the latest documents, so that a client that repeats itself is read once. */
export function createOperations(schema: GraphQLSchema): Operations {
  const documents = new Map<string, DocumentNode | readonly GraphQLError[]>()

  function readDocument(text: string): DocumentNode | readonly GraphQLError[] {
    const document = documents.get(text) ?? judge(schema, text)
    // The latest are the last; the first leaves.
    documents.delete(text)
    documents.set(text, document)
    const oldest = documents.size > limits.graphqlDocumentsMax ? documents.keys().next().value : undefined
    if (oldest !== undefined) documents.delete(oldest)
    return document
  }

  return {
    read(request, ctx) {
      const shown = (errors: readonly unknown[]) =>
        errors.slice(0, limits.graphqlErrorsMax).map((error) => toGraphQLError(error, ctx.requestId, ctx.log))
      try {
        const { query, operationName, variables } = readRequest(request)
        const document = readDocument(query)
        if (!('kind' in document)) return shown(document)
        const node = findOperation(document, operationName)
        checkAccess(accessPlan(schema, document, operationName), ctx.actor, variables)
        const cost = checkCost(schema, document, node, variables)
        return {
          kind: node.operation,
          schema,
          document,
          operationName,
          variableValues: variables,
          contextValue: ctx,
          cost,
        }
      } catch (error) {
        return shown([error])
      }
    },
    async run(operation) {
      const { contextValue: ctx, cost } = operation
      const show = (result: ExecutionResult): ExecutionResult => ({
        ...result,
        ...(result.errors && {
          errors: result.errors
            .slice(0, limits.graphqlErrorsMax)
            .map((error) => toGraphQLError(error, ctx.requestId, ctx.log)),
        }),
        extensions: { ...result.extensions, cost: { requested: cost, limit: limits.graphqlCostMax } },
      })
      const running = normalizedExecutor(operation) as
        | Promise<ExecutionResult | ResultStream>
        | ExecutionResult
      const result = await (operation.kind === 'subscription' ? running : beforeDeadline(running))
      if (!(Symbol.asyncIterator in result)) return show(result)
      return showEach(result, show, ctx)
    },
  }
}

function judge(schema: GraphQLSchema, text: string): DocumentNode | readonly GraphQLError[] {
  try {
    const document = parse(text, { maxTokens: limits.graphqlTokensMax })
    checkShape(document)
    const problems = validate(schema, document, undefined, { maxErrors: limits.graphqlErrorsMax })
    return problems.length === 0 ? document : problems
  } catch (error) {
    if (error instanceof GraphQLError) return [error]
    throw error
  }
}

function readRequest({ query, operationName, variables }: OperationRequest) {
  if (typeof query !== 'string') throw badRequest('The request must carry a query, as text.')
  if (operationName != null && typeof operationName !== 'string')
    throw badRequest('operationName must be text.')
  if (variables != null && (typeof variables !== 'object' || Array.isArray(variables))) {
    throw badRequest('variables must be an object.')
  }
  return {
    query,
    operationName: operationName ?? undefined,
    variables: (variables ?? undefined) as Readonly<Record<string, unknown>> | undefined,
  }
}

function badRequest(message: string): GraphQLError {
  return new GraphQLError(message, { extensions: { code: 'BAD_REQUEST' } })
}

/** Gives up what takes too long: the caller is told so, and nothing hangs. */
async function beforeDeadline<T>(running: Promise<T> | T): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => {
      const words = 'The operation took too long. What it had begun may still be done.'
      reject(new GraphQLError(words, { extensions: { code: 'DEADLINE_EXCEEDED' } }))
    }, limits.graphqlDeadlineMs)
  })
  try {
    return await Promise.race([running, late])
  } finally {
    clearTimeout(timer)
  }
}

/** Shows each result as it is pulled; a stream that breaks says why in the same words. */
function showEach(
  results: ResultStream,
  show: (result: ExecutionResult) => ExecutionResult,
  ctx: Context,
): ResultStream {
  const stream: ResultStream = {
    async next() {
      try {
        const result = await results.next()
        return result.done ? result : { done: false, value: show(result.value) }
      } catch (error) {
        throw toGraphQLError(error, ctx.requestId, ctx.log)
      }
    },
    return: () => results.return(),
    throw: (error) => results.throw(error),
    [Symbol.asyncIterator]: () => stream,
    [Symbol.asyncDispose]: async () => void (await results.return()),
  }
  return stream
}
