import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { anonymousContext } from '../../../src/http/request.ts'
import { passwordBounds } from '../../../src/identity/members/passwords.ts'
import { startTestApp, type TestApp, type TestMerchant } from '../../kit/app.ts'
import { eventually } from '../../kit/eventually.ts'
import { makePerson } from '../../kit/people.ts'
import { useBounds } from '../../kit/use-bounds.ts'

// A browser keeps the session of a person in a cookie that scripts cannot read; only the service's own pages
// may use it.

// `passwords.test.ts` tests the cost of a password hash.
useBounds(passwordBounds, { memoryKib: 64, passes: 1 })

const password = 'le soleil de Bamako'

let service: TestApp
let shop: TestMerchant
beforeAll(async () => {
  service = await startTestApp()
  shop = await service.merchant('Épicerie')
})
afterAll(async () => {
  await service.close()
})

/** Makes an owner of the shop. @returns the e-mail address */
const person = async () => (await makePerson(service, shop.merchantId)).email

interface Sent {
  origin?: string
  cookie?: string
  authorization?: string
  'idempotency-key'?: string
  'x-session-member'?: string
}

async function ask(query: string, variables: object, { ...headers }: Sent = {}) {
  const answer = await fetch(`${service.url}/graphql`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...headers },
    body: JSON.stringify({ query, variables }),
  })
  const body = await answer.json()
  return { status: answer.status, body, setCookie: answer.headers.getSetCookie() }
}

const signInDocument = `mutation ($input: SignInInput!) { signIn(input: $input) {
  __typename ... on SignedIn { token merchantId } ... on Refusal { code }
  ... on InvalidInputError { problems { field } } } }`

async function signIn(email: string, sent: Sent = { origin: service.url }) {
  const { body, setCookie } = await ask(signInDocument, { input: { email, password, cookie: true } }, sent)
  return { result: body.data.signIn, cookie: setCookie[0]?.split(';', 1)[0] ?? '', setCookie }
}

/** Returns the e-mail address of the person that the service sees in the caller; null where it sees none. */
async function seenAs(sent: Sent): Promise<string | null> {
  const { body } = await ask('{ me { member { email } } }', {}, sent)
  return body.data?.me?.member?.email ?? null
}

const sessions = async () => {
  const { rows } = await service.database.owner.query('SELECT id FROM session')
  return rows.length
}
const links = async () => {
  const { rows } = await service.database.owner.query('SELECT id FROM payment_link')
  return rows.length
}
const createLink = `mutation { createPaymentLink(input: { title: "Riz", amount: 5000 }) { __typename } }`

test('a page of the service signs in without ever seeing the token', async () => {
  const email = await person()
  const { result, cookie, setCookie } = await signIn(email)
  expect(result).toEqual({ __typename: 'SignedIn', token: '', merchantId: shop.merchantId })
  expect(setCookie).toEqual([`${cookie}; Max-Age=43200; Path=/; HttpOnly; SameSite=Strict`])
  expect(cookie).toMatch(/^merchant_session=[\w-]+\.[\w-]+\.[\w-]+$/)
  expect(await seenAs({ origin: service.url, cookie })).toBe(email)
  const [, port] = service.url.split(/:(?=\d+$)/)
  expect(await seenAs({ origin: `http://localhost:${port}`, cookie })).toBe(email)
  expect(await seenAs({ origin: service.url, cookie: `other=1; ${cookie}; more=2` })).toBe(email)
})

test('a plain link with the cookie downloads a file and reads a list', async () => {
  const { cookie } = await signIn(await person())
  for (const path of ['/exports/transactions.csv', '/transactions', '/balance']) {
    const answer = await fetch(`${service.url}/merchant/api${path}`, { headers: { cookie } })
    expect([path, answer.status]).toEqual([path, 200])
    await answer.arrayBuffer()
  }
})

