import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { describe, expect, test } from 'vitest'
import { restPrefix } from '../../../src/http/rest/handler.ts'
import { line, text, titles, workbook } from '../../kit/workbook.ts'
import type { RestAnswer, TestMerchant } from '../../kit/app.ts'
import { bulkOn, row } from '../../kit/bulk.ts'
import { customer, openFixture } from '../../kit/fixture.ts'

const fixture = await openFixture()
const { call, shop, draft, process: processBatch, ended } = bulkOn(fixture)
const merchant = await shop()

type File = string | Buffer<ArrayBuffer> | Blob
type Texts = Record<string, string>

/** Sends a table as a form does. */
async function send(
  file: File,
  texts: Texts = {},
  { token = merchant.token, headers = {} }: { token?: string; headers?: Texts } = {},
): Promise<RestAnswer> {
  const form = new FormData()
  for (const [name, value] of Object.entries(texts)) form.append(name, value)
  form.append('file', new Blob([file]), 'salaires.csv')
  const response = await fetch(`${fixture.url}${restPrefix}/bulk/batches/import`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${token}`, ...headers },
    body: form,
  })
  return { status: response.status, headers: response.headers, body: await response.json() }
}

const table = (...lines: string[]) => ['nom;numéro;montant;opérateur', ...lines].join('\r\n')
const people = table('Awa Traoré;70 00 00 01;5 000;OperatorA', '', 'Moussa;70000002;7500 F CFA;OperatorB')

async function recipientsOf(id: unknown) {
  const { rows } = await fixture.database.owner.query(
    `SELECT name, account, amount::int, payment_method AS method FROM batch_recipient
     WHERE batch_id = $1 ORDER BY id`,
    [id],
  )
  return rows as { name: string; account: string; amount: number; method: string }[]
}
const both = [
  { name: 'Awa Traoré', account: '+22370000001', amount: 5_000, method: 'OperatorA' },
  { name: 'Moussa', account: '+22370000002', amount: 7_500, method: 'OperatorB' },
]
/** The number of batches and recipients. */
async function written(): Promise<unknown> {
  const { rows } = await fixture.database.owner.query(
    `SELECT (SELECT count(*) FROM batch) AS batches, (SELECT count(*) FROM batch_recipient) AS recipients,
       (SELECT count(*) FROM audit_entry) AS entries, (SELECT count(*) FROM event) AS events`,
  )
  return rows[0]
}

describe('201 a draft of the recipients in a file, as of those in JSON', () => {
  test('CSV', async () => {
    const { status, headers, body } = await send(people, { title: 'Salaires août' })
    const json = await call(merchant, 'POST', '', {
      title: 'Salaires août',
      recipients: both.map(({ method, ...one }) => ({ ...one, payment_method: method })),
    })
    expect(status).toBe(201)
    expect(headers.get('X-GraphQL-Operation')).toBe('CreateBatch')
    expect(headers.get('Location')).toBe(`${restPrefix}/bulk/batches/${body['data'].id}`)
    const { id, created_at: _at, ...made } = body['data']
    expect(json.body['data']).toMatchObject(made)
    expect(made).toMatchObject({ status: 'draft', recipient_count: 2, total_amount: 12_500 })
    expect(await recipientsOf(id)).toEqual(both)
  })

  test('from CSV as French Excel writes it', async () => {
    const { body } = await send(Buffer.from(people, 'latin1'))
    expect(await recipientsOf(body['data'].id)).toEqual(both)
  })

  test('from XLSX; the form names the operator where the table does not', async () => {
    const book = workbook({ rows: titles + line(2, '<c><v>5000</v></c>') + line(9, text('5 000 XOF')) })
    const { status, body } = await send(book as Buffer<ArrayBuffer>, { payment_method: 'OperatorC' })
    expect(status).toBe(201)
    const one = { name: 'Awa', account: '+22370000001', amount: 5_000, method: 'OperatorC' }
    expect(await recipientsOf(body['data'].id)).toEqual([one, one])
  })

  test('is paid like any other', async () => {
    const payee = customer('00')
    const { body } = await send(table(`Awa;${payee};5000;OperatorA`))
    await processBatch(merchant, body['data'].id)
    expect(await ended(merchant, body['data'].id)).toMatchObject({ status: 'completed', paid_amount: 5_000 })
  })
})

test('a dry run gives its preview, and writes nothing', async () => {
  const before = await written()
  const { status, headers, body } = await send(people, { dry_run: 'true' })
  expect([status, headers.get('Location')]).toEqual([200, null])
  expect(body['data']).toMatchObject({ recipient_count: 2, total_amount: 12_500 })
  expect((await send(people, { dry_run: 'perhaps' })).body['errors'][0].field).toBe('dry_run')
  expect(await written()).toEqual(before)
  expect((await send(people, { dry_run: 'false' })).status).toBe(201)
})

test('a repeated account is warned of by its line', async () => {
  const { body } = await send(table('', 'Awa;70000001;5000;OperatorA', 'Awa;70 00 00 01;5000;OperatorA'))
  expect(body['data'].warnings).toEqual([
    {
      field: 'lines[4].account',
      message: 'is the same as that of lines[3]: both are paid (column B, numéro)',
      row: { name: 'Awa', account: '70 00 00 01', amount: '5000', payment_method: 'OperatorA' },
    },
  ])
})

test('columns that were not read are named, so that no given name is dropped unseen', async () => {
  const columns = 'nom;prénom;note;numéro;montant;opérateur'
  const { body } = await send(`${columns}\r\nTraoré;Awa;;${customer('00')};5000;OperatorA\r\n`)
  expect(body['data'].warnings).toEqual([
    { field: 'file', message: 'has a column that was not read: prénom (column B)' },
    { field: 'file', message: 'has a column that was not read: note (column C)' },
  ])
})

describe('a refusal names the line and the column, and leaves nothing behind', () => {
  const refusedFor = async (file: File, texts?: Texts): Promise<RestAnswer['body']> => {
    const before = await written()
    const { status, body } = await send(file, texts)
    expect(status).toBe(400)
    expect(await written()).toEqual(before)
    return body
  }

  test('every problem, in the words of the table', async () => {
    const { message, errors } = await refusedFor(
      table('Awa;70000001;5000', ';123;5,5;OperatorX', '', 'Moussa;70000002;999'),
    )
    const shown = { account: '123', amount: '5,5', payment_method: 'OperatorX' }
    expect(errors).toEqual([
      { field: 'lines[3].name', message: 'is required (column A, nom)', row: shown },
      {
        field: 'lines[3].account',
        message: 'must be a mobile number in Mali (column B, numéro)',
        row: shown,
      },
      {
        field: 'lines[3].amount',
        message: expect.stringMatching(/^must be whole francs, .* \(column C, montant\)$/) as string,
        row: shown,
      },
      {
        field: 'lines[3].payment_method',
        message: expect.stringMatching(/^must be one of .* \(column D, opérateur\)$/) as string,
        row: shown,
      },
      {
        field: 'lines[5].amount',
        message: 'must be at least 1000 XOF (column C, montant)',
        row: { name: 'Moussa', account: '70000002', amount: '999' },
      },
    ])
    expect(message).toBe('lines[3].name is required (column A, nom).')
  })

  test('problems that only the service can find', async () => {
    const { errors } = await refusedFor(table('Awa;70000001;5000', 'Fanta;20010001;5000'))
    expect(errors).toEqual([
      {
        field: 'lines[3].payment_method',
        message: 'is required: the number suggests no operator (column D, opérateur)',
        row: { name: 'Fanta', account: '20010001', amount: '5000' },
      },
    ])
  })

  test('the first hundred problems', async () => {
    const { errors } = await refusedFor(table(...Array.from({ length: 300 }, () => 'Awa;70000001;5')))
    expect(errors).toHaveLength(100)
    expect(errors.at(-1).field).toBe('lines[101].amount')
  })

  test.each<[string, File, Texts, string]>([
    [
      'a cell that holds a formula',
      Buffer.from(workbook({ rows: titles + line(2, '<c><f>2*B2</f><v>5000</v></c>') })),
      {},
      'lines[2].amount',
    ],
    ['an unknown method', people, { payment_method: 'OperatorX' }, 'payment_method'],
    ['a bank', people, { payment_method: 'BankTransfer' }, 'payment_method'],
    ['another currency', people, { currency: 'EUR' }, 'currency'],
    ['a title that is too long', people, { title: 'x'.repeat(201) }, 'title'],
    ['titles without a meaning', 'a;b;c\r\n1;2;3', {}, 'file'],
    ['a file that is no table', Buffer.from('89504e470d0a1a0a0000000d', 'hex'), {}, 'file'],
    [
      'one recipient too many',
      table(...Array.from({ length: 10_001 }, () => 'Awa;70000001;5000')),
      {},
      'file',
    ],
  ])('%s', async (_what, file, texts, field) => {
    const { errors } = await refusedFor(file, texts)
    expect(errors[0].field).toBe(field)
  })
})

describe('before the file is read', () => {
  test('401, 403 without the scope bulk_pay, 405, 413, 415', async () => {
    expect((await send(people, {}, { token: 'x' })).status).toBe(401)
    const { body } = await fixture.rest('POST', '/auth', {
      headers: { 'X-API-Key': merchant.apiKey, 'X-API-Secret': merchant.apiSecret },
      body: { scopes: ['payout', 'balance'] },
    })
    const refused = await send(people, {}, { token: body['data'].token })
    expect([refused.status, refused.body['required_scopes']]).toEqual([403, ['bulk_pay']])
    const got = await fixture.rest('GET', '/bulk/batches/import', { token: merchant.token })
    expect([got.status, got.headers.get('Allow')]).toEqual([405, 'POST'])
    expect((await send('a'.repeat(6 * 1_024 * 1_024))).status).toBe(413)
    const json = await call(merchant, 'POST', '/import', { recipients: [] })
    expect([json.status, json.body['message']]).toEqual([415, expect.stringContaining('multipart/form-data')])
  })

  test('an Idempotency-Key: the same file makes one batch, another is refused', async () => {
    const headers = { 'Idempotency-Key': 'august' }
    const first = await send(people, {}, { headers })
    const before = await written()
    const again = await send(people, {}, { headers })
    expect([again.status, again.body['data'], again.headers.get('Idempotent-Replayed')]).toEqual([
      201,
      first.body['data'],
      'true',
    ])
    const other = await send(table('Awa;70000001;5001'), {}, { headers })
    expect(other.status).toBe(400)
    expect(await written()).toEqual(before)
  })

  test('two files of a merchant at a time; a third is 429 until one has ended', async () => {
    const busy = await shop(0)
    const sendings = Array.from({ length: 3 }, () => {
      const sending = request(`${fixture.url}${restPrefix}/bulk/batches/import`, {
        method: 'POST',
        headers: { Authorization: `Bearer ${busy.token}`, 'Content-Type': 'multipart/form-data; boundary=b' },
        agent: false,
      })
      sending.on('error', () => {})
      sending.write('--b\r\n')
      const answered = (once(sending, 'response') as Promise<[IncomingMessage]>).then(([response]) => {
        response.resume()
        return [response.statusCode, response.headers['retry-after']]
      })
      return { sending, answered }
    })
    expect(await Promise.race(sendings.map(({ answered }) => answered))).toEqual([429, '1'])
    for (const { sending } of sendings) sending.end('--b--')
    const statuses = await Promise.all(sendings.map(async ({ answered }) => (await answered)[0]))
    expect(statuses.toSorted((a = 0, b = 0) => Number(a) - Number(b))).toEqual([400, 400, 429])
    expect((await send(people, {}, { token: busy.token })).status).toBe(201)
  })
})

describe('a file of 10,000', () => {
  const lines = Array.from(
    { length: 10_000 },
    (_, n) => `Personne ${n};${70_000_000 + n};${1_000 + n};OperatorA`,
  )
  const rows = lines.map((each, n) => {
    const [name = '', account, amount] = each.split(';')
    return `<row r="${n + 2}">${text(name)}<c><v>${account}</v></c><c><v>${amount}</v></c></row>`
  })
  test.each<[string, File]>([
    ['CSV', table(...lines)],
    ['XLSX', Buffer.from(workbook({ rows: titles + rows.join('') }))],
  ])('%s: to the franc', async (_what, file) => {
    const { status, body } = await send(file)
    expect(status).toBe(201)
    expect(body['data']).toMatchObject({ recipient_count: 10_000, total_amount: 59_995_000 })
  })
})

describe('templates', () => {
  const fetchTemplate = (
    kind: string,
    { token = merchant.token, language = 'en', method = 'GET' }: Texts = {},
  ): Promise<Response> =>
    fetch(`${fixture.url}${restPrefix}/bulk/batches/template.${kind}`, {
      method,
      headers: { Authorization: `Bearer ${token}`, 'Accept-Language': language },
    })

  test.each([
    ['csv', 'en'],
    ['csv', 'fr'],
    ['xlsx', 'en'],
    ['xlsx', 'fr-ML,fr;q=0.9'],
    ['csv', 'bm,fr;q=0.9,en;q=0.5'],
  ])('the template %s in %s can be sent', async (kind, language) => {
    const response = await fetchTemplate(kind, { language })
    expect(response.headers.get('Content-Disposition')).toBe(`attachment; filename="template.${kind}"`)
    const { status, body } = await send(await response.blob())
    expect(status).toBe(201)
    expect(await recipientsOf(body['data'].id)).toEqual([both[0], { ...both[1], name: 'Moussa Coulibaly' }])
  })

  test('when it is filled in', async () => {
    const sent = await (await fetchTemplate('csv', { language: 'fr' })).text()
    expect(sent.split('\r\n')[0]).toBe('nom;numéro;montant;opérateur')
    const filled = sent.replace(/Awa Traoré.*/s, 'Fanta;70000009;9000;OperatorD\r\n')
    const { body } = await send(filled)
    expect(await recipientsOf(body['data'].id)).toEqual([
      { name: 'Fanta', account: '+22370000009', amount: 9_000, method: 'OperatorD' },
    ])
  })

  test('401, 405, 404, and a HEAD request', async () => {
    expect((await fetchTemplate('csv', { token: 'x' })).status).toBe(401)
    const posted = await fetchTemplate('csv', { method: 'POST' })
    expect([posted.status, posted.headers.get('Allow')]).toEqual([405, 'GET, HEAD'])
    expect((await fetchTemplate('xls')).status).toBe(400)
    const head = await fetchTemplate('xlsx', { method: 'HEAD' })
    expect([head.status, (await head.blob()).size]).toEqual([200, 0])
  })
})

describe('recipients.csv', () => {
  const lines = async (owner: TestMerchant, search: string): Promise<[number, string[][]]> => {
    const response = await fetch(`${fixture.url}${restPrefix}/exports/recipients.csv${search}`, {
      headers: { Authorization: `Bearer ${owner.token}` },
    })
    const all = (await response.text()).split('\r\n')
    return [response.status, all.map((each) => each.split(','))]
  }

  test('the results of the recipients, filtered by status', async () => {
    const id = await draft(merchant, [row('00', { name: '=Awa' }), row('03', { name: 'Moussa' })])
    await processBatch(merchant, id)
    await ended(merchant, id)
    const [status, [head = [], ...rows]] = await lines(merchant, `?batch_id=${id}`)
    expect(status).toBe(200)
    const cells = rows.slice(0, 2).map((each) => Object.fromEntries(head.map((name, n) => [name, each[n]])))
    const of = { batch_id: String(id), amount: '2000', currency: 'XOF', payment_method: 'OperatorA' }
    expect(cells).toMatchObject([
      { ...of, name: "'=Awa", status: 'success', settled_amount: '2000', failure_reason: '' },
      { ...of, name: 'Moussa', status: 'failed', failure_reason: expect.stringMatching(/./) as string },
    ])
    const [, failed] = await lines(merchant, `?batch_id=${id}&status=failed`)
    expect(failed.slice(1, -1).map((each) => each[2])).toEqual(['Moussa'])
  })

  test('404 a batch of another merchant, or an unknown one; 400 without one', async () => {
    const id = await draft(merchant, [row()])
    const other = await shop(0)
    expect((await lines(other, `?batch_id=${id}`))[0]).toBe(404)
    expect((await lines(merchant, '?batch_id=999999999'))[0]).toBe(404)
    expect((await lines(merchant, ''))[0]).toBe(400)
    expect((await lines(merchant, `?batch_id=${id}&status=lost`))[0]).toBe(400)
  })
})
