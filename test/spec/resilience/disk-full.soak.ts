import { spawnSync } from 'node:child_process'
import { chmodSync, closeSync, mkdtempSync, openSync, rmSync, unlinkSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { eventually } from '../../kit/eventually.ts'
import { startApp } from '../../../src/app.ts'
import { readConfig } from '../../../src/config/config.ts'
import { startEmbedded } from '../../../src/database/embedded.ts'
import { createMerchant } from '../../../src/resources/merchants/create.ts'
import { controlToken } from '../../kit/app.ts'
import { openFixture } from '../../kit/fixture.ts'

// A database without space: the service answers with a later retry, loses no acknowledged payment, and goes
// on.

const fixture = await openFixture()
const shop = await fixture.merchant()

test.each(['53100', '53200', '58030'])(
  '%s from the database is 503 with Retry-After over every protocol',
  async (code) => {
    const { owner } = fixture.database
    const made = await fixture.rest('POST', '/payment-links', {
      token: shop.token,
      body: { title: 'Riz', amount: 5_000 },
    })
    const page = new URL(made.body['data'].url)
    await owner.query(`
    CREATE OR REPLACE FUNCTION fail_planted() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN RAISE EXCEPTION 'no room' USING ERRCODE = '${code}'; END $$;
    CREATE OR REPLACE TRIGGER planted BEFORE INSERT ON transaction
      FOR EACH ROW EXECUTE FUNCTION fail_planted()`)
    const before = await fixture.rowCounts()
    const rest = await fixture.pay(shop)
    expect(rest).toMatchObject({ status: 503, body: { success: false } })
    expect(rest.headers.get('Retry-After')).toBe('1')
    const graphql = await fixture.graphql(
      'mutation ($input: CollectPaymentInput!) { collectPayment(input: $input) { __typename } }',
      { input: { amount: 5_000, customerPhone: '70000001', paymentMethod: 'OperatorA' } },
      shop.token,
    )
    expect(graphql.body).toMatchObject({ errors: [{ extensions: { code: 'SERVICE_DOWN', retryAfter: 1 } }] })
    const form = await fetch(`${fixture.url}${page.pathname}`, {
      method: 'POST',
      body: new URLSearchParams({ amount: '5000', phone: '70000001', operator: 'OperatorA' }),
      headers: { 'Accept-Language': 'fr' },
    })
    const text = await form.text()
    expect({ status: form.status, retryAfter: form.headers.get('Retry-After') }).toEqual({
      status: 503,
      retryAfter: '1',
    })
    expect(text).toContain('Service indisponible')
    expect(await fixture.rowCounts()).toEqual(before)
    await owner.query('DROP TRIGGER planted ON transaction')
    expect((await fixture.pay(shop)).status).toBe(202)
  },
)

/** A disk of its own, where this account may make one. */
function mountDisk(): string | null {
  const folder = mkdtempSync(join(tmpdir(), 'disk-full-'))
  const { status } = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=300m', 'tmpfs', folder])
  if (status !== 0) {
    rmSync(folder, { recursive: true })
    return null
  }
  chmodSync(folder, 0o755)
  return folder
}

const disk = mountDisk()

test.skipIf(disk === null)(
  'a full disk: 503, no acknowledged payment is lost, and the service goes on',
  async () => {
    const folder = disk ?? ''
    const server = await startEmbedded({ dataDir: join(folder, 'db'), durable: true })
    const config = readConfig({
      PORT: '0',
      DATA_DIR: join(folder, 'data'),
      OPERATORS_URL: fixture.simulator.url,
      OPERATORS_CONTROL_TOKEN: controlToken,
      LOG_LEVEL: 'silent',
    })
    const app = await startApp(config, server.connection())
    onTestFinished(async () => {
      await app.close()
      await server.stop()
      spawnSync('umount', ['-l', folder])
      rmSync(folder, { recursive: true, force: true })
    })
    const api = `${app.services.addresses.publicUrl}/merchant/api`
    const made = await createMerchant(app.services, { name: 'Boutique' })
    const signedIn = await fetch(`${api}/auth`, {
      method: 'POST',
      headers: { 'X-API-Key': made.apiKey, 'X-API-Secret': made.apiSecret.reveal() },
    })
    const { data } = (await signedIn.json()) as { data: { token: string } }
    const acknowledged: string[] = []
    const pay = async (reference: string): Promise<Response> => {
      const answer = await fetch(`${api}/pay`, {
        method: 'POST',
        headers: { Authorization: `Bearer ${data.token}`, 'Content-Type': 'application/json' },
        body: JSON.stringify({
          amount: 500,
          customer_phone: '70110001',
          payment_method: 'OperatorA',
          reference,
          description: 'x'.repeat(250),
        }),
      })
      if (answer.status === 202) acknowledged.push(reference)
      return answer
    }
    const health = async () => (await fetch(`${api}/status`)).status
    expect((await pay('before')).status).toBe(202)
    expect(await health()).toBe(200)

    fill(join(folder, 'filler'))
    const statuses = new Set<number>()
    for (let nth = 0; nth < 400 && !statuses.has(503); nth += 1) {
      const answer = await pay(`full-${nth}`)
      statuses.add(answer.status)
      expect(answer.headers.get('Retry-After')).toBe(answer.status === 503 ? '1' : null)
    }
    expect(statuses).toEqual(new Set([202, 503]))
    await eventually(async () => expect(await health()).toBe(503))

    unlinkSync(join(folder, 'filler'))
    await eventually(async () => expect((await pay(`after-${Date.now()}`)).status).toBe(202))
    await eventually(async () => expect(await health()).toBe(200))
    const { rows } = await app.services.database.pool.query<{ n: number }>(
      'SELECT count(*)::int AS n FROM transaction WHERE reference = ANY ($1)',
      [acknowledged],
    )
    expect(rows[0]?.n).toBe(acknowledged.length)
  },
)

/** Fills the disk to the last page. */
function fill(path: string): void {
  const file = openSync(path, 'w')
  for (const size of [1_048_576, 4_096]) {
    const bytes = Buffer.alloc(size)
    expect(() => {
      for (;;) writeSync(file, bytes)
    }).toThrow('ENOSPC')
  }
  closeSync(file)
}
