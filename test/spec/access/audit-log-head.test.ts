import { Writable } from 'node:stream'
import { pino } from 'pino'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openHeadLog } from '../../../src/audit/audit-heads.ts'
import { chainAuditLog } from '../../../src/audit/verify-chain.ts'
import { readEmail } from '../../../src/http/pages/mail.ts'
import { writeHeadEmails } from '../../../src/resources/audit-log/head-emails.ts'
import { commands } from '../../../src/terminal/commands.ts'
import { makeMember } from '../../kit/members.ts'
import { corrupt } from '../../kit/corrupt.ts'
import { startTestApp, type TestApp, type TestMerchant } from '../../kit/app.ts'
import { type MailServer, startMailServer } from '../../kit/mail-server.ts'
import { eventually } from '../../kit/eventually.ts'

let mail: MailServer
let service: TestApp
beforeAll(async () => {
  mail = await startMailServer()
  service = await startTestApp({ SMTP_URL: mail.url, MAIL_FROM: 'Paiements <no-reply@pay.test>' })
})
afterAll(async () => {
  await service.close()
  await mail.close()
})

let changes = 0

/** Makes entries for a merchant: `entries` changes of its settings, all chained. */
async function change(shop: TestMerchant, entries: number): Promise<void> {
  for (let n = 1; n <= entries; n += 1) {
    const body = { approval_threshold: (changes += 1) }
    const { status } = await service.rest('PUT', '/settings', { token: shop.token, body })
    expect(status).toBe(200)
  }
  const { pool } = service.database.database
  await eventually(async () => {
    await chainAuditLog(pool, service.app.services.access.master.auditKey)
    expect((await service.database.owner.query('SELECT FROM audit_unchained')).rowCount).toBe(0)
  })
}

async function shopWith(entries: number): Promise<TestMerchant> {
  const shop = await service.merchant()
  await change(shop, entries)
  return shop
}

const fields = 'isIntact isComplete upTo head fault { sequence problem }'
async function verify({ token }: TestMerchant, head?: string) {
  const document = `query ($head: String) { verifyAuditLog(head: $head) { ${fields} } }`
  const { body } = await service.graphql(document, { head }, token)
  return body.errors ? { errors: body.errors } : body.data.verifyAuditLog
}

const command = ({ merchantId }: TestMerchant, head?: string) =>
  commands['audit-log verify']?.(service.app.services, { merchant: String(merchantId), head })

/** The attack: deletes everything after position 4, and puts the head of that time back. */
async function cut(
  shop: TestMerchant,
  old: { position: bigint; hash: Buffer; proof: Buffer },
): Promise<void> {
  const { owner } = service.database
  const id = [shop.merchantId]
  await corrupt(
    owner,
    `WITH gone AS (DELETE FROM audit_link WHERE merchant_id = $1 AND position > 4 RETURNING entry_id)
     DELETE FROM audit_entry WHERE merchant_id = $1 AND id IN (SELECT entry_id FROM gone)`,
    id,
  )
  const { position, hash, proof } = old
  await corrupt(owner, 'UPDATE audit_head SET position = $2, hash = $3, proof = $4 WHERE merchant_id = $1', [
    shop.merchantId,
    position,
    hash,
    proof,
  ])
}

const headRow = async ({ merchantId }: TestMerchant) =>
  (
    await service.database.owner.query(
      'SELECT position, hash, proof FROM audit_head WHERE merchant_id = $1',
      [merchantId],
    )
  ).rows[0]

/** A shop with a log that was cut back to position 4, and a kept head of position 6 or more. */
async function cutShop() {
  const shop = await shopWith(0)
  await change(shop, 4 - Number((await headRow(shop)).position))
  const old = await headRow(shop)
  expect(old.position).toBe(4n)
  await change(shop, 3)
  const { head } = await verify(shop)
  await cut(shop, old)
  return { shop, head: head as string }
}

test('a kept head reveals that the end of a log was cut off', async () => {
  const { shop, head } = await cutShop()
  // The remaining chain alone looks intact: heads are kept outside for that reason.
  expect(await verify(shop)).toMatchObject({ isIntact: true, upTo: 4 })
  const lost = { isIntact: false, fault: { sequence: 7, problem: 'HEAD_NOT_CONTAINED' } }
  expect(await verify(shop, head)).toMatchObject(lost)
  // The chain that grows over the gap has other links at these positions.
  await change(shop, 4)
  expect(await verify(shop)).toMatchObject({ isIntact: true, upTo: 8 })
  expect(await verify(shop, head)).toMatchObject(lost)
  expect(await command(shop, `{"level":30,"head":"${head}","msg":"audit log head"}`)).toMatchObject({
    failed: true,
    answer: { intact: false, fault: { sequence: 7, problem: 'head not contained' } },
    words: `The audit log of merchant ${shop.merchantId} is broken at entry 7: head not contained.`,
  })
})

test('a log that still contains the head says so, also after it has grown', async () => {
  const shop = await shopWith(3)
  const { head, upTo } = await verify(shop)
  expect(await verify(shop, head)).toMatchObject({ isIntact: true, isComplete: true, upTo })
  await change(shop, 2)
  expect(await verify(shop, head)).toMatchObject({ isIntact: true, upTo: upTo + 2 })
  expect(await command(shop, head)).toMatchObject({
    failed: false,
    words: expect.stringMatching(/is intact: \d+ entries, and contains the head\.$/),
  })
})

