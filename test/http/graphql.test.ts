import { request } from 'node:http'
import { getIntrospectionQuery } from 'graphql'
import { serverAudits } from 'graphql-http'
import { describe, expect, test, vi } from 'vitest'
import { createOperations } from '../../src/graphql/operation.ts'
import { createGraphqlHandler } from '../../src/http/graphql.ts'
import { credentialFreshMs } from '../../src/identity/callers/credentials.ts'
import { limits } from '../../src/shared/limits.ts'
import { serve } from '../kit/graphql.ts'

const attach: Parameters<typeof serve>[0] = (server, { services, schema }) => {
  server.on(
    'request',
    createGraphqlHandler({ services, operations: createOperations(schema), isDraining: () => false }),
  )
  return () => {}
}
const { url, fixture } = serve(attach)
const production = serve(attach, 'production')

const anyRequestId = expect.stringMatching(/^[0-9a-f-]{36}$/)

interface Answer {
  status: number
  headers: Headers
  body: {
    data?: unknown
    errors?: { message: string; extensions: Record<string, unknown> }[]
    extensions?: unknown
  }
}

async function post(body: unknown, headers: Record<string, string> = {}): Promise<Answer> {
  const response = await fetch(url(), {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
  return {
    status: response.status,
    headers: response.headers,
    body: (await response.json()) as Answer['body'],
  }
}

const ask = (query: string, token?: string, accept = 'application/json') =>
  post({ query }, { accept, ...(token && { authorization: `Bearer ${token}` }) })
const codesOf = ({ body }: Answer) => body.errors?.map(({ extensions }) => extensions['code'])

describe('GraphQL over HTTP', () => {
  for (const audit of serverAudits({ url: () => url(), fetchFn: fetch })) {
    test(`${audit.id} ${audit.name}`, async () => {
      const result = await audit.fn()
      expect(result).toMatchObject({ status: 'ok' })
    })
  }
})

describe('an answer', () => {
  test('carries data, cost, the request id, the version and the headers of its resolvers', async () => {
    const { status, headers, body } = await ask('{ hello }')
    expect(status).toBe(200)
    expect(body).toEqual({
      data: { hello: 'hello world' },
      extensions: {
        cost: { requested: 0, limit: limits.graphqlCostMax, remaining: expect.any(Number) },
      },
    })
    expect(headers.get('x-request-id')).toEqual(anyRequestId)
    expect(headers.get('x-api-version')).toBe('1.0.0')
    expect(headers.get('x-greeted')).toBe('world')
    expect(headers.get('access-control-allow-origin')).toBeNull()
  })

  test('is kept by no cache: by POST, by GET, and where it is refused', async () => {
    const byUrl = `${url()}?query=${encodeURIComponent('{ hello }')}`
    const answers = await Promise.all([
      ask('{ hello }'),
      ask('{ nothing }'),
      ask('{ hello }', 'wrong'),
      fetch(byUrl, { headers: { accept: 'application/json' } }),
    ])
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 401, 200])
    for (const { headers } of answers) expect(headers.get('cache-control')).toBe('no-store')
  })

  test('to a caller with a request id keeps it, in errors too', async () => {
    const id = '6f1c1f0e-8a5e-4b6e-9f57-0d3d3f7f2a11'
    const { headers, body } = await post({ query: '{ nothing }' }, { 'x-request-id': id })
    expect(headers.get('x-request-id')).toBe(id)
    expect(body.errors?.[0]?.extensions).toMatchObject({ requestId: id, code: 'GRAPHQL_VALIDATION_FAILED' })
  })

  test('masks internal errors and shows refusals, beside the available data', async () => {
    const broken = await ask('{ fails }')
    expect(broken.status).toBe(200)
    expect(JSON.stringify(broken.body)).not.toContain('hunter2')
    expect(codesOf(broken)).toEqual(['INTERNAL_SERVER_ERROR'])
    const refused = await ask('{ hello refuses }')
    expect(refused.body.data).toEqual({ hello: 'hello world', refuses: null })
    expect(codesOf(refused)).toEqual(['NOT_FOUND'])
  })

  test('lists five errors at most', async () => {
    const { body } = await ask(`{ ${Array.from({ length: 9 }, (_, n) => `no${n}`).join(' ')} }`)
    expect(body.errors).toHaveLength(5)
  })

  test('comes within the deadline, as an error', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    try {
      const pending = ask('{ slow }')
      let answer: Answer | null = null
      void pending.then((given) => {
        answer = given
      })
      while (answer === null) {
        vi.advanceTimersByTime(limits.graphqlDeadlineMs / 4)
        await new Promise((resolve) => setImmediate(resolve))
      }
      expect((await pending).status).toBe(503)
      expect(codesOf(await pending)).toEqual(['DEADLINE_EXCEEDED'])
    } finally {
      vi.useRealTimers()
    }
  })
})

