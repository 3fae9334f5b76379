import { type DocumentNode, type GraphQLSchema, validate } from 'graphql'
import type { Context } from '../context.ts'
import { asMerchant } from '../database/merchant-pool.ts'
import { invariant } from '../shared/invariant.ts'
import { type AccessPlan, accessPlan, checkAccess } from './access-plan.ts'
import { type Compiled, compile } from './compiled.ts'

/** An operation of our own, parsed, validated, planned and compiled once. */
export interface Prepared {
  plan: AccessPlan
  run: Compiled
}

/**
 * @throws Error where the text is no valid document of the schema, lacks the operation, or asks for more than
 *   can be compiled
 */
export function prepare(schema: GraphQLSchema, document: DocumentNode, operationName: string): Prepared {
  return {
    plan: accessPlan(schema, document, operationName),
    run: compile(schema, document, operationName),
  }
}

/** @throws Error that lists what is wrong with the document */
export function checkDocument(schema: GraphQLSchema, document: DocumentNode): DocumentNode {
  const problems = validate(schema, document)
  invariant(problems.length === 0, problems.map((problem) => problem.message).join('\n'))
  return document
}

/**
 * Runs a prepared operation in this process, without HTTP in between; access is checked before anything runs.
 * @returns the value of its root field
 * @throws GraphQLError the first error of any field, as it was thrown: who shows it masks it
 */
export function execute({ plan, run }: Prepared, variables: object, ctx: Context): Promise<unknown> {
  checkAccess(plan, ctx.actor, variables as Record<string, unknown>)
  return asMerchant(ctx.actor?.merchantId ?? null, () => run(variables, ctx))
}
