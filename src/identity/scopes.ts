/**
 * What a token may be allowed to do: the nine scopes of the specification (Authentication) and `settings`.
 */
export const scopes = [
  'pay',
  'deposit',
  'balance',
  'payout',
  'payment_links',
  'beneficiaries',
  'bulk_pay',
  'team',
  'webhooks',
  'settings',
] as const
export type Scope = (typeof scopes)[number]

/** What `POST /auth` grants where the caller names nothing (specification: POST /auth). */
export const defaultScopes: readonly Scope[] = ['pay', 'deposit', 'balance']

export function isScope(name: string): name is Scope {
  return (scopes as readonly string[]).includes(name)
}