test("a stranger's page can use the cookie for nothing", async () => {
  const { cookie } = await signIn(await person())
  const before = await links()
  const strangers = [
    'https://evil.example',
    'null',
    `${service.url}.evil.example`,
    service.url.replace('http:', 'https:'),
    service.url.replace(/\d+$/, '1'),
    `${service.url}/`,
  ]
  for (const origin of strangers) {
    const { body } = await ask(createLink, {}, { origin, cookie })
    expect([origin, body.errors?.[0]?.extensions.code]).toEqual([origin, 'UNAUTHENTICATED'])
    const options = { headers: { cookie, origin }, body: { title: 'Riz', amount: 5_000 } }
    const posted = await service.rest('POST', '/payment-links', options)
    expect([origin, posted.status]).toEqual([origin, 401])
    const read = await service.rest('GET', '/transactions', { headers: { cookie, origin } })
    expect([origin, read.status]).toEqual([origin, 401])
  }
  const unnamed = await ask(createLink, {}, { cookie })
  expect(unnamed.body.errors[0].extensions.code).toBe('UNAUTHENTICATED')
  expect(await links()).toBe(before)
  const own = await ask(createLink, {}, { origin: service.url, cookie })
  expect(own.body).toMatchObject({ data: { createPaymentLink: { __typename: 'PaymentLink' } } })
  expect(await links()).toBe(before + 1)
})

test('only a page of the service may ask for a cookie; a refusal opens no session', async () => {
  const email = await person()
  const before = await sessions()
  for (const sent of [{}, { origin: 'https://evil.example' }]) {
    const { result, setCookie } = await signIn(email, sent)
    expect(result).toMatchObject({ code: 'INVALID_INPUT', problems: [{ field: 'cookie' }] })
    expect(setCookie).toEqual([])
  }
  expect(await sessions()).toBe(before)
})

test('a planted session is replaced, and one that ended does not hinder the next', async () => {
  const [email, other] = [await person(), await person()]
  const planted = (await signIn(other)).cookie
  const { cookie } = await signIn(email, { origin: service.url, cookie: planted })
  expect(cookie).not.toBe(planted)
  expect(await seenAs({ origin: service.url, cookie })).toBe(email)
  const page = { origin: service.url, cookie }
  const out = await ask('mutation { signOut { __typename } }', {}, page)
  expect(out.setCookie).toEqual(['merchant_session=; Max-Age=0; Path=/; HttpOnly; SameSite=Strict'])
  expect(await seenAs(page)).toBeNull()
  const again = await signIn(email, page)
  expect(await seenAs({ origin: service.url, cookie: again.cookie })).toBe(email)
  for (const broken of ['merchant_session=', 'merchant_session=x.y.z', 'merchant_session']) {
    const { result } = await signIn(email, { origin: service.url, cookie: broken })
    expect([broken, result.__typename]).toEqual([broken, 'SignedIn'])
  }
})

test('an Authorization header decides alone, a right one and a wrong one', async () => {
  const { cookie } = await signIn(await person())
  const page = { origin: service.url, cookie }
  const withKey = { ...page, authorization: `Bearer ${shop.token}` }
  const { body } = await ask('{ me { member { email } } }', {}, withKey)
  expect(body).toMatchObject({ data: { me: { member: null } } })
  const wrong = await ask('{ me { member { email } } }', {}, { ...page, authorization: 'Bearer x' })
  expect(wrong.status).toBe(401)
  const out = await ask('mutation { signOut { __typename } }', {}, withKey)
  expect(out.setCookie).toEqual([])
})

test('a page that shows another member than the cookie names is a stranger', async () => {
  const email = await person()
  const { cookie } = await signIn(email)
  const { rows } = await service.database.owner.query('SELECT id FROM team_member WHERE email = $1', [email])
  const page = { origin: service.url, cookie }
  const memberId = String(rows[0]?.id)
  expect(await seenAs({ ...page, 'x-session-member': memberId })).toBe(email)
  for (const other of [`${memberId}1`, '1', '', 'null'])
    expect([other, await seenAs({ ...page, 'x-session-member': other })]).toEqual([other, null])
})

test('a closed account and a wrong address leave the page a stranger, who can sign in again', async () => {
  const closed = await service.merchant('Fermé')
  const { email } = await makePerson(service, closed.merchantId)
  const other = await person()
  for (const change of [`status = 'inactive'`, `status = 'active', ip_whitelist = '{192.0.2.7}'`]) {
    const reset = `status = 'active', ip_whitelist = '{}'`
    const set = (values: string) =>
      service.database.owner.query(`UPDATE merchant SET ${values} WHERE id = $1`, [closed.merchantId])
    await set(reset)
    const { cookie } = await signIn(email)
    await set(change)
    const page = { origin: service.url, cookie }
    await eventually(async () => (await seenAs(page)) === null)
    const { result } = await signIn(other, page)
    expect([change, result.__typename]).toEqual([change, 'SignedIn'])
  }
})

