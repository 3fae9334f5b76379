import SchemaBuilder, {
  BasePlugin,
  type FieldNullability,
  type InputFieldMap,
  type PothosOutputFieldConfig,
  type PothosTypeConfig,
  type SchemaTypes,
  type TypeParam,
} from '@pothos/core'
import { DirectiveLocation, GraphQLDirective, GraphQLList, GraphQLNonNull, GraphQLString } from 'graphql'
import type { GraphQLFieldResolver, GraphQLTypeResolver } from 'graphql'
import type { Context } from '../context.ts'
import { type AccessRule, alternatives, checkMayChange, checkRule, isChange } from './access-plan.ts'

declare global {
  export namespace PothosSchemaTypes {
    export interface Plugins<Types extends SchemaTypes> {
      scopes: ScopesPlugin<Types>
    }
    interface FieldOptions {
      /**
       * The rule of who may use the field, in addition to the rules of its parent type and of its own type.
       */
      scope?: AccessRule
      /** True for a mutation that moves money: an operation may contain at most one. */
      movesMoney?: boolean
      /**
       * True for a mutation that changes a person's own way of signing in: a role that only reads may use it.
       */
      ownAccount?: boolean
      /** True for a secret: a kept answer that shows it is replayed only to the same credential. */
      isSecret?: boolean
      /**
       * True if the value differs between callers of one merchant with the same scopes, for instance because
       * it depends on the person. A live result with this field is computed for each person alone.
       */
      perPerson?: boolean
    }
    interface QueryFieldOptions<
      Types extends SchemaTypes,
      Type extends TypeParam<Types>,
      Nullable extends FieldNullability<Type>,
      Args extends InputFieldMap,
      ResolveReturnShape,
    > {
      scope: AccessRule
    }
    interface MutationFieldOptions<
      Types extends SchemaTypes,
      Type extends TypeParam<Types>,
      Nullable extends FieldNullability<Type>,
      Args extends InputFieldMap,
      ResolveReturnShape,
    > {
      scope: AccessRule
    }
    interface SubscriptionFieldOptions<
      Types extends SchemaTypes,
      Type extends TypeParam<Types>,
      Nullable extends FieldNullability<Type>,
      Args extends InputFieldMap,
      ResolveShape,
      ResolveReturnShape,
    > {
      scope: AccessRule
    }
    interface BaseTypeOptions {
      /** The rule of who may see the type. It is required for a type that `node(id)` can return. */
      scope?: AccessRule
    }
  }
}

const directiveLocations = [DirectiveLocation.FIELD_DEFINITION, DirectiveLocation.OBJECT]

/** The directives that show the rules in the printed schema. */
export const accessDirectives: readonly GraphQLDirective[] = [
  new GraphQLDirective({
    name: 'public',
    description: 'Anyone may use the field or type, without a token.',
    locations: directiveLocations,
  }),
  new GraphQLDirective({
    name: 'authenticated',
    description: 'Any valid access token may use the field or type.',
    locations: directiveLocations,
  }),
  new GraphQLDirective({
    name: 'requiresScopes',
    description: 'The access token must hold every scope of at least one of these lists.',
    locations: directiveLocations,
    args: {
      scopes: {
        type: new GraphQLNonNull(
          new GraphQLList(new GraphQLNonNull(new GraphQLList(new GraphQLNonNull(GraphQLString)))),
        ),
      },
    },
  }),
]

const rootKinds = new Set(['Query', 'Mutation', 'Subscription'])

/**
 * The plugin that puts the access rules into the schema: as extensions for the access plan, as directives for
 * readers, and as a second check around every guarded resolver. A root field or a Node type without a rule
 * makes the schema fail to build. Every query is nullable, so that a refusal of one leaves the others in the
 * answer.
 */
