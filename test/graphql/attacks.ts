import { limits } from '../../src/shared/limits.ts'

// The requests of attackers, and the refusals they get. Written for the schema of `fixtures.ts`.

/** One request over HTTP; a document alone is sent as JSON. */
interface HttpAttack {
  method?: 'GET' | 'POST'
  /** The query string behind `/graphql`. */
  search?: string
  headers?: Record<string, string>
  body?: string
}

interface Refusal {
  status: number
  /** Null where the answer has no error. */
  code: string | null
  words: RegExp
}

export interface GraphqlAttack {
  name: string
  request: HttpAttack
  /** The refusal; null where the answer must only leave out the attacked data. */
  refusal: Refusal | null
  /** Sent with a token, so that a missing token is not the reason of the refusal. */
  isSignedIn?: boolean
  /** The count of errors, where more than one comes back. */
  errors?: number
}

const times = (count: number, text: (index: number) => string) =>
  Array.from({ length: count }, (_, index) => text(index)).join(' ')

/** A document, as the JSON body of a POST. */
const bodyOf = (query: string, variables: object = {}): HttpAttack => ({
  body: JSON.stringify({ query, variables }),
})
const costs = (words: RegExp) => ({ status: 400, code: 'COST_EXCEEDED', words })
const invalid = (words: RegExp) => ({ status: 400, code: 'GRAPHQL_VALIDATION_FAILED', words })
const bad = (words: RegExp, status = 400) => ({ status, code: 'BAD_REQUEST', words })
const media = { status: 415, code: 'UNSUPPORTED_MEDIA_TYPE', words: /must be JSON/ }

/** Lists in lists, a hundred each, by fragments that name the next one: 341 bytes, 10,101,010,100 objects. */
export function fragmentBomb(): string {
  const names = ['...b', '...c', '...d', 'id']
  const fragments = names.map(
    (next, index) => `fragment ${'abcd'[index]} on Batch{recipients(first:100){nodes{${next}}}}`,
  )
  return `{batches(first:100){nodes{...a}}}${fragments.join('')}`.padEnd(341)
}

/** Each fragment uses the next one twice: 2 to the power of 12 selections. */
function doublingFragments(): string {
  const fragmentNames = 'abcdefghijkl'.split('')
  const fragments = fragmentNames.map((fragmentName, index) => {
    const next = fragmentNames[index + 1]
    return `fragment ${fragmentName} on Query{${next ? `...${next} ...${next}` : 'hello'}}`
  })
  return `{...a ...a}${fragments.join('')}`
}

const payTwice = 'mutation { a: pay(amount: 1) b: pay(amount: 2) }'
const fanOut =
  'query ($n: Int = 1) { batches(first: $n) { nodes { recipients(first: $n) { nodes { id } } } } }'
const circle = 'fields { type { '