test('an emptied log is a fault where keys, members or payments exist', async () => {
  const shop = await shopWith(2)
  const { head } = await verify(shop)
  for (const table of ['audit_entry', 'audit_link', 'audit_head'])
    await corrupt(service.database.owner, `DELETE FROM ${table} WHERE merchant_id = $1`, [shop.merchantId])
  const emptied = { isIntact: false, upTo: 0, head: null, fault: { sequence: 1, problem: 'MISSING' } }
  expect(await verify(shop)).toMatchObject(emptied)
  expect(await command(shop)).toMatchObject({ failed: true })
  expect((await verify(shop, head)).fault.problem).toBe('HEAD_NOT_CONTAINED')
})

test('an empty log of an empty account is intact', async () => {
  const { rows } = await service.database.owner.query(
    `INSERT INTO merchant (name) VALUES ('New') RETURNING id`,
  )
  const made = await commands['audit-log verify']?.(service.app.services, { merchant: String(rows[0].id) })
  expect(made).toMatchObject({ failed: false, answer: { entries: 0, intact: true } })
})

test('an invalid head, a head of another merchant, or a changed head is refused by name', async () => {
  const [shop, other] = [await shopWith(1), await shopWith(1)]
  const { head } = await verify(shop)
  const { head: others } = await verify(other)
  const [merchant, position, hash, proof] = head.split('.')
  const refused: [string, RegExp][] = [
    ['', /must hold a head/],
    ['x'.repeat(3_000), /must hold a head/],
    [others, /^is the head of merchant \d+$/],
    [`${merchant}.${Number(position) + 1}.${hash}.${proof}`, /was not written by this installation/],
    [`${merchant}.${position}.${proof}.${proof}`, /was not written by this installation/],
  ]
  for (const [text, message] of refused) {
    const { errors } = await verify(shop, text)
    expect(errors).toMatchObject([
      {
        extensions: {
          code: 'INVALID_INPUT',
          problems: [{ field: 'head', message: expect.stringMatching(message) }],
        },
      },
    ])
    await expect(command(shop, text)).rejects.toMatchObject({ code: 'INVALID_INPUT' })
  }
})

/** A log of heads, and its lines. */
function headLog() {
  const lines: { msg: string; merchantId: number; head: string; level: number }[] = []
  const sink = new Writable({
    write(chunk, _encoding, done) {
      lines.push(JSON.parse(String(chunk)))
      done()
    },
  })
  const log = openHeadLog(service.database.database.pool, pino({ base: null }, sink))
  const write = async ({ merchantId }: TestMerchant) => {
    lines.length = 0
    await log.write()
    return lines.filter((line) => line.merchantId === merchantId)
  }
  return write
}

test('each head is written to the log, once it has changed', async () => {
  const shop = await shopWith(1)
  const write = headLog()
  const { head } = await verify(shop)
  expect(await write(shop)).toMatchObject([{ msg: 'audit log head', head, level: 30 }])
  const lines = await write(shop)
  // A link chained a moment ago may be written once more, unchanged.
  for (const line of lines) expect(line).toMatchObject({ msg: 'audit log head', head })
  await change(shop, 1)
  const { head: next } = await verify(shop)
  expect(next).not.toBe(head)
  expect((await write(shop)).at(-1)).toMatchObject({ head: next })
})

test('a head that was put back raises an alarm at the next hour', async () => {
  const shop = await shopWith(0)
  await change(shop, 4 - Number((await headRow(shop)).position))
  const old = await headRow(shop)
  await change(shop, 2)
  const write = headLog()
  const { head } = await verify(shop)
  expect(await write(shop)).toMatchObject([{ head }])
  await cut(shop, old)
  const alarm = { msg: 'alarm: the audit log no longer contains its head', head, level: 50 }
  expect((await write(shop)).filter(({ level }) => level === 50)).toMatchObject([alarm])
  await change(shop, 5)
  expect((await write(shop)).filter(({ level }) => level === 50)).toMatchObject([alarm])
})

/** The next day: today's email counts as yesterday's. */
const nextDay = () => service.database.owner.query('UPDATE audit_email SET day = day - 1')
const emailsTo = (address: string) =>
  mail.mails.filter(({ to }) => to.includes(address)).map(({ data }) => readEmail(data))
async function sendEmails(): Promise<void> {
  while (await writeHeadEmails(service.app.services));
}

test('an email a day gives each owner the head, in the language of the account', async () => {
  const shop = await shopWith(2)
  const { owner } = service.database
  const [awa, finance] = [`awa-${shop.merchantId}`, `finance-${shop.merchantId}`]
  const { access } = service.app.services
  await makeMember(access, shop.merchantId, 'owner', awa)
  await makeMember(access, shop.merchantId, 'finance', finance)
  await sendEmails()
  await nextDay()
  await sendEmails()
  await sendEmails()
  const { head } = await verify(shop)
  await eventually(() => expect(emailsTo(awa)).toHaveLength(1))
  expect(emailsTo(awa)[0]?.text).toContain(head)
  expect(emailsTo(awa)[0]?.text).toContain("dernière ligne signée du journal d'audit")
  // The line of the email is all that a check needs.
  expect(await verify(shop, emailsTo(awa)[0]?.text)).toMatchObject({ isIntact: true })
  // The head has not changed: no email.
  await nextDay()
  await sendEmails()
  await owner.query(`UPDATE merchant SET notification_email = $2, locale = 'en' WHERE id = $1`, [
    shop.merchantId,
    `books-${shop.merchantId}@shop.test`,
  ])
  await change(shop, 1)
  await nextDay()
  await sendEmails()
  await eventually(() => expect(emailsTo(`books-${shop.merchantId}`)).toHaveLength(1))
  expect(emailsTo(`books-${shop.merchantId}`)[0]?.text).toContain('the last signed line of the audit log')
  expect(emailsTo(awa)).toHaveLength(1)
  expect(emailsTo(finance)).toEqual([])
})
