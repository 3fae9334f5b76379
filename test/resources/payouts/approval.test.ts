import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  type ApprovalProblem,
  type Approver,
  type AwaitingPayout,
  approvalDigest,
  type Decision,
  judgeApproval,
} from '../../../src/resources/payouts/approval.ts'
import { approvalStates, payoutStates } from '../../../src/resources/payouts/states.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'

const at = new Date('2026-03-01T10:00:00Z')
const content = {
  merchantId: 7,
  paymentMethod: 'OperatorA',
  destinationPhone: '+22370000001',
  amount: 250_000n,
  scheduledAt: null,
  reference: 'salaries|mars é',
} as const
const payout: AwaitingPayout = {
  ...content,
  status: 'pending',
  approval: 'pending',
  approvalDigest: approvalDigest(content),
  approvalExpiresAt: new Date(at.getTime() + 1),
  maker: 'api_key:12',
}
const owner: Approver = { name: 'member:1', merchantId: 7, role: 'owner' }
const yes: Decision = { to: 'approved', digest: approvalDigest(content), at }

const judge = (
  more: { payout?: Partial<AwaitingPayout>; approver?: Partial<Approver>; decision?: Partial<Decision> } = {},
) =>
  judgeApproval({ ...payout, ...more.payout }, { ...owner, ...more.approver }, { ...yes, ...more.decision })

describe('who may let a payout go', () => {
  test.each(['owner', 'admin', 'finance'] as const)('%s may, and may refuse it', (role) => {
    expect(judge({ approver: { role } })).toBeNull()
    expect(judge({ approver: { role }, decision: { to: 'rejected' } })).toBeNull()
  })

  test.each<[ApprovalProblem, string, Parameters<typeof judge>[0]]>([
    ['NOT_THEIRS', 'a member of another merchant', { approver: { merchantId: 8 } }],
    ['NOT_A_PERSON', 'an API token', { approver: { name: 'api_key:13', role: null } }],
    ['ROLE_MAY_NOT', 'who only reads', { approver: { role: 'viewer' } }],
    ['OWN_PAYOUT', 'who asked for it', { payout: { maker: 'member:1' } }],
    ['NOT_AWAITED', 'of one that is cancelled', { payout: { status: 'cancelled' } }],
    ['NOT_AWAITED', 'of one that nobody waits for', { payout: { approval: 'not_required' } }],
    ['NOT_AWAITED', 'of one that is decided', { payout: { approval: 'rejected' } }],
    ['EXPIRED', 'too late, by a millisecond', { decision: { at: new Date(at.getTime() + 1) } }],
    ['CHANGED', 'of something else than was shown', { decision: { digest: new Uint8Array(32) } }],
    ['CHANGED', 'of what became something else', { payout: { amount: 250_001n } }],
    ['CHANGED', 'of a digest cut short', { decision: { digest: yes.digest.subarray(1) } }],
    ['CHANGED', 'of what has no digest', { payout: { approvalDigest: null } }],
  ])('%s: %s', (problem, _words, more) => {
    expect(judge(more)).toBe(problem)
  })

  test('of all statuses of a payout and its approval, one pair waits', () => {
    const waiting = payoutStates.statuses.flatMap((status) =>
      approvalStates.statuses
        .filter((approval) => judge({ payout: { status, approval } }) === null)
        .map((approval) => `${status} ${approval}`),
    )
    expect(waiting).toEqual(['pending pending'])
  })
})

describe('what is approved', () => {
  let db: TestDatabase
  beforeAll(async () => {
    db = await createTestDatabase()
  })
  afterAll(() => db.drop())

  test('every part of it is in the digest, and the database counts the same', async () => {
    const others = [
      content,
      { ...content, merchantId: 8 },
      { ...content, paymentMethod: 'OperatorB' as const },
      { ...content, destinationPhone: '+22370000002' },
      { ...content, amount: 250_001n },
      { ...content, scheduledAt: at },
      { ...content, scheduledAt: new Date(at.getTime() + 1) },
      { ...content, reference: 'salaries|mars e' },
    ]
    const digests = others.map((other) => Buffer.from(approvalDigest(other)).toString('hex'))
    expect(new Set(digests).size).toBe(others.length)
    for (const [place, other] of others.entries()) {
      const { rows } = await db.database.pool.query<{ digest: string }>(
        `SELECT encode(payout_digest($1, $2, $3, $4, $5, $6), 'hex') AS digest`,
        [
          other.merchantId,
          other.paymentMethod,
          other.destinationPhone,
          other.amount,
          other.reference,
          other.scheduledAt,
        ],
      )
      expect(rows[0]?.digest).toBe(digests[place])
    }
  })
})
