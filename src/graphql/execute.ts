import { normalizedExecutor } from '@graphql-tools/executor'
import { type DocumentNode, type ExecutionResult, type GraphQLSchema, parse, validate } from 'graphql'
import type { Context } from '../context.ts'
import { asMerchant } from '../database/merchant-pool.ts'
import { invariant } from '../shared/invariant.ts'
import { type AccessPlan, accessPlan, checkAccess } from './access-plan.ts'
import { toGraphQLError } from './errors.ts'

/** An operation of our own, parsed, validated and planned once. */
export interface Prepared {
  schema: GraphQLSchema
  document: DocumentNode
  operationName: string
  plan: AccessPlan
}

/** @throws Error where the text is no valid document of the schema or lacks the operation */
export function prepare(schema: GraphQLSchema, document: DocumentNode, operationName: string): Prepared {
  return { schema, document, operationName, plan: accessPlan(schema, document, operationName) }
}

/** @throws Error that lists what is wrong with the document */
export function parseValid(schema: GraphQLSchema, text: string): DocumentNode {
  const document = parse(text)
  const problems = validate(schema, document)
  invariant(problems.length === 0, problems.map((problem) => problem.message).join('\n'))
  return document
}

/**
 * Runs a prepared operation in this process, without HTTP in between; access is checked before anything runs.
 * @returns data and errors; bugs are masked and logged
 */
export async function execute(prepared: Prepared, variables: object, ctx: Context): Promise<ExecutionResult> {
  const { schema, document, operationName, plan } = prepared
  try {
    checkAccess(plan, ctx.actor, variables as Record<string, unknown>)
    const given = { schema, document, operationName, variableValues: variables, contextValue: ctx }
    const result = await asMerchant(ctx.actor?.merchantId ?? null, () => normalizedExecutor(given))
    invariant(!(Symbol.asyncIterator in result), 'a REST route runs no subscription')
    if (!result.errors) return result
    return { ...result, errors: result.errors.map((error) => toGraphQLError(error, ctx.requestId, ctx.log)) }
  } catch (error) {
    return { errors: [toGraphQLError(error, ctx.requestId, ctx.log)] }
  }
}
