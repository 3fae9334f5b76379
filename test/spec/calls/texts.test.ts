import { describe, expect, test } from 'vitest'
import { customer, each, openFixture, perOperator } from '../../kit/fixture.ts'

// A text for people holds what people write: line breaks in a description, joined emoji in a title.

const fixture = await openFixture()
const shop = await fixture.merchant()
await fixture.fund(shop, 1_000_000)

const family = '👩‍👩‍👧‍👦'
const description = `Commande 1042\r\n2 sacs de riz ${family.repeat(20)}\r\n\r\nMerci`
const stored = description.replaceAll('\r\n', '\n')

describe('a description with line breaks and joined emoji', () => {
  test('goes to each operator with the payment, and is kept with its lines', async () => {
    const answers = await perOperator(async (operator) => {
      const { transaction_id: id } = await fixture.paid(shop, {
        payment_method: operator,
        customer_phone: customer('00'),
        description,
      })
      const { request_data: asked, status } = await fixture.record(shop, id)
      return [asked['description'], status !== 'failed']
    })
    expect(answers).toEqual(each([stored, true]))
  })

  test('goes to each operator with a deposit', async () => {
    const answers = await perOperator(async (operator) => {
      const { status, body } = await fixture.rest('POST', '/deposit', {
        token: shop.token,
        body: { amount: 1_000, customer_phone: customer('00'), payment_method: operator, description },
      })
      return [status, body['data'].status]
    })
    expect(answers).toEqual(each([200, 'success']))
  })

  test('stands on the page of a link, with a title of emoji', async () => {
    const { status, body } = await fixture.rest('POST', '/payment-links', {
      token: shop.token,
      body: { title: `Famille ${family}`, description },
    })
    expect(status).toBe(201)
    const { url, title, description: kept } = body['data']
    expect([title, kept]).toEqual([`Famille ${family}`, stored])
    const page = await (await fetch(url)).text()
    expect(page).toContain(`Famille ${family}`)
    expect(page).toContain(`<p class="soft keep">${stored}</p>`)
  })
})

test('a beneficiary may have joined emoji in the name', async () => {
  const name = `Awa ${family}`
  const { status, body } = await fixture.rest('POST', '/beneficiaries', {
    token: shop.token,
    body: { name, account: customer('00'), payment_method: 'OperatorA' },
  })
  expect([status, body['data'].name]).toEqual([201, name])
})
