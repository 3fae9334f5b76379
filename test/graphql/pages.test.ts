import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { claimBounds } from '../../src/requests/store.ts'
import { jobBounds } from '../../src/resources/jobs.ts'
import { limits } from '../../src/shared/limits.ts'
import { openLimits, startTestApp, type TestApp } from '../kit/app.ts'
import {
  amounts,
  balanceOf,
  type DashboardShop,
  openDashboardShop,
  openReceiver,
  type PageName,
  pageNames,
  queryOf,
  readPage,
  variablesOf,
} from '../kit/dashboard-pages.ts'
import { countingStatements } from '../kit/statement-counts.ts'
import { useBounds } from '../kit/use-bounds.ts'

// The eight pages of a dashboard: each is one request, shows the true numbers, and takes the same number of
// statements for one row and for fifty.

useBounds(claimBounds, { operatorQueryIntervalMs: 100 })
useBounds(jobBounds, { resolveEveryMs: 200, payoutsDueEveryMs: 200 })

let service: TestApp
let receiver: Awaited<ReturnType<typeof openReceiver>>
let shops: Record<'one' | 'fifty', DashboardShop>
beforeAll(async () => {
  service = await startTestApp(openLimits)
  receiver = await openReceiver()
  shops = {
    one: await openDashboardShop(service, receiver.url, 1),
    fifty: await openDashboardShop(service, receiver.url, 50),
  }
})
afterAll(async () => {
  await service.close()
  receiver.close()
})

/** Pages have every shape: each check knows the one that it expects. */
type Page = ReturnType<typeof JSON.parse>

