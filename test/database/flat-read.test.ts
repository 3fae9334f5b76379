import { PrismaPg } from '@prisma/adapter-pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { getDatamodel } from '../../prisma/generated/pothos.ts'
import { PrismaClient } from '../../prisma/generated/prisma/client.ts'
import { flatReads, type PrismaQuery, selectStatement } from '../../src/database/flat-read.ts'
import { startTestApp, type TestApp, type TestMerchant } from '../kit/app.ts'

let app: TestApp
let shop: TestMerchant
let plain: PrismaClient
beforeAll(async () => {
  app = await startTestApp()
  shop = await app.merchant()
  const { token } = shop
  for (let n = 1; n <= 5; n += 1) {
    const body = {
      amount: 5_000 + n,
      customer_phone: '70110000',
      payment_method: 'OperatorA',
      reference: `r-${n}`,
    }
    await app.rest('POST', '/pay', { token, body })
  }
  plain = new PrismaClient({ adapter: new PrismaPg(app.database.owner) })
})
afterAll(async () => {
  await plain.$disconnect()
  await app.close()
})

interface Delegate {
  findMany(query: object): Promise<object[]>
  count(query: object): Promise<number>
}

/** Prisma as it is, without flat reads. */
function prismaOf(model: string): Delegate {
  const name = `${model.charAt(0).toLowerCase()}${model.slice(1)}`
  return (plain as unknown as Record<string, Delegate>)[name] as Delegate
}

const { models } = getDatamodel().datamodel

/** The model of which a column has another name than its field: Prisma reads it. */
const leftToPrisma = 'DepositApproval'

test.each(Object.keys(models).filter((model) => model !== leftToPrisma))(
  '%s: a flat statement reads the same values as Prisma',
  async (model) => {
    const fields = (models[model]?.fields ?? [])
      .filter(({ kind }) => kind !== 'object')
      .map(({ name }) => name)
    const flat = fields.filter((name) => selectStatement(model, { select: { [name]: true } }) !== null)
    const query = { select: Object.fromEntries(flat.map((name) => [name, true])) }
    const read = flatReads(app.database.owner)
    const text = (rows: readonly object[] | null) =>
      rows?.map((row) => JSON.stringify(row, withBigints)).toSorted()
    expect(text(await read.findMany(model, query))).toEqual(text(await prismaOf(model).findMany(query)))
    expect(await read.count(model, {})).toBe(await prismaOf(model).count({}))
  },
)

function withBigints(_name: string, value: unknown): unknown {
  return typeof value === 'bigint' ? `${value}n` : value
}

const select = { id: true, reference: true, createdAt: true }
const orderBy = { id: 'desc' }

test.each<[string, () => PrismaQuery]>([
  ['equal values', () => ({ where: { merchantId: shop.merchantId, status: 'pending' } })],
  ['a range and a list', () => ({ where: { id: { gt: 1n, lte: 4n }, reference: { in: ['r-2', 'r-3'] } } })],
  ['a null', () => ({ where: { settledAt: null } })],
  ['times', () => ({ where: { createdAt: { gte: new Date(0), lt: new Date('2100-01-01') } } })],
  ['nested conditions', () => ({ where: { AND: [{ merchantId: shop.merchantId }, { id: { lt: 4n } }] } })],
  ['a page', () => ({ where: { merchantId: shop.merchantId }, take: 2, skip: 1 })],
  ['no rows', () => ({ where: { merchantId: shop.merchantId + 1 }, take: 2 })],
  ['what is not given', () => ({ where: { status: undefined, AND: [{ id: { lt: undefined, gt: 2n } }] } })],
])('%s: the rows are those of Prisma', async (_name, given) => {
  const query = { select, orderBy, ...given() }
  const rows = await flatReads(app.database.owner).findMany('Transaction', query)
  expect(rows).toEqual(await prismaOf('Transaction').findMany(query))
})

test(`${leftToPrisma} is left to Prisma`, () => {
  expect(selectStatement(leftToPrisma, { select: { id: true } })).toBeNull()
})

test.each<[string, PrismaQuery]>([
  ['all columns', {}],
  ['a relation', { select: { id: true, merchant: { select: { id: true } } } }],
  ['an alternative', { select, where: { OR: [{ id: 1n }, { id: 2n }] } }],
  ['a condition on a relation', { select, where: { merchant: { id: 1 } } }],
  ['another comparison', { select, where: { reference: { contains: 'r' } } }],
  ['a list of values', { select: { makerMemberIds: true } }],
  ['the end of a list', { select, take: -2 }],
  ['another option', { select, distinct: ['id'] } as PrismaQuery],
])('%s is left to Prisma', (_name, query) => {
  expect(selectStatement('Transaction', query)).toBeNull()
})
