import { type Scope, scopes } from '../callers/scopes.ts'

interface RoleRow {
  scopes: readonly Scope[]
  /** True if a member of the role may read, but change nothing except their own way of signing in. */
  readsOnly: boolean
  /** Whether a member of the role may approve payments and changes; `role_approves` says the same in SQL. */
  approves: boolean
  /** The roles whose members a member of this role may invite, change and remove, with the scope `team`. */
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
 * The rights of each role, the highest first (see docs/design/rules.md#people). They are read at every
 * request of a person: the scopes in the person's token give no right.
 */
export const roles = {
  owner: { scopes, readsOnly: false, approves: true, manages: ['owner', 'admin', 'finance', 'viewer'] },
  admin: { scopes, readsOnly: false, approves: true, manages: ['admin', 'finance', 'viewer'] },
  finance: { scopes: money, readsOnly: false, approves: true, manages: [] },
  viewer: { scopes: money, readsOnly: true, approves: false, manages: [] },
} as const satisfies Record<RoleName, RoleRow>

export type Role = keyof typeof roles

/** The names of all roles, the highest first. */
export const roleNames = Object.keys(roles) as [Role, ...Role[]]

/** Whether one role may do more than another. */
export function isHigher(role: Role, than: Role): boolean {
  return roleNames.indexOf(role) < roleNames.indexOf(than)
}
