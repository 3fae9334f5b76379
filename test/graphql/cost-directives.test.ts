import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  type ASTNode,
  buildSchema,
  type FieldDefinitionNode,
  type FieldNode,
  getNamedType,
  type GraphQLObjectType,
  isCompositeType,
  isObjectType,
  Kind,
  type OperationDefinitionNode,
  parse,
  type SelectionSetNode,
  validate,
  valueFromASTUntyped,
} from 'graphql'
import { expect, test } from 'vitest'
import { checkCost } from '../../src/graphql/query-limits.ts'
import { schema } from '../../src/resources/schema.ts'

// A client's computation of the cost: it knows nothing but the text of the schema.

const root = join(import.meta.dirname, '../..')
const sdl = buildSchema(readFileSync(join(root, 'schema.graphql'), 'utf8'))

/** Reads the arguments of a directive. */
function directive(node: ASTNode | null | undefined, name: string): Record<string, unknown> | null {
  const list = node && 'directives' in node ? node.directives : undefined
  const found = list?.find((each) => each.name.value === name)
  return found
    ? Object.fromEntries(
        (found.arguments ?? []).map((each) => [each.name.value, valueFromASTUntyped(each.value)]),
      )
    : null
}

function size(definition: FieldDefinitionNode | null | undefined, field: FieldNode): number {
  const said = directive(definition, 'listSize')
  const slicing = (said?.['slicingArguments'] ?? []) as string[]
  const given = field.arguments?.find(({ name }) => slicing.includes(name.value))?.value
  return Number(given?.kind === Kind.INT ? given.value : (said?.['assumedSize'] ?? 1))
}

/** @param sized the fields of this object that are as long as its page, with that length */
function costOf(
  set: SelectionSetNode,
  parent: GraphQLObjectType,
  sized: { names: readonly string[]; length: number } | null,
): number {
  let cost = 0
  for (const field of set.selections) {
    if (field.kind !== Kind.FIELD) throw new Error('fragments are left out here')
    const definition = parent.getFields()[field.name.value]
    const type = definition && getNamedType(definition.type)
    if (!isCompositeType(type) || !isObjectType(type) || !field.selectionSet) continue
    const own = Number(directive(type.astNode, 'cost')?.['weight'] ?? 1)
    const length = size(definition?.astNode, field)
    const names = directive(definition?.astNode, 'listSize')?.['sizedFields'] as string[] | undefined
    const many = sized?.names.includes(field.name.value) ? sized.length : names ? 1 : length
    cost += many * (own + costOf(field.selectionSet, type, names ? { names, length } : null))
  }
  return cost
}

const documents: readonly [string, number][] = [
  ['{ me { merchant { name } } }', 2],
  ['{ transactions { nodes { reference } } }', 20],
  ['{ transactions(first: 50) { totalCount pageInfo { endCursor } edges { cursor node { id } } } }', 50],
  ['{ batches(last: 3) { nodes { recipients(first: 7) { nodes { evidence { state } } } } } }', 45],
  ['{ batches(first: 2) { nodes { duplicates { account } } } }', 202],
  ['{ webhooks(first: 2) { nodes { deliveries(first: 4) { nodes { attempts { nth } } } } } }', 138],
]

test.each(documents)('the printed schema tells the cost of %s', (text, known) => {
  const operation = parse(text).definitions[0] as OperationDefinitionNode
  expect(validate(sdl, parse(text))).toEqual([])
  const query = sdl.getQueryType()
  if (!query) throw new Error('the schema has queries')
  const computed = costOf(operation.selectionSet, query, null)
  expect(checkCost(schema, parse(text), operation, {})).toBe(computed)
  expect(computed).toBe(known)
})

test('the printed schema is one that other programs read', () => {
  expect(sdl.getDirective('cost')?.locations).toEqual(['OBJECT'])
  expect(sdl.getDirective('listSize')?.args.map(({ name }) => name)).toEqual([
    'assumedSize',
    'requireOneSlicingArgument',
    'sizedFields',
    'slicingArguments',
  ])
})
