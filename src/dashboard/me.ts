import { createContext } from 'preact'
import { useContext } from 'preact/hooks'
import type { MemberRole, Scope, SessionQuery } from './operations.ts'

/** The signed-in person, as the screens see them. */
export interface Me {
  merchantId: number
  /** The person; 0 for a caller that is no member. */
  memberId: number
  merchantName: string
  /** The address with which the person signs in; '' for a caller that is no member. */
  email: string
  /** The scopes of the person: the most that a key of the person may hold. */
  scopes: readonly Scope[]
  /** The role of the person; null for a caller that is no member. */
  role: MemberRole | null
  /** The time zone in which the days of the account begin. */
  timeZone: string
  /** Whether the person may give payments back. The service decides again at each request. */
  mayRefund: boolean
  /** Whether the person may make and change payment links. */
  mayMakeLinks: boolean
  /** Whether the person may make and cancel payouts. */
  mayPayOut: boolean
  /** Whether the person may save people for payouts. */
  maySavePeople: boolean
  /** Whether the person may see and change the team. */
  mayManageTeam: boolean
  /** Whether the person may change the settings, and make and revoke keys of programs. */
  mayChangeSettings: boolean
  /** Whether the person may see and change the addresses that are notified, and read the event log. */
  mayManageWebhooks: boolean
  /** Whether the person may prepare and pay payrolls. */
  mayPayMany: boolean
}

export const MeContext = createContext<Me>({
  merchantId: 0,
  memberId: 0,
  merchantName: '',
  email: '',
  scopes: [],
  role: null,
  timeZone: 'Africa/Bamako',
  mayRefund: false,
  mayMakeLinks: false,
  mayPayOut: false,
  maySavePeople: false,
  mayManageTeam: false,
  mayChangeSettings: false,
  mayManageWebhooks: false,
  mayPayMany: false,
})

/** Gives a component the signed-in person. */
export const useMe = (): Me => useContext(MeContext)

/** Reads the person from the session. A viewer has the scopes of the money, but may only read. */
export function meOf({ merchant, member, scopes }: NonNullable<SessionQuery['me']>): Me {
  const mayChange = member != null && member.role !== 'VIEWER'
  return {
    merchantId: merchant.databaseId,
    memberId: member?.databaseId ?? 0,
    merchantName: merchant.name,
    email: member?.email ?? '',
    scopes,
    role: member?.role ?? null,
    timeZone: merchant.timeZone,
    mayRefund: mayChange && scopes.includes('DEPOSIT'),
    mayMakeLinks: mayChange && scopes.includes('PAYMENT_LINKS'),
    mayPayOut: mayChange && scopes.includes('PAYOUT'),
    maySavePeople: mayChange && scopes.includes('BENEFICIARIES'),
    mayManageTeam: mayChange && scopes.includes('TEAM'),
    mayChangeSettings: mayChange && scopes.includes('SETTINGS'),
    mayManageWebhooks: mayChange && scopes.includes('WEBHOOKS'),
    mayPayMany: mayChange && scopes.includes('BULK_PAY'),
  }
}
