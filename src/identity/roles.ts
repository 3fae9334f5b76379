import { type Scope, scopes } from './scopes.ts'

interface RoleRow {
  scopes: readonly Scope[]
  /** It sees what it may, and changes nothing but its own way of signing in. */
  readsOnly: boolean
  /** Whether it may approve what waits for a person; `role_approves` says the same in SQL. */
  approves: boolean
  /** Whom it may invite, change and remove; with the scope `team`. */
  manages: readonly RoleName[]
}

type RoleName = 'owner' | 'admin' | 'finance' | 'viewer'

const money: readonly Scope[] = [
  'pay',
  'deposit',
  'balance',
  'payout',
  'payment_links',
  'beneficiaries',
  'bulk_pay',
]

/**
 * What each role may do, the highest first (see docs/design/rules.md#people). It is looked up whenever a
 * person asks for anything: no token carries more than the role has at that moment.
 */
export const roles = {
  owner: { scopes, readsOnly: false, approves: true, manages: ['owner', 'admin', 'finance', 'viewer'] },
  admin: { scopes, readsOnly: false, approves: true, manages: ['admin', 'finance', 'viewer'] },
  finance: { scopes: money, readsOnly: false, approves: true, manages: [] },
  viewer: { scopes: money, readsOnly: true, approves: false, manages: [] },
} as const satisfies Record<RoleName, RoleRow>

export type Role = keyof typeof roles

/** All of them, the highest first. */
export const roleNames = Object.keys(roles) as [Role, ...Role[]]

/** Whether one role may do more than another. */
export function isHigher(role: Role, than: Role): boolean {
  return roleNames.indexOf(role) < roleNames.indexOf(than)
}
