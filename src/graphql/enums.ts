import type { Role } from '../identity/members/roles.ts'
import type { Scope as ScopeName } from '../identity/callers/scopes.ts'
import { type EventType as EventName, events } from '../events/catalogue.ts'
import { currency } from '../shared/money.ts'
import { invariant } from '../shared/invariant.ts'
import type { PayoutMethod as PayoutMethodName, Provider } from '../shared/providers.ts'
import type { States } from '../shared/states.ts'
import { builder } from './builder.ts'

/** The enums, by the words of the database that they represent. */
const enums = new Map<string, EnumRef[]>()
type EnumRef = ReturnType<typeof builder.enumType>

function known<Ref extends EnumRef>(words: readonly string[], ref: Ref): Ref {
  const key = nameOf(words)
  enums.set(key, [...(enums.get(key) ?? []), ref])
  return ref
}

/** Finds the enum that has these words. @param where the input that asks for the enum */
export function enumOf(words: readonly string[], where: string): EnumRef {
  const [ref, ...others] = enums.get(nameOf(words)) ?? []
  invariant(ref && others.length === 0, `${where}: exactly one enum has the words ${words.join(', ')}`)
  return ref
}

function nameOf(words: readonly string[]): string {
  return words.toSorted().join()
}

/**
 * Makes the GraphQL enum of a lifecycle: its statuses in capitals.
 * @param values the description of each status
 */
export function stateEnum<S extends string>(
  name: string,
  { statuses }: States<S>,
  description: string,
  values: Readonly<Record<S, string>>,
) {
  const words = Object.fromEntries(statuses.map((status) => [status, values[status]]))
  return wordEnum(name, words as Record<S, string>, description)
}

/**
 * Makes an enum of words that the database and REST write in small letters.
 * @param words each word with its description
 */
export function wordEnum<W extends string>(
  name: string,
  words: Readonly<Record<W, string>>,
  description: string,
) {
  const all = Object.keys(words) as W[]
  const values = Object.fromEntries(
    all.map((word) => [word.toUpperCase(), { value: word, description: words[word] }]),
  )
  return known(all, builder.enumType(name, { description, values }))
}

/** Makes an enum whose values are written the same everywhere. */
export function nameEnum<const N extends string>(
  name: string,
  words: Readonly<Record<N, string>>,
  description: string,
) {
  const all = Object.keys(words) as N[]
  const values = Object.fromEntries(all.map((word) => [word, { value: word, description: words[word] }]))
  return known(all, builder.enumType(name, { description, values }))
}

export const Currency = nameEnum(
  'Currency',
  { [currency]: 'The franc of the West African CFA zone, which has no smaller unit.' },
  'A currency. The service has one.',
)

export const PaymentMethod = nameEnum<Provider>(
  'PaymentMethod',
  {
    OperatorA: 'The mobile-money operator OperatorA.',
    OperatorB: 'The mobile-money operator OperatorB.',
    OperatorC: 'The mobile-money operator OperatorC.',
    OperatorD: 'The mobile-money operator OperatorD.',
  },
  'A mobile-money operator.',
)

export const PayoutMethod = nameEnum<PayoutMethodName>(
  'PayoutMethod',
  {
    BankTransfer: 'A bank transfer. A beneficiary can be saved with it, but payouts are not supported yet.',
    OperatorA: 'The mobile-money operator OperatorA.',
    OperatorB: 'The mobile-money operator OperatorB.',
    OperatorC: 'The mobile-money operator OperatorC.',
    OperatorD: 'The mobile-money operator OperatorD.',
  },
  'A way to pay money out.',
)

export const MemberRole = wordEnum<Role>(
  'MemberRole',
  {
    admin: 'May do everything, except invite, change or remove owners.',
    finance: 'May make and approve payments. Has no access to the team, keys, webhooks and settings.',
    owner: 'May do everything.',
    viewer: 'May read what a FINANCE member may read, but make and approve no payment.',
  },
  'The role of a team member.',
)

export const EventType = wordEnum(
  'EventType',
  Object.fromEntries(Object.entries(events).map(([type, { tells }]) => [type, tells])) as Record<
    EventName,
    string
  >,
  'The type of an event.',
)

export const Scope = wordEnum<ScopeName>(
  'Scope',
  {
    balance: 'Read the balance, transactions and statements.',
    beneficiaries: 'Read and change beneficiaries.',
    bulk_pay: 'Create, read and pay batches.',
    deposit: 'Make deposits and refunds.',
    pay: 'Collect payments from customers.',
    payment_links: 'Read and change payment links.',
    payout: 'Create and read payouts.',
    settings: 'Read and change the settings and API keys, and read the audit log.',
    team: 'Read and change the team.',
    webhooks: 'Read and change webhook endpoints, and read events.',
  },
  'A permission that a token can hold.',
)
