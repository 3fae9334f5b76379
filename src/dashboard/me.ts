import { createContext } from 'preact'
import { useContext } from 'preact/hooks'
import type { SessionQuery } from './operations.ts'

/** The signed-in person, as the screens see them. */
export interface Me {
  merchantId: number
  /** The time zone in which the days of the account begin. */
  timeZone: string
  /** Whether the person may give payments back. The service decides again at each request. */
  mayRefund: boolean
  /** Whether the person may prepare and pay payrolls. */
  mayPayMany: boolean
}

export const MeContext = createContext<Me>({
  merchantId: 0,
  timeZone: 'Africa/Bamako',
  mayRefund: false,
  mayPayMany: false,
})

/** Gives a component the signed-in person. */
export const useMe = (): Me => useContext(MeContext)

/** Reads the person from the session. A viewer has the scopes of the money, but may only read. */
export function meOf({ merchant, member, scopes }: NonNullable<SessionQuery['me']>): Me {
  const mayChange = member != null && member.role !== 'VIEWER'
  return {
    merchantId: merchant.databaseId,
    timeZone: merchant.timeZone,
    mayRefund: mayChange && scopes.includes('DEPOSIT'),
    mayPayMany: mayChange && scopes.includes('BULK_PAY'),
  }
}
