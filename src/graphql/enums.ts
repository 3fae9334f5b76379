import { roleNames } from '../identity/roles.ts'
import { scopes } from '../identity/scopes.ts'
import { events } from '../events/catalogue.ts'
import { invariant } from '../shared/invariant.ts'
import { payoutMethods, providers } from '../shared/providers.ts'
import type { States } from '../shared/states.ts'
import { builder } from './builder.ts'

/** The enums by the words of the database that they stand for. */
const enums = new Map<string, EnumRef[]>()
type EnumRef = ReturnType<typeof builder.enumType>

function known<Ref extends EnumRef>(words: readonly string[], ref: Ref): Ref {
  const key = nameOf(words)
  enums.set(key, [...(enums.get(key) ?? []), ref])
  return ref
}

/** The enum of some words. @param where they are asked for */
export function enumOf(words: readonly string[], where: string): EnumRef {
  const [ref, ...others] = enums.get(nameOf(words)) ?? []
  invariant(ref && others.length === 0, `${where}: one enum has the words ${words.join(', ')}`)
  return ref
}

function nameOf(words: readonly string[]): string {
  return words.toSorted().join()
}

/** The GraphQL enum of a lifecycle: its statuses in capitals. */
export function stateEnum<S extends string>(name: string, states: States<S>, description: string) {
  return wordEnum(name, states.statuses, description)
}

/** An enum of words that the database and REST write in small letters. */
export function wordEnum<const W extends string>(name: string, words: readonly W[], description: string) {
  const values = Object.fromEntries(words.map((word) => [word.toUpperCase(), { value: word }]))
  return known(words, builder.enumType(name, { description, values }))
}

export const PaymentMethod = known(
  providers,
  builder.enumType('PaymentMethod', {
    description: 'The four mobile-money operators.',
    values: providers,
  }),
)

export const PayoutMethod = known(
  payoutMethods,
  builder.enumType('PayoutMethod', {
    description: 'The ways to pay somebody out. BankTransfer can be saved, and is not paid yet.',
    values: payoutMethods,
  }),
)

export const MemberRole = wordEnum(
  'MemberRole',
  roleNames,
  'What somebody may do: the owner all, the admin all but owners, finance money; the viewer reads.',
)

export const EventType = wordEnum(
  'EventType',
  Object.keys(events) as (keyof typeof events)[],
  'What the events log tells of.',
)

export const Scope = wordEnum('Scope', scopes, 'What a token may be allowed to do.')
