import { Kind, print, visit } from 'graphql'
import { expect, test } from 'vitest'
import { restDocument } from '../../../src/http/rest/documents.ts'
import { routes } from '../../../src/http/rest/routes.ts'
import { snakeCase } from '../../../src/shared/input.ts'

test('a REST field has its name of the schema in snake_case, with these exceptions', () => {
  const others = new Set<string>()
  visit(restDocument(), {
    Field: ({ alias, name: { value: name } }) => {
      if ((alias?.value ?? name) !== snakeCase(name)) others.add(`${alias?.value ?? name}: ${name}`)
    },
  })
  const roots = restDocument().definitions.flatMap((definition) =>
    definition.kind === Kind.OPERATION_DEFINITION ? definition.selectionSet.selections.map(print) : [],
  )
  const inAnswers = [...others].filter(
    (each) => !roots.some((root) => root.startsWith(each.replace(/.*: /, ''))),
  )
  expect(inAnswers.toSorted()).toEqual([
    'dryRun: dryRun',
    'existingPayout: existingPayout',
    'existingTransaction: existingTransaction',
    'id: databaseId',
    'requiredScopes: requiredScopes',
    'retryAfter: retryAfter',
    'status: complete',
    'team_member_id: memberId',
    'totalCount: totalCount',
    'transaction_id: databaseId',
  ])
})

test('every operation belongs to a route', () => {
  const named = restDocument().definitions.flatMap((definition) =>
    definition.kind === Kind.OPERATION_DEFINITION ? [String(definition.name?.value)] : [],
  )
  expect(named.toSorted()).toEqual([...new Set(routes.map(({ operation }) => operation))].toSorted())
})
