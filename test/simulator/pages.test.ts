import { expect, test } from 'vitest'
import { checkoutClient, gsmaClient, openBench, second, send, word } from '../kit/simulator.ts'

const html = { accept: 'text/html' }
const form = { 'content-type': 'application/x-www-form-urlencoded', 'sec-fetch-site': 'same-origin' }

async function page(url: string, path: string, headers: Record<string, string> = {}): Promise<string> {
  const { body } = await send(url, 'GET', path, { ...html, ...headers })
  // Intl puts unbreakable spaces into amounts.
  return String(body['text']).replaceAll(/[\u00a0\u202f]/g, ' ')
}

async function waitingId(bench: Awaited<ReturnType<typeof openBench>>, reference: string): Promise<string> {
  const [row] = (await bench.control('GET', `/operations?clientRef=${reference}`)).body as unknown as [
    { id: string },
  ]
  return row.id
}

test('the dashboard shows floats, latest operations and test numbers, in French or English', async () => {
  await using bench = await openBench()
  await (await gsmaClient(bench.url, 'a')).collect('+22370090001')
  const french = await page(bench.url, '/')
  expect(french).toContain('<html lang="fr">')
  for (const part of [
    'OperatorA',
    '50 000 000 F CFA',
    '5 000 F CFA',
    '+223 70 09 00 01',
    '+223 70 51 PP xx',
    'bientôt',
  ]) {
    expect(french).toContain(part)
  }
  expect(await page(bench.url, '/?lang=en')).toContain('Latest operations')
  expect(await page(bench.url, '/', { 'accept-language': 'en-GB,en;q=0.9' })).toContain('<html lang="en">')
  expect(french).not.toMatch(/<script|sandbox-(key|secret)/)
})

test('a person confirms on the telephone with the right PIN and gets a receipt', async () => {
  await using bench = await openBench()
  const c = await gsmaClient(bench.url, 'c')
  const accepted = await c.collect('+22370090001', { reference: 'ASK' })
  expect(await page(bench.url, '/phone')).toContain('href="/phone/+22370090001?lang=fr"')
  const waiting = await page(bench.url, '/phone/+22370090001')
  for (const part of ['Commande 1042', '5 000 F CFA', 'Confirmer', 'Refuser', 'Code secret'])
    expect(waiting).toContain(part)
  expect(waiting).not.toContain('http-equiv="refresh"')
  const id = await waitingId(bench, 'ASK')
  const answer = await send(
    bench.url,
    'POST',
    `/phone/+22370090001/${id}?lang=fr`,
    form,
    'answer=confirm&pin=0000',
  )
  expect([answer.status, answer.headers.get('location')]).toEqual([303, '/phone/+22370090001?lang=fr'])
  const state = await c.get(`/requeststates/${word(accepted.body, 'serverCorrelationId')}`)
  expect(state.body['status']).toBe('completed')
  const after = await page(bench.url, '/phone/+22370090001')
  expect(after).toContain(`Vous avez payé 5 000 F CFA. Réf. ${id}.`)
  expect(after).toContain('995 000 F CFA')
  expect(after).toContain('http-equiv="refresh"')
})

test('three wrong PINs fail the payment; one and two say how many tries are left', async () => {
  await using bench = await openBench()
  const c = await gsmaClient(bench.url, 'c')
  const accepted = await c.collect('+22370090001', { reference: 'PIN' })
  const path = `/phone/+22370090001/${await waitingId(bench, 'PIN')}`
  for (const left of [2, 1]) {
    await send(bench.url, 'POST', path, form, 'answer=confirm&pin=1234')
    expect(await page(bench.url, '/phone/+22370090001')).toContain(
      `Code incorrect. Essais restants : ${left}`,
    )
  }
  await send(bench.url, 'POST', path, form, 'answer=confirm&pin=9999')
  const { body } = await c.get(`/requeststates/${word(accepted.body, 'serverCorrelationId')}`)
  expect(body).toMatchObject({ status: 'failed', error: { errorCode: 'servicingPartyAuthorisationError' } })
  await send(bench.url, 'POST', path, form, 'answer=confirm&pin=0000')
  expect(await page(bench.url, '/phone/+22370090001')).toContain('trois codes incorrects')
})

