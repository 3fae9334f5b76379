import { serverAudits } from 'graphql-http'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startTestApp, type TestApp } from '../../kit/app.ts'

let service: TestApp
beforeAll(async () => {
  service = await startTestApp()
})
afterAll(() => service.close())

describe('GraphQL over HTTP passes the audit of its specification', () => {
  const audits = serverAudits({ url: () => `${service.url}/graphql`, fetchFn: fetch })
  test.each(audits.map((audit) => [audit.name, audit] as const))('%s', async (_name, audit) => {
    expect(await audit.fn()).toMatchObject({ status: 'ok' })
  })
})

test('a refusal of one query leaves the others in the answer', async () => {
  const { token } = await service.merchant()
  const document = `{ serviceStatus { environment } sessions { id } transactions(first: 101) { nodes { id } }
    me { member { name } } }`
  const { body } = await service.graphql(document, {}, token)
  expect(body['data']).toEqual({
    serviceStatus: { environment: expect.any(String) },
    sessions: null,
    transactions: null,
    me: { member: null },
  })
  const refused = body['errors'].map(({ path }: { path: string[] }) => path[0])
  expect(refused.toSorted()).toEqual(['sessions', 'transactions'])
})
