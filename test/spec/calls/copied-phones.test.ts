import { describe, expect, test } from 'vitest'
import { restPrefix } from '../../../src/http/rest/handler.ts'
import { customer, openFixture } from '../../kit/fixture.ts'
import { line, text, titles, workbook } from '../../kit/workbook.ts'

// A number that a person copies from contacts has invisible marks around it, and dashes of many kinds in it.

const fixture = await openFixture()
const shop = await fixture.merchant()
await fixture.fund(shop, 1_000_000)

const phone = customer('00')
const pairs = phone.slice(4).match(/../g) ?? []

const writings = {
  'the marks of an Android telephone': `\u202a+223 ${pairs.join(' ')}\u202c`,
  'the isolates of an iPhone': `\u2068+223\u00a0${pairs.join('\u00a0')}\u2069`,
  'a byte order mark and zero-width spaces': `\ufeff${pairs.join('\u200b')}`,
  'marks of direction': `\u200e${pairs.join(' ')}\u200f`,
  'dashes that do not break': pairs.join('\u2011'),
  'long dashes': `+223\u2014${pairs.join('\u2013')}`,
  'minus signs': pairs.join('\u2212'),
}

const post = (path: string, body: object) => fixture.rest('POST', path, { token: shop.token, body })
const method = { payment_method: 'OperatorA' }

/** The account of the first recipient of a table that a form sends. */
async function importedFrom(file: string | Buffer<ArrayBuffer>): Promise<unknown> {
  const form = new FormData()
  form.append('payment_method', 'OperatorA')
  form.append('file', new Blob([file]), 'salaires')
  const answer = await fetch(`${fixture.url}${restPrefix}/bulk/batches/import`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${shop.token}` },
    body: form,
  })
  const { data } = (await answer.json()) as { data: { id: number } }
  return accountOf(data.id)
}

async function accountOf(batch: number): Promise<unknown> {
  const { rows } = await fixture.database.owner.query(
    'SELECT account FROM batch_recipient WHERE batch_id = $1',
    [batch],
  )
  return rows[0]?.account
}

describe.each(Object.entries(writings))('a number with %s', (_words, written) => {
  test('is the number of a payment, and finds it', async () => {
    const paid = await fixture.pay(shop, { customer_phone: written })
    expect(paid.status).toBe(202)
    const { transaction_id: id } = paid.body['data']
    expect((await fixture.record(shop, id))['customer_phone']).toBe(phone)
    const list = `/transactions?customer_phone=${encodeURIComponent(written)}&limit=1`
    const { body } = await fixture.rest('GET', list, { token: shop.token })
    expect(body['data'].transactions).toMatchObject([{ id, customer_phone: phone }])
  })

  test('is the number of a deposit, a payout and a beneficiary', async () => {
    const paid = await post('/deposit', { amount: 1_000, customer_phone: written, ...method })
    expect([paid.status, paid.body['data']?.status]).toEqual([200, 'success'])
    const payout = await post('/payouts', { amount: 1_000, destination_phone: written, ...method })
    expect([payout.status, payout.body['data']?.destination_phone]).toEqual([201, phone])
    const saved = await post('/beneficiaries', { name: 'Awa', account: written, ...method })
    expect([saved.status, saved.body['data']?.account]).toEqual([201, phone])
  })

  test('is the account of a recipient, from JSON, CSV and XLSX', async () => {
    const recipients = [{ name: 'Awa', account: written, amount: 5_000 }]
    const batch = await post('/bulk/batches', { ...method, recipients })
    expect([batch.status, await accountOf(batch.body['data'].id)]).toEqual([201, phone])
    expect(await importedFrom(`nom;numéro;montant\nAwa;${written};5000`)).toBe(phone)
    const rows = titles + line(2, '<c><v>5000</v></c>', text(written))
    expect(await importedFrom(Buffer.from(workbook({ rows })))).toBe(phone)
  })
})
