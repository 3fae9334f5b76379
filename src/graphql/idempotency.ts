import SchemaBuilder, { BasePlugin, type PothosOutputFieldConfig, type SchemaTypes } from '@pothos/core'
import type { GraphQLFieldResolver } from 'graphql'
import type { Context } from '../context.ts'
import { DomainError, refusals } from '../shared/errors.ts'

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
      const operation = (ctx as unknown as Context).idempotentOperation
      if (!operation) return resolve(source, args, ctx, info)
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

function outcomeOf(result: unknown): 'nothing' | 'done' {
  if (!(result instanceof DomainError)) return 'done'
  return 'isOnRecord' in refusals[result.code] ? 'done' : 'nothing'
}