test('a person refuses a payment and accepts money without a PIN', async () => {
  await using bench = await openBench()
  const a = await gsmaClient(bench.url, 'a')
  const asked = await a.collect('+22370090001', { reference: 'NO' })
  const sent = await a.disburse('+22370090001', { reference: 'YES' })
  await send(bench.url, 'POST', `/phone/+22370090001/${await waitingId(bench, 'NO')}`, form, 'answer=refuse')
  await send(
    bench.url,
    'POST',
    `/phone/+22370090001/${await waitingId(bench, 'YES')}`,
    form,
    'answer=confirm',
  )
  const state = async (id: unknown) => (await a.get(`/requeststates/${String(id)}`)).body
  expect((await state(asked.body['serverCorrelationId']))['error']).toMatchObject({
    errorCode: 'requestDeclined',
  })
  expect((await state(sent.body['serverCorrelationId']))['status']).toBe('completed')
  expect(await page(bench.url, '/phone/+22370090001')).toContain('Vous avez reçu 5 000 F CFA')
})

test('the text that a merchant writes cannot become markup', async () => {
  await using bench = await openBench()
  const c = await gsmaClient(bench.url, 'c')
  await c.collect('+22370090001', { description: `<script>alert("x")</script><img src=x onerror='y'>` })
  const b = checkoutClient(bench.url)
  const session = await b.session('+22370090002', {
    client_reference: '"><script>1</script>',
    error_url: 'http://shop.test/"><script>2</script>',
  })
  const pages = [
    await page(bench.url, '/phone/+22370090001'),
    await page(bench.url, `/c/${word(session.body, 'id')}`),
    await page(bench.url, '/phone?number=%22%3E%3Cscript%3E3'),
    await page(bench.url, '/phone/%3Cscript%3E'),
    await page(bench.url, '/'),
  ]
  for (const shown of pages) expect(shown).not.toMatch(/<script|<img/)
  expect(pages[0]).toContain('&lt;script&gt;alert(&quot;x&quot;)')
  await b.call('POST', `/checkout/sessions/${word(session.body, 'id')}/expire`)
  expect(await page(bench.url, `/c/${word(session.body, 'id')}`)).not.toContain('<script')
})

test('a form from another site is refused and changes nothing', async () => {
  await using bench = await openBench()
  const c = await gsmaClient(bench.url, 'c')
  await c.collect('+22370090001', { reference: 'CROSS' })
  const path = `/phone/+22370090001/${await waitingId(bench, 'CROSS')}`
  const base = { 'content-type': 'application/x-www-form-urlencoded' }
  for (const more of [
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
    { origin: 'http://evil.test' },
  ]) {
    const answer = await send(bench.url, 'POST', path, { ...base, ...more }, 'answer=confirm&pin=0000')
    expect(answer.status).toBe(403)
  }
  expect((await bench.control('GET', '/invariants')).body['pending']).toBe(1)
  const own = await send(bench.url, 'POST', path, { ...base, origin: bench.url }, 'answer=confirm&pin=0000')
  expect(own.status).toBe(303)
})

test('a payer confirms on the hosted page and is sent to the shop', async () => {
  await using bench = await openBench()
  const b = checkoutClient(bench.url)
  const { body } = await b.session()
  const path = `/c/${word(body, 'id')}`
  const shown = await page(bench.url, path)
  for (const part of ['5 000 F CFA', 'REF-B', 'Confirmer', 'Annuler', 'Valable jusqu'])
    expect(shown).toContain(part)
  const wrong = await send(bench.url, 'POST', path, form, 'answer=confirm&phone=76000001&pin=1111')
  expect(wrong.headers.get('location')).toBe(`${path}?lang=fr`)
  expect(await page(bench.url, path)).toContain('Essais restants : 2')
  const empty = await send(bench.url, 'POST', path, form, 'answer=confirm&phone=&pin=0000')
  expect(empty.status).toBe(422)
  const paid = await send(bench.url, 'POST', path, form, 'answer=confirm&phone=76 00 00 01&pin=0000')
  expect([paid.status, paid.headers.get('location')]).toEqual([303, 'http://shop.test/paid'])
  const session = await b.call('GET', `/checkout/sessions/${word(body, 'id')}`)
  expect(session.body).toMatchObject({ payment_status: 'succeeded', payer_mobile: '+22376000001' })
  expect(await page(bench.url, path)).toContain('Paiement effectué')
  expect(await page(bench.url, '/phone/+22376000001')).toContain('Vous avez payé 5 000 F CFA')
})