/** The detections of graphql-cop. */
const known: GraphqlAttack[] = [
  {
    name: 'aliases',
    request: bodyOf(`{ ${times(101, (n) => `alias${n}: __typename`)} }`),
    refusal: costs(/20 aliases at its top/),
  },
  {
    name: 'a batch in an array',
    request: { body: JSON.stringify(Array.from({ length: 10 }, () => ({ query: '{ __typename }' }))) },
    refusal: bad(/one operation per request/),
  },
  {
    name: 'a query by GET from another site',
    request: {
      method: 'GET',
      search: '?query={__typename}',
      headers: { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors' },
    },
    refusal: bad(/other sites/, 403),
  },
  {
    name: 'a form',
    request: {
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: 'query=%7B__typename%7D',
    },
    refusal: media,
  },
  {
    name: 'tracing',
    request: {
      headers: { 'x-apollo-tracing': '1' },
      body: JSON.stringify({ query: '{ __typename }', extensions: { tracing: true } }),
    },
    refusal: null,
  },
  {
    name: 'equal fields',
    request: bodyOf(`{ ${times(500, () => '__typename')} }`),
    refusal: costs(/200 fields side by side/),
  },
  {
    name: 'suggestions of field names',
    request: bodyOf('{ helo }'),
    refusal: invalid(/^Cannot query field "helo" on type "Query"\.$/),
  },
  {
    name: 'GraphiQL',
    request: { method: 'GET', headers: { accept: 'text/html' } },
    refusal: { status: 406, code: null, words: /^$/ },
  },
  {
    name: 'introspection',
    request: bodyOf('query { __schema { types { name fields { name } } } }'),
    refusal: { status: 401, code: 'UNAUTHENTICATED', words: /callers with a token/ },
  },
  {
    name: 'directives',
    request: bodyOf(`{ __typename ${times(500, () => '@aa')} }`),
    refusal: costs(/20 directives/),
  },
  {
    name: 'introspection in circles',
    request: bodyOf(`{ __schema { types { ${circle.repeat(8)} name ${'} } '.repeat(8)} } } }`),
    refusal: invalid(/Maximum introspection depth/),
    isSignedIn: true,
  },
  {
    name: 'a mutation by GET',
    request: { method: 'GET', search: '?query=mutation{greet}' },
    refusal: bad(/needs a POST/, 405),
  },
]

/** Attacks beyond those of graphql-cop. */
const own: GraphqlAttack[] = [
  {
    name: 'fragments that nest lists',
    request: bodyOf(fragmentBomb()),
    refusal: costs(/may give 10101010100 objects/),
  },
  {
    name: 'fragments that double',
    request: bodyOf(doublingFragments()),
    refusal: costs(/5000 fields and fragments|side by side/),
  },
  {
    name: 'lists in lists in lists',
    request: bodyOf(
      '{ batches(first: 100) { nodes { recipients(first: 100) { nodes { recipients(first: 100) ' +
        '{ nodes { id } } } } } } }',
    ),
    refusal: costs(/1010100 objects/),
  },
  {
    name: 'long pages by a variable, in a document that is cheap by its defaults',
    request: bodyOf(fanOut, { n: 100 }),
    refusal: costs(/10100 objects/),
  },
  {
    name: 'depth',
    request: bodyOf(`{ me ${'{ parent '.repeat(200)}{ name }${' }'.repeat(200)} }`),
    refusal: costs(/12 levels deep/),
  },
  {
    name: '10,000 words',
    request: bodyOf(`{ ${times(10_000, () => 'hello')} }`),
    refusal: { status: 400, code: 'GRAPHQL_PARSE_FAILED', words: /2000 tokens/ },
  },
  {
    name: 'equal fields, in fragments and in equal parents',
    request: bodyOf(
      `{ ${times(20, () => 'batches { ...f }')} } fragment f on BatchConnection ` +
        `{ ${times(20, () => 'totalCount')} }`,
    ),
    refusal: costs(/200 fields side by side/),
  },
  {
    name: 'aliases in fragments',
    request: bodyOf(
      `{ ${times(16, () => 'batches { ...f }')} } fragment f on BatchConnection ` +
        '{ a: totalCount b: totalCount }',
    ),
    refusal: costs(/30 aliases/),
  },
  {
    name: 'many names at once',
    request: bodyOf('query ($ids: [ID!]!) { nodes(ids: $ids) { id } }', {
      ids: Array.from({ length: limits.graphqlCostMax + 1 }, (_, n) => String(n)),
    }),
    refusal: costs(/10001 objects/),
  },
  {
    name: 'a form with parts',
    request: {
      headers: { 'content-type': 'multipart/form-data; boundary=x' },
      body: '--x\r\ncontent-disposition: form-data; name="operations"\r\n\r\n{"query":"{hello}"}\r\n--x--',
    },
    refusal: media,
  },
  {
    name: 'a body of 200 KB',
    request: bodyOf(`{ hello } #${' '.repeat(200_000)}`),
    refusal: { status: 413, code: 'BODY_TOO_LARGE', words: /too large/ },
  },
  {
    name: 'variables in variables',
    request: {
      body: `{"query":"{ hello }","variables":{"v":${'['.repeat(40_000)}${']'.repeat(40_000)}}}`,
    },
    refusal: bad(/nested deeper than 20/),
  },
  {
    name: 'variables that are wrong 2,000 times',
    request: bodyOf('query ($ids: [ID!]!) { nodes(ids: $ids) { id } }', {
      ids: Array.from({ length: 2_000 }, () => ({})),
    }),
    refusal: invalid(/ID cannot represent/),
    errors: limits.graphqlErrorsMax,
  },
  {
    name: 'a name of 90 KB',
    request: bodyOf(`{ ${'n'.repeat(90_000)} }`),
    refusal: invalid(/^Cannot query field "n{400,}…$/),
  },
  {
    name: 'circles of fragments',
    request: bodyOf('{ ...a } fragment a on Query { ...b } fragment b on Query { ...a }'),
    refusal: invalid(/within itself/),
  },
  {
    name: 'two payments in one document',
    request: bodyOf(payTwice),
    refusal: { status: 400, code: 'ONE_PAYMENT_PER_OPERATION', words: /one payment at a time/ },
    isSignedIn: true,
  },
]

export const attacks: readonly GraphqlAttack[] = [...known, ...own]

/** @returns the answer, which is never more than a few kilobytes */
export async function send(
  url: string,
  { request, isSignedIn }: GraphqlAttack,
  token: string,
): Promise<AttackAnswer> {
  const { method = 'POST', search = '', headers = {}, body } = request
  const answered = await fetch(`${url}${search}`, {
    method,
    headers: {
      ...(method === 'POST' && { 'content-type': 'application/json' }),
      accept: 'application/graphql-response+json',
      ...(isSignedIn && { authorization: `Bearer ${token}` }),
      ...headers,
    },
    ...(body !== undefined && { body }),
  })
  return { status: answered.status, text: await answered.text() }
}

export interface AttackAnswer {
  status: number
  text: string
}
