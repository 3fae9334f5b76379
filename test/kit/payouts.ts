import { fundMerchant } from '../../src/resources/merchants/fund.ts'
import type { RestAnswer, TestMerchant } from './app.ts'
import { customer, type Fixture } from './fixture.ts'

export const day = 24 * 3_600_000

/** Actions and checks of the tests of payouts. */
export function payoutsOn(fixture: Fixture) {
  const { owner } = fixture.database
  return {
    /** Makes a merchant with money. */
    shop: async (funds = 1_000_000, approval?: { threshold: number }): Promise<TestMerchant> => {
      const merchant = await fixture.merchant()
      if (funds > 0) await fundMerchant(fixture.app.services, merchant.merchantId, { amount: BigInt(funds) })
      if (approval) {
        await owner.query(
          'UPDATE merchant SET payouts_require_approval = true, approval_threshold = $2 WHERE id = $1',
          [merchant.merchantId, approval.threshold],
        )
      }
      return merchant
    },
    /** `POST /payouts`: 5,000 XOF at once by OperatorA, unless `body` says otherwise. */
    payOut: (merchant: TestMerchant, body: object = {}, headers: Record<string, string> = {}) =>
      fixture.rest('POST', '/payouts', {
        token: merchant.token,
        headers,
        body: {
          amount: 5_000,
          ...('beneficiary_id' in body
            ? {}
            : { payment_method: 'OperatorA', destination_phone: customer('00') }),
          ...body,
        },
      }),
    /** The service's time in so many milliseconds. */
    ahead: (ms: number) => new Date(fixture.app.services.clock.now().getTime() + ms).toISOString(),
    money: async (merchant: TestMerchant): Promise<{ available: number; reserved: number }> => {
      const { body } = await fixture.rest('GET', '/balance', { token: merchant.token })
      return { available: body['data'].available, reserved: body['data'].reserved }
    },
    record: async (merchant: TestMerchant, id: unknown): Promise<Record<string, unknown>> => {
      const answer = await fixture.rest('GET', `/payouts/${String(id)}`, { token: merchant.token })
      return answer.body['data']
    },
    cancel: async (merchant: TestMerchant, id: unknown): Promise<Record<string, unknown>> => {
      const { body } = await fixture.graphql(
        `mutation ($id: ID!) { cancelPayout(id: $id) { __typename ... on Payout { databaseId status }
          ... on Refusal { code message } } }`,
        { id: String(id) },
        merchant.token,
      )
      return body['data'].cancelPayout
    },
    /** The types of the events of a payout, in order. */
    emitted: async (id: unknown): Promise<string[]> => {
      const { rows } = await owner.query<{ type: string }>(
        `SELECT type FROM event WHERE data->>'payout_id' = $1 ORDER BY id`,
        [String(id)],
      )
      return rows.map(({ type }) => type)
    },
    /** Counts the rows of all tables that the creation of a payout writes. */
    written: async (merchant: TestMerchant): Promise<unknown> => {
      const { rows } = await owner.query<object>(
        `SELECT (SELECT count(*)::int FROM payout WHERE merchant_id = $1) AS payouts,
           (SELECT count(*)::int FROM ledger_entry WHERE merchant_id = $1 AND step = 'reserve') AS reserves,
           (SELECT count(*)::int FROM event WHERE merchant_id = $1 AND type = 'payout_pending') AS emitted,
           (SELECT count(*)::int FROM operator_request WHERE merchant_id = $1) AS requests`,
        [merchant.merchantId],
      )
      return rows[0]
    },
  }
}

/** The fields that a refusal names. */
export function fieldsOf({ body }: RestAnswer): string[] {
  return (body['errors'] ?? []).map(({ field }: { field: string }) => field)
}
