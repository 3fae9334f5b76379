import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { buildSchema } from 'graphql'
import { describe, expect, onTestFinished, test } from 'vitest'
import { printOperations } from '../../src/terminal/operation-types.ts'
import { pageNames, readPage } from '../kit/dashboard-pages.ts'
import { root } from '../kit/sources.ts'

// The types that are printed for documents of GraphQL: the compiler reads them together with values that they
// must accept, and values that they must refuse.

/** The errors that the compiler finds in printed operations, and in files that use them. */
async function typeErrors(programs: readonly { operations: string; use: string }[]): Promise<string> {
  const cache = join(root, 'node_modules/.cache/merchant-payments')
  await mkdir(cache, { recursive: true })
  const folder = await mkdtemp(join(cache, 'operations-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const names = programs.map((_program, index) => `${index}/use.ts`)
  for (const [index, program] of programs.entries()) {
    await mkdir(join(folder, String(index)))
    await writeFile(join(folder, `${index}/operations.ts`), program.operations)
    await writeFile(join(folder, `${index}/use.ts`), `${equality}${program.use}`)
  }
  const options =
    '--ignoreConfig --noEmit --strict --exactOptionalPropertyTypes --noUncheckedIndexedAccess ' +
    '--skipLibCheck --module esnext --moduleResolution bundler --target es2022 --lib es2022,dom ' +
    '--allowImportingTsExtensions --types node'
  const compiler = join(root, 'node_modules/typescript/bin/tsc')
  return promisify(execFile)(process.execPath, [compiler, ...options.split(' '), ...names], {
    cwd: folder,
  }).then(
    () => '',
    ({ stdout }: { stdout: string }) => stdout,
  )
}

/** `same<A, B>(true)` compiles only if both types are exactly the same. */
const equality = `
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
export function same<A, B>(_is: Same<A, B>): void {}
`

const sample = buildSchema(`
  type Query { shape(by: Lookup!, near: [Near!], kind: Kind = ROUND, size: SafeInt): Shape, boxes: [[Box]!]! }
  type Mutation { draw(input: DrawInput!): DrawResult }
  type Subscription { drawn: Shape! }
  interface Refusal { code: String! }
  type TooLarge implements Refusal { code: String!, max: Float! }
  type Closed implements Refusal { code: String! }
  union DrawResult = Circle | TooLarge | Closed
  union Shape = Circle | Box
  type Circle { id: ID!, radius: Int!, within: Box, kind: Kind! }
  type Box { name: String, isOpen: Boolean!, at: DateTime, data: JSONObject! }
  enum Kind { ROUND FLAT }
  input Lookup @oneOf { id: ID, name: String }
  input Near { lat: Float!, lng: Float!, around: Near }
  input DrawInput { kind: Kind!, title: String, sizes: [Int!]! = [1], near: Near }
  scalar SafeInt
  scalar DateTime
  scalar JSONObject
`)

const document = `
  query ShapeQuery(
    $by: Lookup!, $near: [Near!], $kind: Kind = FLAT, $size: SafeInt!, $more: Boolean!) {
    shape(by: $by, near: $near, kind: $kind, size: $size) {
      __typename
      ...Round
      ... on Box { name opened: isOpen at @include(if: $more) ... @skip(if: $more) { data } }
    }
    boxes { name }
  }
  mutation DrawMutation($input: DrawInput!) {
    draw(input: $input) { __typename ... on Circle { id } ... on Refusal { code } ... on TooLarge { max } }
  }
  subscription DrawnSubscription { drawn { ...Round } }
  fragment Round on Circle { id radius kind within { ...Name } within { isOpen } }
  fragment Name on Box { name }
`

const use = `
import type { OperationResult } from '@urql/core'
import { Client } from '@urql/core'
import * as all from './operations.ts'

type Data = Record<string, unknown>
type Within = { name: string | null; isOpen: boolean } | null
type Circle = { id: string; radius: number; kind: 'ROUND' | 'FLAT'; within: Within }
type Shape =
  | ({ __typename: 'Circle' } & Circle)
  | ({ __typename: 'Box'; name: string | null; opened: boolean } & { at?: string | null; data?: Data })
  | null

declare const shape: all.ShapeQuery['shape']
const accepted: Shape = shape
const back: all.ShapeQuery['shape'] = accepted
if (back?.__typename === 'Circle') same<typeof back.within, Within>(true)
same<all.ShapeQuery['boxes'], Array<Array<{ name: string | null } | null>>>(true)
same<all.Kind, 'FLAT' | 'ROUND'>(true)
same<all.RoundFragment, Circle>(true)
same<all.DrawnSubscription['drawn'], Circle | {}>(true)
same<
  all.DrawMutation['draw'],
  | { __typename: 'Circle'; id: string }
  | { __typename: 'TooLarge'; code: string; max: number }
  | { __typename: 'Closed'; code: string }
  | null
>(true)
same<all.DrawnSubscriptionVariables, Record<string, never>>(true)

const near = { lat: 1, lng: 2 }
const variables: all.ShapeQueryVariables = { by: { id: 'a' }, near: [near], size: 1, more: true }
const input: all.DrawInput = { kind: 'FLAT', title: null, near: { ...near, around: near } }
// @ts-expect-error One field of the two, not both.
const both: all.Lookup = { id: 'a', name: 'b' }
// @ts-expect-error One field of the two.
const none: all.Lookup = {}
// @ts-expect-error The size has no default.
const lacking: all.ShapeQueryVariables = { by: { id: 'a' }, more: true }
// @ts-expect-error The field is not part of the input.
const unknown: all.DrawInput = { kind: 'FLAT', colour: 'red' }

const client = new Client({ url: '', exchanges: [] })
export const asked: OperationResult<all.ShapeQuery> = await client.query(all.shapeQuery, variables)
export const drawn: OperationResult<all.DrawMutation> = await client.mutation(all.drawMutation, { input })
client.subscription(all.drawnSubscription, {})
export { both, lacking, none, unknown }
`

const pageUse = `
import * as all from './operations.ts'
type Waiting = NonNullable<NonNullable<all.ApprovalsQuery['approvalsWaiting']>['nodes'][number]>
same<Waiting['__typename'], 'Payout' | 'Batch' | 'DepositApproval' | 'SettingsChange'>(true)
same<Extract<Waiting, { __typename: 'Payout' }>['amount'], number>(true)
same<all.ApprovalsMutationVariables, { id: string; digest: string }>(true)
same<all.WebhookLogMutationVariables, { webhookId: string; ids: ReadonlyArray<string> }>(true)
`

/** Faults of the printed text: each must be refused by the compiler. */
const faults: readonly (readonly [right: string, wrong: string])[] = [
  ['name: string | null\n  } | null>>', 'name: string | null\n  }>>'],
  ['name: string | null\n    opened', 'name: string\n    opened'],
  ['data?:', 'data:'],
  ['__typename: "Closed"', '__typename: "Open"'],
  ['name?: undefined', 'name?: string'],
  ['size: number', 'size?: number'],
]

test('the printed types are exact: unions, fragments, lists, nulls, conditions, inputs', async () => {
  const operations = printOperations({ 'a.graphql': document }, sample)
  const pages = Object.fromEntries(pageNames.map((name) => [`${name}.graphql`, readPage(name)]))
  const sound = [
    { operations, use },
    { operations: printOperations(pages), use: pageUse },
  ]
  expect(await typeErrors(sound)).toBe('')
})

test('a fault in the printed types is refused by the compiler', async () => {
  const operations = printOperations({ 'a.graphql': document }, sample)
  for (const [right] of faults) expect(operations).toContain(right)
  const broken = faults.map(([right, wrong]) => ({ operations: operations.replace(right, wrong), use }))
  const errors = await typeErrors(broken)
  const found = new Set(Array.from(errors.matchAll(/^(\d+)\/use\.ts\(/gm), ([, index]) => Number(index)))
  expect(found).toEqual(new Set(faults.keys()))
})

describe('the printed text', () => {
  test('of an operation has each needed fragment once, and the cache knows the types of interfaces', () => {
    const printed = printOperations({ 'a.graphql': document }, sample)
    expect(printed).toContain(
      'export const drawnSubscription = ("subscription DrawnSubscription{drawn{...Round}}"',
    )
    expect(printed).toContain(' + roundFragment + nameFragment) as unknown as')
    expect(printed).toContain('= {\n  Refusal: ["Closed", "TooLarge"],\n}')
  })

  test.each([
    ['an unknown field', 'query AQuery { colour }', /Cannot query field "colour"[\s\S]*a\.graphql:1:16/],
    ['an unused fragment', 'query AQuery { boxes { name } } fragment A on Box { name }', /"A" is never used/],
    [
      'an operation without its kind in its name',
      'query Boxes { boxes { name } }',
      /query Boxes needs a name/,
    ],
    [
      'an object without its id',
      'subscription ASubscription { drawn { ... on Circle { radius } } }',
      /Circle.*`id`/,
    ],
  ])('is refused with %s', (_fault, text, problem) => {
    expect(() => printOperations({ 'a.graphql': text }, sample)).toThrow(problem)
  })

  test('is refused with a scalar that has no form', () => {
    const odd = buildSchema('type Query { mark: Mark } scalar Mark')
    expect(() => printOperations({ 'a.graphql': 'query AQuery { mark }' }, odd)).toThrow(/scalar Mark/)
  })
})
