import { createHash, timingSafeEqual } from 'node:crypto'
import type { Provider } from '../../shared/providers.ts'
import { approvalStates, type ApprovalStatus, type PayoutStatus } from './states.ts'

/** What a person approves: who pays whom, how much, how, when, and as what. */
export interface ApprovedContent {
  merchantId: number
  paymentMethod: Provider
  destinationPhone: string
  amount: bigint
  scheduledAt: Date | null
  reference: string
}

/** A payout as its approval is judged. */
export interface AwaitingPayout extends ApprovedContent {
  status: PayoutStatus
  approval: ApprovalStatus
  approvalDigest: Uint8Array | null
  approvalExpiresAt: Date | null
  /** Who asked for it, `api_key:12` or `member:7`. */
  maker: string
}

/** Who decides. */
export interface Approver {
  /** `member:7`; an API token is nobody of the kind. */
  name: string
  merchantId: number
  role: 'owner' | 'admin' | 'finance' | 'viewer' | null
}

export interface Decision {
  to: Extract<ApprovalStatus, 'approved' | 'rejected'>
  /** Of what was shown to whom decides. */
  digest: Uint8Array
  at: Date
}

/** Why a decision does not count. */
export type ApprovalProblem = keyof typeof approvalRules

/** The rules of approvals: what must not be. All hold at once; the first that is broken is told. */
const approvalRules = {
  NOT_THEIRS: ({ payout, approver }) => payout.merchantId !== approver.merchantId,
  NOT_A_PERSON: ({ approver }) => approver.role === null,
  ROLE_MAY_NOT: ({ approver }) => !['owner', 'admin', 'finance'].includes(approver.role ?? ''),
  OWN_PAYOUT: ({ payout, approver }) => payout.maker === approver.name,
  NOT_AWAITED: ({ payout, decision }) =>
    payout.status !== 'pending' || !approvalStates.canMove(payout.approval, decision.to),
  EXPIRED: ({ payout, decision }) =>
    payout.approvalExpiresAt === null || payout.approvalExpiresAt <= decision.at,
  // Of what was shown, and of what the payout says now: neither may have become something else meanwhile.
  CHANGED: ({ payout, decision }) =>
    !isSame(payout.approvalDigest, decision.digest) || !isSame(payout.approvalDigest, approvalDigest(payout)),
} as const satisfies Record<string, (judged: Judged) => boolean>

interface Judged {
  payout: AwaitingPayout
  approver: Approver
  decision: Decision
}

/**
 * Judges whether somebody may approve or reject a payout. Reads and writes nothing.
 * @returns null where it counts
 * @see decisions: Money and states
 */
export function judgeApproval(
  payout: AwaitingPayout,
  approver: Approver,
  decision: Decision,
): ApprovalProblem | null {
  const broken = Object.entries(approvalRules).find(([, isBroken]) =>
    isBroken({ payout, approver, decision }),
  )
  return (broken?.[0] as ApprovalProblem | undefined) ?? null
}

/** SHA-256 of what is approved, as `payout_digest` of the database has it. */
export function approvalDigest(content: ApprovedContent): Uint8Array {
  const { merchantId, paymentMethod, destinationPhone, amount, scheduledAt, reference } = content
  const parts = [merchantId, paymentMethod, destinationPhone, amount, scheduledAt?.getTime() ?? '', reference]
  return createHash('sha256')
    .update(['payout:v1', ...parts].join('|'))
    .digest()
}

function isSame(one: Uint8Array | null, other: Uint8Array): boolean {
  return one !== null && one.length === other.length && timingSafeEqual(one, other)
}
