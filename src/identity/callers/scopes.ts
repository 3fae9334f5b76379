/**
 * The rights that a token may carry (see docs/design/rules.md#scopes).
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

/**
 * The scopes that `POST /auth` grants where the caller names none
 * (see docs/design/rules.md#sign-in-and-tokens).
 */
export const defaultScopes: readonly Scope[] = ['pay', 'deposit', 'balance']

/** Returns those of the wanted scopes that a credential does not hold. */
export function lackingScopes<Wanted extends string>(
  held: ReadonlySet<string>,
  wanted: readonly Wanted[],
): Wanted[] {
  return wanted.filter((scope) => !held.has(scope))
}

export function isScope(name: string): name is Scope {
  return (scopes as readonly string[]).includes(name)
}
