import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { eventually } from '../kit/eventually.ts'
import { cannotLook, openBrowser, type TestBrowser } from '../kit/browser.ts'
import { startTestApp, type TestApp, type TestMerchant } from '../kit/app.ts'
import { eventuallyGives } from '../kit/eventually.ts'

/** A person with a small phone and no JavaScript, in real Chromium. */
let service: TestApp
let shop: TestMerchant
let browser: TestBrowser
function pay(method: string, phone: string, reference: string, more: object = {}) {
  return service.rest('POST', '/pay', {
    token: shop.token,
    body: {
      amount: 5000,
      customer_phone: phone,
      payment_method: method,
      reference,
      description: 'Commande <b>42</b>',
      return_url: `${service.url}/?paid`,
      cancel_url: `${service.url}/?cancelled`,
      ...more,
    },
  })
}

function stateOf(reference: string, wanted: string): Promise<string> {
  return eventuallyGives(
    async () => (await service.rest('GET', `/payment/status/${reference}`)).body.state as string,
    (state) => state === wanted,
  )
}

describe.skipIf(cannotLook)('on a small phone, without JavaScript', () => {
  beforeAll(async () => {
    ;[service, browser] = await Promise.all([startTestApp(), openBrowser({ width: 340, javaScript: false })])
    shop = await service.merchant()
  })
  afterAll(async () => {
    await browser.close()
    await service.close()
  })

  test('a person confirms the prompt on the phone page with the right PIN', async () => {
    await pay('OperatorA', '70090000', 'person-1')
    const page = await browser.context.newPage()
    await page.goto(`${service.simulator.url}/phone/+22370090000`)
    expect(await page.locator('html').getAttribute('lang')).toBe('fr')
    // French groups digits by a narrow no-break space.
    const words = (await page.textContent('body'))?.replace(/\s/g, ' ')
    expect(words).toContain('5 000')
    expect(words).toContain('Commande <b>42</b>')
    await page.fill('input[name=pin]', '0000')
    await page.click('button[value=confirm]')
    expect(await stateOf('person-1', 'success')).toBe('success')
    await page.close()
  })

  test('a person refuses the prompt: the payment fails', async () => {
    await pay('OperatorD', '70090001', 'person-2')
    const page = await browser.context.newPage()
    await page.goto(`${service.simulator.url}/phone/+22370090001`)
    await page.click('button[value=refuse]')
    expect(await stateOf('person-2', 'failed')).toBe('failed')
    await page.close()
  })

  test('a person pays on the hosted checkout page and comes back to the shop', async () => {
    const { body } = await pay('OperatorB', '70090002', 'person-3')
    const page = await browser.context.newPage()
    await page.goto(body.data.payment_url)
    const overflow = await page
      .locator('body')
      .evaluate((element) => element.scrollWidth)
      .catch(() => 0)
    expect(overflow).toBeLessThanOrEqual(340)
    await page.fill('input[name=pin]', '0000')
    await page.click('button[value=confirm]')
    expect(page.url()).toBe(`${service.url}/?paid`)
    expect(await page.textContent('h1')).toBe('Paiements marchands')
    expect(await stateOf('person-3', 'success')).toBe('success')
    await page.close()
  })

  test('the hosted page without a return address leads to the receipt, or to the failure', async () => {
    const alone = { return_url: null, cancel_url: null }
    const page = await browser.context.newPage()
    const answer = async (phone: string, reference: string, value: string, title: string) => {
      const { body } = await pay('OperatorB', phone, reference, alone)
      await page.goto(body.data.payment_url)
      await page.fill('input[name=pin]', '0000')
      await page.click(`button[value=${value}]`)
      await page.waitForURL(`${service.url}/r/**`)
      // The operator's report may come a moment after its customer.
      const titled = async () => {
        await page.reload()
        return page.textContent('h1')
      }
      await eventually(async () => expect(await titled()).toBe(title))
      return page.locator('main').innerText()
    }
    const receipt = await answer('70090004', 'person-5', 'confirm', 'Paiement effectué')
    for (const part of ['Commande <b>42</b>', 'person-5', '+223\u{a0}70\u{a0}••\u{a0}••\u{a0}04'])
      expect(receipt).toContain(part)
    expect(await answer('70090005', 'person-6', 'cancel', 'Le paiement n’a pas abouti')).toContain(
      'Vous avez refusé ce paiement.',
    )
    await page.close()
  })

  test('a person cancels on the hosted checkout page: the payment fails', async () => {
    const { body } = await pay('OperatorB', '70090003', 'person-4')
    const page = await browser.context.newPage()
    await page.goto(`${body.data.payment_url}?lang=en`)
    await page.click('button[value=cancel]')
    expect(page.url()).toBe(`${service.url}/?cancelled`)
    expect(await stateOf('person-4', 'failed')).toBe('failed')
    await page.close()
  })
})