test('a cookie is never sent a second time under an Idempotency-Key', async () => {
  const email = await person()
  const program = { origin: service.url, authorization: `Bearer ${shop.token}`, 'idempotency-key': 'day-1' }
  const [first, second] = [await signIn(email, program), await signIn(email, program)]
  expect([first.result.__typename, second.result.__typename]).toEqual(['SignedIn', 'SignedIn'])
  expect(second.cookie).not.toBe(first.cookie)
  const { origin: _origin, ...elsewhere } = program
  expect((await signIn(email, elsewhere)).cookie).toBe('')
})

test('a plain link from another site of the same domain has no session', async () => {
  const { cookie } = await signIn(await person())
  for (const [site, status] of [
    ['same-origin', 200],
    ['none', 200],
    ['same-site', 401],
    ['cross-site', 401],
  ] as const) {
    const headers = { cookie, 'sec-fetch-site': site }
    expect([site, (await service.rest('GET', '/balance', { headers })).status]).toEqual([site, status])
  }
})

/** Runs one operation over a WebSocket that sends the cookie. @returns the answer's message */
function overSocket(sent: Sent, query: string): Promise<ReturnType<typeof JSON.parse>> {
  const socket = new WebSocket(`${service.url.replace('http', 'ws')}/graphql`, 'graphql-transport-ws', {
    headers: { ...sent },
  })
  return new Promise((resolve, reject) => {
    socket.on('open', () => socket.send('{"type":"connection_init"}'))
    socket.on('error', reject)
    socket.on('close', (code) => reject(new Error(`closed with ${code}`)))
    socket.on('message', (data: Buffer) => {
      const message = JSON.parse(data.toString())
      if (message.type === 'connection_ack') {
        socket.send(JSON.stringify({ id: '1', type: 'subscribe', payload: { query } }))
      } else if (message.type === 'next' || message.type === 'error') {
        resolve(message.payload)
        socket.terminate()
      }
    })
  })
}

test('a WebSocket of a page of the service has the session; one of a stranger has none', async () => {
  const email = await person()
  const { cookie } = await signIn(email)
  const me = '{ me { member { email } } }'
  const own = await overSocket({ origin: service.url, cookie }, me)
  expect(own).toMatchObject({ data: { me: { member: { email } } } })
  for (const sent of [{ cookie }, { origin: 'https://evil.example', cookie }]) {
    expect(await overSocket(sent, me)).toMatchObject([{ extensions: { code: 'UNAUTHENTICATED' } }])
  }
  const before = await sessions()
  const input = `{ email: "${email}", password: "${password}", cookie: true }`
  const document = `mutation { signIn(input: ${input}) { ... on InvalidInputError { problems { field } } } }`
  expect(await overSocket({ origin: service.url }, document)).toMatchObject({
    data: { signIn: { problems: [{ field: 'cookie' }] } },
  })
  expect(await sessions()).toBe(before)
})

test('with TLS the cookie is bound to its host, and the public address alone counts', () => {
  const services = {
    ...service.app.services,
    addresses: { ...service.app.services.addresses, publicUrl: 'https://pay.example.ml' },
  }
  const cookieOf = (headers: Sent) => {
    const message = { method: 'POST', headers, socket: {} } as unknown as IncomingMessage
    const ctx = anonymousContext(services, message, randomUUID(), 'graphql')
    return { ctx, cookie: ctx.sessionCookie }
  }
  const origin = 'https://pay.example.ml'
  const { ctx, cookie } = cookieOf({
    origin,
    cookie: 'merchant_session=planted; __Host-merchant_session=own',
  })
  expect(cookie?.token).toBe('own')
  cookie?.write?.({ token: 'new', expiresIn: 60 })
  const attributes = 'Path=/; HttpOnly; SameSite=Strict; Secure'
  expect(ctx.responseHeaders.get('Set-Cookie')).toBe(`__Host-merchant_session=new; Max-Age=60; ${attributes}`)
  expect(cookieOf({ origin, cookie: 'merchant_session=planted' }).cookie?.token).toBeNull()
  for (const other of ['http://pay.example.ml', 'https://pay.example.ml:444', 'http://localhost']) {
    expect([other, cookieOf({ origin: other, cookie: '__Host-merchant_session=own' }).cookie]).toEqual([
      other,
      null,
    ])
  }
})
