import { readFileSync } from 'node:fs'
import { isInterfaceType, isNonNullType, isObjectType } from 'graphql'
import { expect, test } from 'vitest'
import { printSdl } from '../../src/graphql/print.ts'
import { productionSchema, schema } from '../../src/resources/schema.ts'

test('schema.graphql is the schema that the code prints', () => {
  expect(readFileSync('schema.graphql', 'utf8')).toBe(printSdl(schema))
})

test('production has everything but the sandbox', () => {
  const names = (of: typeof schema) => Object.keys(of.getMutationType()?.getFields() ?? {})
  const sandboxOnly = names(schema).filter((name) => !names(productionSchema()).includes(name))
  expect(sandboxOnly).toEqual(['sandboxAdvanceClock', 'sandboxFund', 'sandboxSignIn'])
  const kept = productionSchema().getTypeMap()
  const sandboxTypes = Object.keys(schema.getTypeMap()).filter((name) => !Object.hasOwn(kept, name))
  expect(sandboxTypes).toEqual(['SandboxSignInInput', 'SandboxSignInResult'])
  expect(Object.keys(productionSchema().getQueryType()?.getFields() ?? {})).toEqual(
    Object.keys(schema.getQueryType()?.getFields() ?? {}),
  )
})

test('every root field and every Node type states its scopes, readable in the SDL', () => {
  const roots = [schema.getQueryType(), schema.getMutationType(), schema.getSubscriptionType()]
  const fields = roots.flatMap((root) => Object.values(root?.getFields() ?? {}))
  expect(fields.length).toBeGreaterThan(10)
  expect(fields.filter((field) => !field.extensions['accessRule'])).toEqual([])
  const nodes = Object.values(schema.getTypeMap())
    .filter(isObjectType)
    .filter((type) => type.getInterfaces().some(({ name }) => name === 'Node'))
  expect(nodes.map(({ name }) => name)).toContain('Transaction')
  expect(nodes.filter((type) => !type.extensions['accessRule'])).toEqual([])
  expect(printSdl(schema)).toMatch(
    /collectPayment\(\s*(?:"[^(]*"\s*)?input: CollectPaymentInput!\s*\): CollectPaymentResult/,
  )
  expect(printSdl(schema)).toContain('@requiresScopes(scopes: [["pay"]])')
})

test('every query and mutation is nullable, so that one refusal does not empty the answer', () => {
  const roots = [schema.getQueryType(), schema.getMutationType()]
  const fields = roots.flatMap((root) => Object.values(root?.getFields() ?? {}))
  expect(fields.filter(({ type }) => isNonNullType(type)).map(({ name }) => name)).toEqual([])
})

test('databaseId is the same scalar on every type, so that one query may read it from two of them', () => {
  const types = Object.values(schema.getTypeMap()).filter(
    (type) => isObjectType(type) || isInterfaceType(type),
  )
  const found = types.flatMap((type) => {
    const field = type.getFields()['databaseId']
    return field ? [`${type.name}: ${String(field.type)}`] : []
  })
  expect(found.length).toBeGreaterThan(20)
  // A fault of the audit log may name a removed entry; no union holds this type.
  expect(found.filter((each) => !each.endsWith(': SafeInt!'))).toEqual(['AuditLogFault: SafeInt'])
})

test('every type with a databaseId, and every other one that a cache keeps, has a global id', () => {
  const types = Object.values(schema.getTypeMap()).filter(isObjectType)
  const isKept = (type: (typeof types)[number]) =>
    'databaseId' in type.getFields() || ['Settings', 'Balance', 'Me', 'Statement'].includes(type.name)
  const kept = types.filter(isKept)
  expect(kept.length).toBeGreaterThan(25)
  const without = kept.filter((type) => String(type.getFields()['id']?.type) !== 'ID!')
  // A fault of the audit log is a place, not an object.
  expect(without.map(({ name }) => name)).toEqual(['AuditLogFault'])
})