describe('access', () => {
  test('to public fields needs no token', async () => {
    expect((await ask('{ hello }')).status).toBe(200)
  })

  for (const accept of ['application/json', 'application/graphql-response+json']) {
    test(`401 without a token, 403 without the scope, to ${accept}`, async () => {
      const missing = await ask('{ hello secret }', undefined, accept)
      expect([missing.status, ...(codesOf(missing) ?? [])]).toEqual([401, 'UNAUTHENTICATED'])
      expect(missing.body).not.toHaveProperty('data')
      const lacking = await ask('{ hello secret }', fixture.issue({ scopes: ['balance'] }), accept)
      expect([lacking.status, ...(codesOf(lacking) ?? [])]).toEqual([403, 'FORBIDDEN'])
      expect(lacking.body.errors?.[0]?.extensions).toMatchObject({ requiredScopes: ['pay'] })
      expect(lacking.headers.get('content-type')).toContain(accept)
    })
  }

  test('401 for a bad token before any other check', async () => {
    const answer = await post('not json', { authorization: 'Bearer nonsense' })
    expect(answer.status).toBe(401)
    expect(answer.body).toEqual({
      errors: [
        { message: expect.any(String), extensions: { code: 'UNAUTHENTICATED', requestId: anyRequestId } },
      ],
    })
  })

  test('a revoked token is refused', async () => {
    const token = fixture.issue()
    expect((await ask('{ secret }', token)).body.data).toEqual({ secret: 'secret' })
    fixture.revoke(token)
    await new Promise((resolve) => setTimeout(resolve, credentialFreshMs + 50))
    expect((await ask('{ secret }', token)).status).toBe(401)
  })

  test('no payment is made where a part of the document is refused, or where it pays twice', async () => {
    const before = fixture.paid.length
    const token = fixture.issue({ scopes: ['balance'] })
    expect((await ask('mutation { greet pay(amount: 1) }', token)).status).toBe(403)
    const twice = await ask('mutation { a: pay(amount: 1) b: pay(amount: 2) }', fixture.issue())
    expect(codesOf(twice)).toEqual(['ONE_PAYMENT_PER_OPERATION'])
    expect(fixture.paid).toHaveLength(before)
    await ask('mutation { pay(amount: 3) }', fixture.issue())
    expect(fixture.paid).toHaveLength(before + 1)
  })
})

describe('a refused request', () => {
  const forms = [
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'text/plain',
    'application/graphql',
  ]
  for (const type of [...forms, 'application/json; charset=utf-16']) {
    test(`415 for ${type}`, async () => {
      const answer = await post('query=mutation{greet}', { 'content-type': type })
      expect(answer.status).toBe(415)
      expect(codesOf(answer)).toEqual(['UNSUPPORTED_MEDIA_TYPE'])
    })
  }

  test('400 for a batch, for broken JSON and for a body that is no object', async () => {
    for (const body of ['[{"query":"{ hello }"}]', '{"query":', '7', 'null', '{}']) {
      const answer = await post(body)
      expect([body, answer.status]).toEqual([body, 400])
      expect(codesOf(answer)).toEqual(['BAD_REQUEST'])
    }
  })

  test('405 for a mutation by GET, which does not run; 400 for broken variables there', async () => {
    const before = fixture.paid.length
    const headers = { authorization: `Bearer ${fixture.issue()}` }
    const mutation = await fetch(`${url()}?query=${encodeURIComponent('mutation { pay(amount: 1) }')}`, {
      headers,
    })
    expect([mutation.status, mutation.headers.get('allow')]).toEqual([405, 'POST'])
    expect(fixture.paid).toHaveLength(before)
    expect((await fetch(`${url()}?query={hello}&variables={`)).status).toBe(400)
    expect((await fetch(url(), { method: 'PUT', body: '{}' })).status).toBe(405)
  })

  test('406 for a subscription whose client takes no event stream, and it does not start', async () => {
    const answer = await ask('subscription { ticks { n } }', fixture.issue())
    expect(answer.status).toBe(406)
    expect(fixture.services.streams.size).toBe(0)
  })

  test('413 for a large body, with or without a length', async () => {
    const body = JSON.stringify({ query: `{ hello } #${' '.repeat(limits.bodyMaxBytes)}` })
    expect((await post(body)).status).toBe(413)
    expect(await postInChunks(body)).toBe(413)
  })

  test('a document over the limits is 400 with its reason', async () => {
    const answer = await ask('{ batches(first: 100) { nodes { recipients(first: 100) { nodes { id } } } } }')
    expect(codesOf(answer)).toEqual(['COST_EXCEEDED'])
    const strict = await ask(`{ ${'hello '.repeat(2_001)} }`, undefined, 'application/graphql-response+json')
    expect([strict.status, ...(codesOf(strict) ?? [])]).toEqual([400, 'GRAPHQL_PARSE_FAILED'])
  })
})

function postInChunks(body: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const sent = request(
      url(),
      { method: 'POST', headers: { 'content-type': 'application/json' } },
      (response) => {
        response.resume()
        resolve(response.statusCode)
      },
    )
    sent.on('error', reject)
    sent.write(body.slice(0, 1_000))
    sent.end(body.slice(1_000))
  })
}

describe('the schema', () => {
  const introspect = async (address: string, headers: Record<string, string> = {}) => {
    const answered = await fetch(address, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ query: getIntrospectionQuery() }),
    })
    return (await answered.json()) as Answer['body']
  }

  test('is shown to anyone in a sandbox, where GraphiQL asks for it', async () => {
    expect((await introspect(url())).data).toHaveProperty('__schema.types')
  })

  test('is shown in production to callers with a token only', async () => {
    const authorization = `Bearer ${production.fixture.issue()}`
    expect((await introspect(production.url(), { authorization })).data).toHaveProperty('__schema.types')
    const { data, errors } = await introspect(production.url())
    expect([data, errors?.map(({ extensions }) => extensions['code'])]).toEqual([
      undefined,
      ['UNAUTHENTICATED'],
    ])
  })
})

describe('GraphiQL', () => {
  test('is shown to browsers in a sandbox, and never in production', async () => {
    const page = await fetch(url(), { headers: { accept: 'text/html' } })
    expect(page.headers.get('content-type')).toContain('text/html')
    expect(await page.text()).toContain('GraphiQL')
    const refused = await fetch(production.url(), { headers: { accept: 'text/html' } })
    expect(await refused.text()).not.toContain('GraphiQL')
  })
})
