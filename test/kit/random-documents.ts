import {
  getNamedType,
  getNullableType,
  type GraphQLArgument,
  type GraphQLField,
  type GraphQLInputType,
  type GraphQLObjectType,
  type GraphQLOutputType,
  type GraphQLSchema,
  isAbstractType,
  isEnumType,
  isInputObjectType,
  isInterfaceType,
  isLeafType,
  isListType,
  isNonNullType,
  isObjectType,
  parse,
  validate,
} from 'graphql'

/** A valid document with one query, and values for its variables. */
export interface RandomDocument {
  text: string
  variables: Record<string, unknown>
}

/**
 * Makes a valid query of the schema: random fields, arguments, aliases, fragments and variables. Some
 * arguments are wrong in a way that only the resolver refuses, such as a page of 101 rows.
 * @param texts values for ids, cursors and other texts
 */
export function randomDocument(
  schema: GraphQLSchema,
  random: () => number,
  texts: readonly string[],
): RandomDocument {
  for (;;) {
    const made = new DocumentMaker(schema, random, texts).make()
    if (validate(schema, parse(made.text)).length === 0) return made
  }
}

const depthMax = 6

class DocumentMaker {
  readonly #variables: Record<string, unknown> = {}
  readonly #declared: string[] = []
  readonly #fragments: string[] = []

  readonly #schema: GraphQLSchema
  readonly #random: () => number
  readonly #texts: readonly string[]

  constructor(schema: GraphQLSchema, random: () => number, texts: readonly string[]) {
    this.#schema = schema
    this.#random = random
    this.#texts = texts
  }

  make(): RandomDocument {
    const root = this.#schema.getQueryType()
    if (!root) throw new Error('The schema has no queries.')
    const selection = this.#fieldsOf(root, 1, 1 + this.#below(2))
    const declared = this.#declared.length > 0 ? `(${this.#declared.join(', ')})` : ''
    return {
      text: [`query Random${declared} ${selection}`, ...this.#fragments].join('\n'),
      variables: this.#variables,
    }
  }

  #fieldsOf(type: GraphQLObjectType, depth: number, count: number): string {
    const fields = Object.values(type.getFields())
    const asked = Array.from({ length: count }, () => this.#fieldOf(this.#oneOf(fields), depth))
    if (this.#random() < 0.2) {
      // The same field twice, with other arguments.
      const twice = this.#oneOf(fields)
      asked.push(...['c', 'd'].map((alias) => this.#fieldOf(twice, depth, `${alias}${depth}: `)))
    }
    if (this.#random() < 0.1) asked.push('__typename')
    return `{ ${asked.filter((text) => text !== '').join(' ') || '__typename'} }`
  }

  /** Returns an empty text for a field that would go too deep. */
  #fieldOf(field: GraphQLField<unknown, unknown>, depth: number, alias = this.#alias()): string {
    const inner = this.#selectionOf(field.type, depth)
    if (inner === null) return ''
    const given = field.args.flatMap((argument) => this.#argumentOf(argument))
    return `${alias}${field.name}${given.length > 0 ? `(${given.join(', ')})` : ''}${inner}`
  }

  #alias(): string {
    return this.#random() < 0.1 ? `${this.#oneOf(['a', 'b', '__proto__'])}: ` : ''
  }

  #selectionOf(of: GraphQLOutputType, depth: number): string | null {
    const type = getNamedType(of)
    if (isLeafType(type)) return ''
    if (depth >= depthMax) return null
    if (isObjectType(type)) {
      const fields = this.#fieldsOf(type, depth + 1, 1 + this.#below(5))
      if (this.#random() > 0.1) return ` ${fields}`
      const name = `F${this.#fragments.length}`
      this.#fragments.push(`fragment ${name} on ${type.name} ${fields}`)
      return ` { ...${name} ...${name} }`
    }
    if (!isAbstractType(type)) return null
    const possible = this.#schema.getPossibleTypes(type)
    const own = isInterfaceType(type) && this.#random() < 0.5 ? this.#leafOf(type.getFields()) : ''
    const parts = Array.from({ length: 1 + this.#below(3) }, () => {
      const chosen = this.#oneOf(possible)
      return `... on ${chosen.name} ${this.#fieldsOf(chosen, depth + 1, 1 + this.#below(3))}`
    })
    return ` { __typename ${own} ${parts.join(' ')} }`
  }

  #leafOf(fields: Readonly<Record<string, GraphQLField<unknown, unknown>>>): string {
    const leaves = Object.values(fields).filter(({ type }) => isLeafType(getNamedType(type)))
    return leaves.length > 0 ? this.#oneOf(leaves).name : ''
  }

  #argumentOf({ name, type }: GraphQLArgument): string[] {
    if (!isNonNullType(type) && this.#random() < 0.7) return []
    const value = this.#valueOf(type, name)
    if (this.#random() > 0.3) return [`${name}: ${print(value, type)}`]
    const variable = `v${this.#declared.length}`
    this.#declared.push(`$${variable}: ${String(type)}`)
    this.#variables[variable] = this.#random() < 0.05 ? { no: 'such value' } : value
    return [`${name}: $${variable}`]
  }

  #valueOf(of: GraphQLInputType, name: string): unknown {
    if (!isNonNullType(of) && this.#random() < 0.1) return null
    const type = getNullableType(of)
    if (isListType(type)) {
      return Array.from({ length: this.#below(4) }, () => this.#valueOf(type.ofType, name))
    }
    if (isEnumType(type)) return this.#oneOf(type.getValues()).name
    if (isInputObjectType(type)) {
      const fields = Object.values(type.getFields()).filter(
        (field) => isNonNullType(field.type) || this.#random() < 0.3,
      )
      return Object.fromEntries(fields.map((field) => [field.name, this.#valueOf(field.type, field.name)]))
    }
    switch (getNamedType(of).name) {
      case 'Boolean':
        return this.#random() < 0.5
      case 'Int':
      case 'SafeInt':
      case 'Amount':
        return this.#oneOf([1, 2, 3, 5, 20, 100, 101, 0])
      case 'DateTime':
        return this.#oneOf(['2020-01-01T00:00:00.000Z', '2100-01-01T00:00:00.000Z'])
      default:
        return this.#oneOf(this.#texts)
    }
  }

  #below(count: number): number {
    return Math.floor(this.#random() * count)
  }

  #oneOf<Item>(items: readonly Item[]): Item {
    const item = items[this.#below(items.length)]
    if (item === undefined) throw new Error('There is nothing to choose from.')
    return item
  }
}

/** Writes an input value as a literal of its type. */
function print(value: unknown, of: GraphQLInputType): string {
  const type = getNullableType(of)
  if (value === null) return 'null'
  if (isListType(type)) {
    return `[${(value as unknown[]).map((item) => print(item, type.ofType)).join(', ')}]`
  }
  if (isEnumType(type)) return value as string
  if (!isInputObjectType(type)) return JSON.stringify(value)
  const fields = type.getFields()
  const given = Object.entries(value as object).map(
    ([name, item]) => `${name}: ${print(item, fields[name]?.type ?? type)}`,
  )
  return `{ ${given.join(', ')} }`
}
