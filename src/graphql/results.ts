import SchemaBuilder, {
  BasePlugin,
  type ObjectParam,
  type PothosTypeConfig,
  type SchemaTypes,
} from '@pothos/core'

declare global {
  export namespace PothosSchemaTypes {
    export interface Plugins<Types extends SchemaTypes> {
      results: ResultsPlugin<Types>
    }
  }
}

/** Returns the name of a mutation's result union: `collectPayment` gives a `CollectPaymentResult`. */
export function resultName({ fieldName }: { fieldName: string }): string {
  return `${fieldName.charAt(0).toUpperCase()}${fieldName.slice(1)}Result`
}

/**
 * The plugin that writes the description of each result union: which member is the success, and that the
 * other members are refusals.
 */
export class ResultsPlugin<Types extends SchemaTypes> extends BasePlugin<Types> {
  override onTypeConfig(config: PothosTypeConfig): PothosTypeConfig {
    if (config.kind !== 'Union' || config.description !== undefined) return config
    const types = (config.pothosOptions as { types: readonly ObjectParam<Types>[] }).types
    const names = types.map((type) => this.builder.configStore.getTypeConfig(type).name)
    const success = names.filter((name) => !name.endsWith('Error'))
    const mutation = `${config.name.charAt(0).toLowerCase()}${config.name.slice(1, -'Result'.length)}`
    const description =
      `The result of \`${mutation}\`: a value of type \`${success.join()}\`, or a refusal that tells why ` +
      'the request was not carried out.'
    return { ...config, description }
  }
}

SchemaBuilder.registerPlugin('results', ResultsPlugin)