test('a payer cancels and is sent to the error page; the session is closed', async () => {
  await using bench = await openBench()
  const b = checkoutClient(bench.url)
  const { body } = await b.session('+22370090001')
  const cancelled = await send(bench.url, 'POST', `/c/${word(body, 'id')}`, form, 'answer=cancel')
  expect(cancelled.headers.get('location')).toBe('http://shop.test/failed')
  const session = await b.call('GET', `/checkout/sessions/${word(body, 'id')}`)
  expect(session.body).toMatchObject({ checkout_status: 'expired', payment_status: 'cancelled' })
})

test('the browser is sent to an address with é in the form of a header', async () => {
  await using bench = await openBench()
  const b = checkoutClient(bench.url)
  const more = { success_url: 'http://shop.test/payé', error_url: 'http://shop.test/annulé' }
  const answered = async (answer: string) => {
    const id = word((await b.session(undefined, more)).body, 'id')
    return (await send(bench.url, 'POST', `/c/${id}`, form, answer)).headers.get('location')
  }
  expect(await answered('answer=confirm&phone=76000001&pin=0000')).toBe('http://shop.test/pay%C3%A9')
  expect(await answered('answer=cancel')).toBe('http://shop.test/annul%C3%A9')
})

test('only the payer that the merchant named may pay, and a failed try leaves the session open', async () => {
  await using bench = await openBench()
  const b = checkoutClient(bench.url)
  const locked = word((await b.session('+22370090001')).body, 'id')
  const other = await send(bench.url, 'POST', `/c/${locked}`, form, 'answer=confirm&phone=76000001&pin=0000')
  expect(other.status).toBe(422)
  const open = word((await b.session()).body, 'id')
  await send(bench.url, 'POST', `/c/${open}`, form, 'answer=confirm&phone=70020001&pin=0000')
  const failed = await b.call('GET', `/checkout/sessions/${open}`)
  expect(failed.body).toMatchObject({
    checkout_status: 'open',
    last_payment_error: { code: 'insufficient-funds' },
  })
  const paid = await send(bench.url, 'POST', `/c/${open}`, form, 'answer=confirm&phone=70000001&pin=0000')
  expect(paid.headers.get('location')).toBe('http://shop.test/paid')
})

test('a session that a test number answers itself shows so, then its end', async () => {
  await using bench = await openBench()
  const { body } = await checkoutClient(bench.url).session('+22376123456')
  const path = `/c/${word(body, 'id')}?lang=en`
  expect(await page(bench.url, path)).toContain('answers by itself')
  await bench.advance(3 * second)
  const done = await page(bench.url, path)
  expect(done).toContain('href="http://shop.test/paid"')
  expect(done).toContain('Back to the merchant')
})

test('a typed number opens its telephone; pages that are not there are 404 in words', async () => {
  await using bench = await openBench()
  const found = await send(bench.url, 'GET', '/phone?number=70%2009%2000%2001&lang=en')
  expect(found.headers.get('location')).toBe('/phone/+22370090001?lang=en')
  for (const path of ['/nothing', '/c/cos-none', '/phone/abc']) {
    const answer = await send(bench.url, 'GET', path)
    expect(answer.status).toBe(404)
    expect(answer.body['text']).toContain('n’existe pas')
  }
  const { headers } = await send(bench.url, 'GET', '/')
  expect(headers.get('content-security-policy')).toContain("default-src 'none'")
})
