import { expect } from 'vitest'
import { fundMerchant } from '../../src/resources/merchants/fund.ts'
import type { TestApp, TestMerchant } from './app.ts'
import { eventually } from './eventually.ts'
import { customer } from './fixture.ts'
import { makePerson, type PasswordMember } from './people.ts'

// A merchant whose members approve the payments of each other.

export interface Team {
  shop: TestMerchant
  /** The member who requests. */
  clerk: PasswordMember
  /** The member who approves. */
  boss: PasswordMember
}

/** Makes a merchant with money, two members, and approvals from 2,000 francs. */
export async function team(service: TestApp, required = 1): Promise<Team> {
  const shop = await service.merchant('Boulangerie du Sahel')
  await fundMerchant(service.app.services, shop.merchantId, { amount: 1_000_000 })
  await service.database.owner.query(
    `UPDATE merchant SET payouts_require_approval = true, approvals_cover_deposits = true,
       approval_threshold = 2000, approvals_required = $2 WHERE id = $1`,
    [shop.merchantId, required],
  )
  const clerk = await makePerson(service, shop.merchantId, { role: 'finance', name: 'Moussa <b>Keïta</b>' })
  const boss = await makePerson(service, shop.merchantId, { name: 'Awa Traoré' })
  return { shop, clerk, boss }
}

/** Requests a payout as a member. @returns its id in REST */
export async function payOut(
  service: TestApp,
  { token }: PasswordMember,
  amount: number,
  more: object = {},
): Promise<number> {
  const body = { amount, destination_phone: customer('00'), payment_method: 'OperatorA', ...more }
  const answer = await service.rest('POST', '/payouts', { token, body })
  expect([answer.status, answer.body.data.approval]).toEqual([201, 'pending'])
  return answer.body.data.id
}

/** Requests the payments of a batch as a member. @returns its id in REST */
export async function batch(
  service: TestApp,
  { token }: PasswordMember,
  title: string,
  recipients: object[],
): Promise<number> {
  const made = await service.rest('POST', '/bulk/batches', { token, body: { title } })
  const { id } = made.body.data
  await service.rest('POST', `/bulk/batches/${id}/recipients`, { token, body: { recipients } })
  const asked = await service.rest('POST', `/bulk/batches/${id}/process`, { token })
  expect(asked.body.success).toBe(true)
  return id
}

/** Approves a payout as a member, without a page. */
export async function approvePayout(service: TestApp, { token }: PasswordMember, id: number): Promise<void> {
  const query = `{ payout(id: "${id}") { approval { digest } } }`
  const { digest } = (await service.graphql(query, {}, token)).body['data'].payout.approval
  const approval = `mutation { approvePayout(id: "${id}", digest: "${digest}") { __typename } }`
  const { body } = await service.graphql(approval, {}, token)
  expect(body['data'].approvePayout.__typename).toBe('Payout')
}

/** Waits until a payment has a status. */
export async function becomes(
  service: TestApp,
  table: 'payout' | 'batch' | 'transaction',
  id: number,
  status: string,
): Promise<void> {
  await eventually(async () => {
    const { rows } = await service.database.owner.query(`SELECT status FROM ${table} WHERE id = $1`, [id])
    expect(rows).toEqual([{ status }])
  })
}