export class ScopesPlugin<Types extends SchemaTypes> extends BasePlugin<Types> {
  override onTypeConfig(config: PothosTypeConfig): PothosTypeConfig {
    const { scope } = (config.pothosOptions ?? {}) as { scope?: AccessRule }
    if (config.kind !== 'Object') {
      if (scope === undefined) return config
      throw new Error(`${config.name} is no object type: state the scope at its object types`)
    }
    const isNode = config.interfaces.some(
      (face) => this.builder.configStore.getTypeConfig(face).name === 'Node',
    )
    if (isNode && scope === undefined)
      throw new Error(`${config.name} is reached by node(id): it must state its scope`)
    return scope === undefined ? config : { ...config, extensions: withRule(config.extensions, scope) }
  }

  override onOutputFieldConfig(given: PothosOutputFieldConfig<Types>): PothosOutputFieldConfig<Types> {
    const config = given.kind === 'Query' ? { ...given, type: { ...given.type, nullable: true } } : given
    const { scope, movesMoney, ownAccount, perPerson, isSecret } = config.pothosOptions as {
      scope?: AccessRule
      movesMoney?: boolean
      ownAccount?: boolean
      perPerson?: boolean
      isSecret?: boolean
    }
    const marks = {
      ...(movesMoney && { movesMoney }),
      ...(ownAccount && { ownAccount }),
      ...(perPerson && { perPerson }),
      ...(isSecret && { isSecret }),
    }
    if (scope === undefined && rootKinds.has(config.kind)) {
      throw new Error(`${config.parentType}.${config.name} is a root field: it must state its scope`)
    }
    if (scope === undefined) return { ...config, extensions: { ...config.extensions, ...marks } }
    if (config.kind === 'Interface') {
      throw new Error(`${config.parentType}.${config.name}: each type of the interface states its own scope`)
    }
    return { ...config, extensions: { ...withRule(config.extensions, scope), ...marks } }
  }

  override wrapResolve(
    resolve: GraphQLFieldResolver<unknown, Types['Context'], object>,
    config: PothosOutputFieldConfig<Types>,
  ): GraphQLFieldResolver<unknown, Types['Context'], object> {
    return this.guard(resolve, config)
  }

  /**
   * Checks the rule of the concrete type behind an interface or union, for example of `node(id)`: the access
   * plan saw only the abstract type. In a mutation the rule is not checked: by then the change has been made,
   * and its answer must never be hidden.
   */
  override wrapResolveType(
    resolveType: GraphQLTypeResolver<unknown, Types['Context']>,
  ): GraphQLTypeResolver<unknown, Types['Context']> {
    return async (value, ctx, info, abstractType) => {
      const name = await resolveType(value, ctx, info, abstractType)
      if (name === undefined || info.operation.operation === 'mutation') return name
      const rule = info.schema.getType(name)?.extensions['accessRule']
      if (rule !== undefined) checkRule(rule as AccessRule, name, (ctx as unknown as Context).actor)
      return name
    }
  }

  override wrapSubscribe(
    subscribe: GraphQLFieldResolver<unknown, Types['Context'], object> | undefined,
    config: PothosOutputFieldConfig<Types>,
  ): GraphQLFieldResolver<unknown, Types['Context'], object> | undefined {
    return subscribe && this.guard(subscribe, config)
  }

  private guard(
    inner: GraphQLFieldResolver<unknown, Types['Context'], object>,
    config: PothosOutputFieldConfig<Types>,
  ): GraphQLFieldResolver<unknown, Types['Context'], object> {
    const { scope } = config.pothosOptions as { scope?: AccessRule }
    if (scope === undefined || scope === 'public') return inner
    const coordinate = `${config.parentType}.${config.name}`
    const changes = config.kind === 'Mutation' && isChange(config.extensions ?? {})
    return (source, args, ctx, info) => {
      const { actor } = ctx as unknown as Context
      checkRule(scope, coordinate, actor)
      if (changes) checkMayChange(actor)
      return inner(source, args, ctx, info)
    }
  }
}

SchemaBuilder.registerPlugin('scopes', ScopesPlugin)

function withRule(extensions: object | null | undefined, rule: AccessRule): Record<string, unknown> {
  const directives =
    rule === 'public' || rule === 'authenticated'
      ? { [rule]: {} }
      : { requiresScopes: { scopes: alternatives(rule) } }
  const known: { directives?: object } | null | undefined = extensions
  return { ...known, accessRule: rule, directives: { ...known?.directives, ...directives } }
}