async function ask(name: PageName, shop: DashboardShop) {
  const request = { query: readPage(name), operationName: queryOf(name), variables: variablesOf(shop)[name] }
  const response = await fetch(`${service.url}/graphql`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${shop.owner.token}` },
    body: JSON.stringify(request),
  })
  const answer = (await response.json()) as { data: Page; errors?: unknown; extensions: Page }
  expect(answer.errors).toBeUndefined()
  return answer
}

/** The statements of each page, and its cost for pages of the size in `variablesOf`: a contract. */
const contract: Record<PageName, { statements: number; cost: number }> = {
  home: { statements: 5, cost: 59 },
  batches: { statements: 5, cost: 2200 },
  approvals: { statements: 10, cost: 900 },
  'live-payment': { statements: 3, cost: 52 },
  links: { statements: 4, cost: 600 },
  team: { statements: 5, cost: 303 },
  'webhook-log': { statements: 3, cost: 4505 },
  statement: { statements: 9, cost: 603 },
}

const shows: Record<PageName, (page: Page, shop: DashboardShop) => void | Promise<void>> = {
  home: ({ me, balance, transactions, paymentStats, operators }, shop) => {
    const { rows, refunds, waiting } = shop
    const { paidIn: _paidIn, ...balances } = balanceOf(shop)
    expect(me).toMatchObject({ member: { role: 'OWNER' }, merchant: { name: 'Boutique' } })
    expect(balance).toMatchObject({ ...balances, receivable: 0 })
    expect(transactions.totalCount).toBe(2 * rows + 1 + refunds + waiting)
    expect(transactions.nodes[0]).toMatchObject({ reference: `gift-${waiting}`, amount: amounts.waiting })
    const paid = 4 * rows + 1 + refunds
    const settledAmount =
      rows * (amounts.sale + amounts.byLink + amounts.payout + amounts.recipient) +
      amounts.big +
      refunds * amounts.refund
    expect(paymentStats.total).toEqual({
      count: paid + 2 * waiting + 1,
      amount: settledAmount + amounts.recipient + 2 * waiting * amounts.waiting,
      settledAmount,
      successRate: paid / (paid + 1),
    })
    const groups = paymentStats.buckets.flatMap(({ groups: each }: Page) => each)
    const paidOf = (status: string) => groups.filter((group: Page) => group.status === status)
    expect(sum(paidOf('SUCCESS'), 'count')).toBe(paid)
    expect(sum(paidOf('FAILED'), 'amount')).toBe(amounts.recipient)
    expect(sum(paymentStats.buckets, 'amount')).toBe(paymentStats.total.amount)
    expect(operators).toHaveLength(4)
    expect(operators[0]).toMatchObject({ collect: 'OPERATIONAL', disburse: 'OPERATIONAL' })
  },

  batches: ({ batches }, { rows, waiting }) => {
    expect(batches.totalCount).toBe(rows + waiting)
    const recipients = rows + 1 + (rows - 1) * rows
    expect(batches.totalAmount).toBe(recipients * amounts.recipient + waiting * amounts.waiting)
    const salaries = batches.nodes.find(({ title }: Page) => title === 'Salaries')
    expect(salaries).toMatchObject({
      status: 'PARTIALLY_COMPLETED',
      recipientCount: rows + 1,
      succeededCount: rows,
      failedCount: 1,
      paidAmount: rows * amounts.recipient,
      createdBy: { kind: 'MEMBER', name: `moussa-${rows}` },
    })
    expect(salaries.recipients.totalCount).toBe(rows + 1)
    expect(salaries.recipients.nodes[0]).toMatchObject({
      name: 'Nameless',
      status: 'FAILED',
      failure: { reason: 'PAYEE_NOT_FOUND', who: 'MERCHANT', again: 'NO' },
    })
    expect(salaries.recipients.nodes[1]).toMatchObject({ settledAmount: amounts.recipient, failure: null })
  },

  approvals: ({ approvalsWaiting }, { rows, waiting }) => {
    expect(approvalsWaiting.totalCount).toBe(3 * waiting + 1)
    const kinds = (type: string) => approvalsWaiting.nodes.filter((node: Page) => typeOf(node) === type)
    expect(sum(kinds('Payout'), 'amount')).toBe(waiting * amounts.waiting)
    expect(sum(kinds('Batch'), 'totalAmount')).toBe(waiting * amounts.waiting)
    expect(kinds('DepositApproval')[0].transaction).toMatchObject({ reference: 'gift-1' })
    expect(kinds('SettingsChange')).toMatchObject([{ approvalThreshold: 2 * amounts.waiting }])
    for (const { __typename: type, approval } of approvalsWaiting.nodes) {
      const name = type === 'SettingsChange' ? `fanta-${waiting}` : `moussa-${rows}`
      expect(approval).toMatchObject({
        requestedBy: { kind: 'MEMBER', name },
        status: 'PENDING',
        required: 1,
      })
      expect(approval).toMatchObject({ canApprove: true, cannotApproveBecause: null, approvedBy: [] })
      expect(Date.parse(approval.expiresAt) - Date.parse(approval.requestedAt)).toBe(
        limits.approvalLifetimeMs,
      )
    }
  },

  'live-payment': async ({ asOfSequence, transaction }, { refunds, merchant }) => {
    const { rows } = await service.database.owner.query<{ head: number }>(
      'SELECT max(position)::int AS head FROM event WHERE merchant_id = $1',
      [merchant.merchantId],
    )
    expect(asOfSequence).toBe(rows[0]?.head)
    expect(transaction).toMatchObject({ amount: amounts.big, settledAmount: amounts.big, status: 'SUCCESS' })
    const told = transaction.timeline.map(({ kind, status }: Page) => (status ? `${kind} ${status}` : kind))
    const times = (entry: string) => told.filter((each: string) => each === entry).length
    expect(told[0]).toBe('REQUESTED')
    expect(times('STATUS_CHANGED SUCCESS')).toBe(1)
    expect([times('OPERATOR_ASKED'), times('WEBHOOK_SENT')]).toEqual([1, 1])
    expect(times('REFUNDED')).toBe(refunds)
  },

  links: ({ paymentLinks }, { rows }) => {
    expect(paymentLinks.totalCount).toBe(rows)
    expect(paymentLinks.nodes).toHaveLength(rows)
    for (const link of paymentLinks.nodes) {
      expect(link).toMatchObject({
        amount: amounts.byLink,
        usageCount: 1,
        availability: 'OPEN',
        openCount: 0,
      })
      const figures = { amount: amounts.byLink, settledAmount: amounts.byLink, successRate: 1 }
      expect(link.stats).toMatchObject({ count: 1, ...figures })
      expect(link.payments).toMatchObject({ totalCount: 1, totalAmount: amounts.byLink })
      expect(link.payments.nodes).toMatchObject([{ status: 'SUCCESS', amount: amounts.byLink }])
    }
  },

  team: ({ me, members, apiKeys, sessions }, { rows, owner }) => {
    expect(me.member.role).toBe('OWNER')
    expect(members.totalCount).toBe(rows + 3)
    expect(members.nodes.map(({ role }: Page) => role).toSorted()).toEqual(
      ['FINANCE', 'OWNER', 'OWNER', ...Array.from({ length: rows }, () => 'VIEWER')].toSorted(),
    )
    expect(apiKeys.totalCount).toBe(rows + 1)
    expect(apiKeys.nodes[0]).toMatchObject({ name: `Till ${rows}`, scopes: ['BALANCE'], isActive: true })
    expect(apiKeys.nodes[0].issuedTo.name).toBe(`awa-${rows}`)
    expect(sessions).toHaveLength(Math.min(rows, 20))
    const current = sessions.filter(({ isCurrent }: Page) => isCurrent)
    expect(current).toMatchObject([{ id: btoa(`Session:${owner.sessionId}`) }])
  },

  'webhook-log': ({ webhooks }, { rows }) => {
    expect(webhooks.totalCount).toBe(1)
    const [{ deliveries, ...endpoint }] = webhooks.nodes
    expect(endpoint).toMatchObject({ url: receiver.url, events: ['PAYMENT_RECEIVED'], failureCount: 0 })
    expect(deliveries.totalCount).toBe(rows + 1)
    expect(deliveries.nodes).toHaveLength(Math.min(rows + 1, 50))
    for (const { status, attempts, event, sequence } of deliveries.nodes) {
      expect(status).toBe('DELIVERED')
      expect(attempts).toMatchObject([{ nth: 1, statusCode: 200, error: null, answer: 'thanks' }])
      expect(event).toMatchObject({ type: 'PAYMENT_RECEIVED', sequence })
    }
    const paid = deliveries.nodes.map(({ event }: Page) => event.data.amount)
    expect(paid.toSorted((a: number, b: number) => a - b)).toEqual([
      ...Array.from({ length: paid.length - 1 }, () => amounts.sale),
      amounts.big,
    ])
  },

  statement: ({ statement }, shop) => {
    const { rows, refunds, waiting } = shop
    const { paidIn, ...balances } = balanceOf(shop)
    expect(statement.opening).toMatchObject({ balance: paidIn, available: paidIn, reserved: 0 })
    expect(statement.closing).toMatchObject(balances)
    expect(statement).toMatchObject({ totalIn: 0, totalOut: paidIn - balances.balance })
    const { totalCount, nodes } = statement.lines
    expect(totalCount).toBe(2 * refunds + 3 * rows + 2 + 3 * waiting)
    expect(nodes).toHaveLength(Math.min(totalCount, 100))
    let { balance, available } = statement.opening
    for (const { availableChange, reservedChange, balanceAfter, subject, counterparty } of nodes) {
      available += availableChange
      balance += availableChange + reservedChange
      expect(balanceAfter).toEqual({ balance, available })
      if (typeOf(subject) !== 'Batch') expect(counterparty.phone).toMatch(/^\+223700[03]0001$/)
    }
    const kinds = nodes.map(({ subject }: Page) => typeOf(subject))
    expect(new Set(kinds)).toEqual(new Set(['Transaction', 'Payout', 'Batch', 'BatchRecipient']))
    expect(nodes.map(({ reference }: Page) => reference)).toContain('rent-1')
  },
}

const typeOf = ({ __typename: type }: Page): string => type

const sum = (things: Page[], field: string): number =>
  things.reduce((total, thing) => total + thing[field], 0)

const sizes = pageNames.flatMap((name) => [
  { name, size: 'one' as const },
  { name, size: 'fifty' as const },
])

describe('one request', () => {
  test.each(sizes)('for the page $name of $size shows its numbers', async ({ name, size }) => {
    const { data } = await ask(name, shops[size])
    expect(Object.keys(data)).not.toEqual([])
    await shows[name](data, shops[size])
  })

  test.each(sizes)('for the page $name of $size takes the pinned statements and cost', async (given) => {
    const { answer, seen } = await countingStatements(() => ask(given.name, shops[given.size]))
    const { requested, limit } = answer.extensions.cost
    expect({ statements: seen.length, cost: requested }).toEqual(contract[given.name])
    // Half of the limit is left for what a dashboard adds to a page.
    expect(requested).toBeLessThan(limit / 2)
  })
})
