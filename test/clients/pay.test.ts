import { afterAll, describe, expect, onTestFinished, test } from 'vitest'
import { startTestApp } from '../kit/app.ts'
import { cannotRun, type MerchantLanguage, languages, openClients } from '../kit/languages.ts'

// The HTTP clients and the JSON of other languages, as they come: each program signs in, pays, polls, and
// verifies the webhook of its payment.

const service = await startTestApp()
afterAll(() => service.close())

const programs: Readonly<Record<MerchantLanguage['name'], string>> = {
  Java: 'Pay.java',
  PHP: 'pay.php',
  Python: 'pay.py',
}

describe.each(languages)('a client in $name', (language) => {
  test.skipIf(cannotRun(language))(
    'pays once, reads each refusal, and verifies the webhook of its payment',
    async () => {
      const shop = await service.merchant()
      const clients = await openClients(language)
      onTestFinished(() => clients.remove())
      const said = await clients.run(programs[language.name], {
        API: service.url,
        API_KEY: shop.apiKey,
        API_SECRET: shop.apiSecret,
      })
      const reference = `café 12 ${language.name.toLowerCase()}`
      const { transactions } = (await service.rest('GET', '/transactions', shop)).body['data']
      expect(transactions).toEqual([expect.objectContaining({ reference, amount: 2500, status: 'success' })])
      const [{ id }] = transactions
      const { request_data: asked } = (await service.rest('GET', `/transactions/${id}`, shop)).body['data']
      expect(asked).toMatchObject({ description: 'Épicerie Traoré : thé, œufs à 2 500 F' })
      expect(said).toEqual({
        reference,
        asked: 202,
        replayed: [202, 'true', reference],
        repeated: { status: 409, code: 'DUPLICATE_REFERENCE' },
        existing: id,
        too_small: { status: 400, code: 'INVALID_INPUT' },
        as_text: { status: 400, code: 'INVALID_INPUT' },
        no_token: { status: 401, code: 'UNAUTHENTICATED' },
        state: 'success',
        event: {
          id: expect.stringMatching(/^evt_\d+$/),
          type: 'payment_received',
          header: 'payment_received',
          transaction: id,
          reference,
          amount: 2500,
        },
        altered_is_refused: true,
        rewritten_is_refused: true,
      })
    },
  )
})
