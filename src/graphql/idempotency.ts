import SchemaBuilder, { BasePlugin, type PothosOutputFieldConfig, type SchemaTypes } from '@pothos/core'
import { GraphQLError, type GraphQLFieldResolver } from 'graphql'
import type { Context } from '../context.ts'
import { DomainError, refusals, UnsafeToRepeat } from '../shared/errors.ts'

declare global {
  export namespace PothosSchemaTypes {
    export interface Plugins<Types extends SchemaTypes> {
      idempotency: IdempotencyPlugin<Types>
    }
  }
}

/**
 * The plugin that records the outcome of a mutation that was sent under an `Idempotency-Key`. A refusal,
 * thrown or returned, wrote nothing, unless its row in `shared/errors.ts` says that it is on record. After
 * any other error the outcome is unknown.
 */
export class IdempotencyPlugin<Types extends SchemaTypes> extends BasePlugin<Types> {
  override wrapResolve(
    resolve: GraphQLFieldResolver<unknown, Types['Context'], object>,
    config: PothosOutputFieldConfig<Types>,
  ): GraphQLFieldResolver<unknown, Types['Context'], object> {
    if (config.kind !== 'Mutation') return resolve
    return async (source, args, ctx, info) => {
      const { idempotentOperation: operation, actor } = ctx as unknown as Context
      if (!operation) {
        if (actor === null || hasReference(args)) return resolve(source, args, ctx, info)
        return once(async () => resolve(source, args, ctx, info))
      }
      // A dry run is rolled back: it does not use the key, and does not find a row that was made under the
      // key.
      if ('dryRun' in args && args.dryRun === true)
        return resolve(source, args, { ...ctx, idempotentOperation: null }, info)
      operation.outcome = 'unknown'
      try {
        const result = await resolve(source, args, ctx, info)
        operation.outcome = outcomeOf(result)
        return result
      } catch (error) {
        if (error instanceof DomainError) operation.outcome = outcomeOf(error)
        throw error
      }
    }
  }
}

SchemaBuilder.registerPlugin('idempotency', IdempotencyPlugin)

/**
 * Whether a reference among the arguments, or in one of them, names the payment, so that a repetition finds
 * the payment. Without a reference or key, a caller must not be told to repeat a change of which the outcome
 * is unknown.
 */
export function hasReference(args: object): boolean {
  return [args, ...Object.values(args)].some(
    (given: unknown) =>
      typeof given === 'object' &&
      given !== null &&
      'reference' in given &&
      typeof given.reference === 'string',
  )
}

/**
 * Runs a change that the caller cannot repeat safely.
 * @throws DomainError, GraphQLError where the request is wrong, UnsafeToRepeat
 */
async function once<T>(change: () => Promise<T>): Promise<T> {
  try {
    return await change()
  } catch (error) {
    if (error instanceof DomainError || error instanceof GraphQLError) throw error
    throw new UnsafeToRepeat('a change failed', { cause: error })
  }
}

function outcomeOf(result: unknown): 'nothing' | 'done' {
  if (!(result instanceof DomainError)) return 'done'
  return 'isOnRecord' in refusals[result.code] ? 'done' : 'nothing'
}
