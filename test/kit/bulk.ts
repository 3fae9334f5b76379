import { fundMerchant } from '../../src/resources/merchants/fund.ts'
import type { Provider } from '../../src/shared/providers.ts'
import type { RestAnswer, TestMerchant } from './app.ts'
import { eventually } from './eventually.ts'
import { customer, type Fixture } from './fixture.ts'

/** A recipient as REST takes it. */
export interface BatchRow {
  name: string
  account: string
  amount: number
  payment_method?: Provider
}

/** A recipient that is paid at once, or another scenario. */
export function row(scenario = '00', more: Partial<BatchRow> = {}): BatchRow {
  return {
    name: 'Awa Traoré',
    account: customer(scenario),
    amount: 2_000,
    payment_method: 'OperatorA',
    ...more,
  }
}

/** Actions and checks of the tests of bulk pay. */
export function bulkOn(fixture: Fixture) {
  const call = (merchant: TestMerchant, method: string, path: string, body?: object, headers = {}) =>
    fixture.rest(method, `/bulk/batches${path}`, { token: merchant.token, body, headers })
  const summary = async (merchant: TestMerchant, id: unknown) =>
    (await call(merchant, 'GET', `/${String(id)}`)).body['data'] as Record<string, unknown>
  return {
    call,
    summary,
    /** Makes a merchant with money. */
    shop: async (funds = 1_000_000): Promise<TestMerchant> => {
      const merchant = await fixture.merchant()
      if (funds > 0) await fundMerchant(fixture.app.services, merchant.merchantId, { amount: BigInt(funds) })
      return merchant
    },
    /** Makes a draft. @returns its id */
    draft: async (
      merchant: TestMerchant,
      recipients: readonly BatchRow[],
      more: object = {},
    ): Promise<number> => {
      const { status, body } = await call(merchant, 'POST', '', { recipients, ...more })
      if (status !== 201) throw new Error(JSON.stringify(body))
      return body['data'].id as number
    },
    process: (merchant: TestMerchant, id: unknown): Promise<RestAnswer> =>
      call(merchant, 'POST', `/${String(id)}/process`),
    cancel: (merchant: TestMerchant, id: unknown): Promise<RestAnswer> =>
      call(merchant, 'POST', `/${String(id)}/cancel`),
    /** Waits for the end of a batch. @returns its summary */
    ended: (merchant: TestMerchant, id: unknown): Promise<Record<string, unknown>> =>
      eventually(async () => {
        const batch = await summary(merchant, id)
        if (batch['processed_at'] === null) throw new Error(`still ${JSON.stringify(batch)}`)
        return batch
      }),
    money: async (merchant: TestMerchant): Promise<{ available: number; reserved: number }> => {
      const { body } = await fixture.rest('GET', '/balance', { token: merchant.token })
      return { available: body['data'].available, reserved: body['data'].reserved }
    },
    /** The event types of a batch in order; a type that repeats in a row is listed once. */
    emitted: async (id: unknown): Promise<string[]> => {
      const { rows } = await fixture.database.owner.query<{ type: string }>(
        `SELECT type FROM event WHERE data->>'batch_id' = $1 ORDER BY id`,
        [String(id)],
      )
      return rows.map(({ type }) => type).filter((type, place, all) => type !== all[place - 1])
    },
  }
}
