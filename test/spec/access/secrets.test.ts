import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createPrivateKey } from 'node:crypto'
import { decrypt } from '../../../src/identity/secrets/encrypt.ts'
import { openMasterSecret } from '../../../src/identity/secrets/secrets.ts'
import { createTestDatabase, type TestDatabase } from '../../kit/database.ts'
import { admin, call, type Home, newHome, type Running, signIn, startProgram } from '../../kit/program.ts'

// No credential that we issued, encrypted or were given appears in the database, the log or an answer in a
// usable form. The service runs as a program and logs all that it can.

let db: TestDatabase
let home: Home
let service: Running
beforeAll(async () => {
  db = await createTestDatabase()
  home = await newHome({ DATABASE_URL: db.url, LOG_LEVEL: 'debug' })
  service = await startProgram(home)
})
afterAll(async () => {
  await service.end('SIGTERM')
  service.destroy()
  await home.remove()
  await db.drop()
})

/** Every row of every table, bytes in hexadecimal. */
async function dump(): Promise<string> {
  const { rows } = await db.owner.query<{ name: string }>(
    `SELECT c.oid::regclass::text AS name FROM pg_class c
     WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace`,
  )
  expect(rows.length).toBeGreaterThan(12)
  const tables = await Promise.all(
    rows.map(({ name }) => db.owner.query<{ row: string }>(`SELECT t::text AS row FROM ${name} t`)),
  )
  return tables.flatMap((table) => table.rows.map(({ row }) => row)).join('\n')
}

/** The forms of a secret in which it could appear in a text. */
function writings(secret: string | Buffer): string[] {
  const bytes = Buffer.from(secret)
  return [
    ...(typeof secret === 'string' ? [secret] : []),
    bytes.toString('hex'),
    bytes.toString('base64').replace(/=+$/, ''),
    bytes.toString('base64url'),
  ]
}

test('no secret and no token appears in the database, in the log or in an answer', async () => {
  const [, firstKey = '', firstSecret = ''] = /(mk_\w+)[\s\S]*?(ms_\w+)/.exec(service.screen) ?? []
  const made = JSON.parse((await admin(home, 'merchant', 'create', '--name', 'Shop', '--json')).stdout)
  const answers: unknown[] = []
  const request = async (...given: Parameters<typeof call>) => answers.push(await call(...given))
  const first = await signIn(home, firstKey, firstSecret)
  const keyed = { 'X-API-Key': made.api_key, 'X-API-Secret': made.api_secret, 'Idempotency-Key': 'sign-in' }
  const second = (await call(home, 'POST', '/auth', keyed)).body['data'].token as string
  const token = first.Authorization.replace('Bearer ', '')

  const payment = { amount: 500, customer_phone: '70000000', payment_method: 'OperatorA', description: 'x' }
  for (const payment_method of ['OperatorA', 'OperatorB', 'OperatorC', 'OperatorD'])
    await request(
      home,
      'POST',
      '/pay',
      { ...first, 'Idempotency-Key': payment_method },
      { ...payment, payment_method },
    )
  // A caller by mistake sends a secret in the wrong place, or almost right.
  await request(home, 'POST', '/auth', { 'X-API-Key': made.api_key, 'X-API-Secret': `${made.api_secret}x` })
  await request(home, 'POST', '/auth', { 'X-API-Key': made.api_secret, 'X-API-Secret': made.api_key })
  await request(home, 'POST', '/auth', keyed, { scopes: ['nothing'] })
  await request(home, 'GET', '/balance', { Authorization: `Bearer ${token}x` })
  await request(home, 'GET', '/balance', { Authorization: `Basic ${token}` })
  await request(home, 'GET', `/transactions?reference=${token.slice(0, 40)}`, first)
  await request(home, 'GET', `/nothing?token=${second}`)
  const graphql = await fetch(`${home.url}/graphql`, {
    method: 'POST',
    headers: { ...first, 'Content-Type': 'application/json' },
    body: JSON.stringify({
      query: '{ me { merchant { name } }',
      variables: { token, secret: made.api_secret },
    }),
  })
  answers.push(await graphql.text())

  // A failure of ours is logged with all its details.
  for (const table of ['api_key', 'transaction']) {
    await db.owner.query(`ALTER TABLE ${table} RENAME TO away`)
    await request(home, 'POST', '/auth', keyed)
    await request(home, 'GET', '/transactions', first)
    await request(home, 'POST', '/pay', first, payment)
    await db.owner.query(`ALTER TABLE away RENAME TO ${table}`)
  }

  const master = await openMasterSecret(null, home.dataDir)
  const { rows } = await db.owner.query('SELECT kid, encrypted_private FROM signing_key')
  const der = decrypt(master.encryptionKey, rows[0].encrypted_private, rows[0].kid)
  const scalar =
    createPrivateKey({ key: der, format: 'der', type: 'pkcs8' }).export({ format: 'jwk' }).d ?? ''
  const file = readFileSync(join(home.dataDir, 'secret.key'), 'utf8').trim()
  const secrets: Record<string, string[]> = {
    'the API secrets': [firstSecret, made.api_secret].flatMap(writings),
    'the tokens': [token, second].flatMap((each) => [each, ...writings(each.split('.')[2] ?? '')]),
    'the master secret': [...writings(file), ...writings(Buffer.from(file, 'base64url'))],
    'the signing key': [...writings(der), ...writings(Buffer.from(scalar, 'base64url'))],
    'the credentials of the operators': ['sandbox-secret-', 'sandbox-key-', 'sandbox-webhook-secret-'],
  }
  const texts = { database: await dump(), log: service.errors(), answers: JSON.stringify(answers) }
  expect(texts.log.split('relation ').length).toBeGreaterThan(3)
  for (const [source, text] of Object.entries(texts)) {
    expect(text.length).toBeGreaterThan(1_000)
    const found = Object.entries(secrets).filter(([, written]) => written.some((each) => text.includes(each)))
    expect({ source, found: found.map(([name]) => name) }).toEqual({ source, found: [] })
  }
  // The scan works: it finds the public halves.
  expect(texts.database).toContain(made.api_key)
})
