import { roleNames } from '../identity/roles.ts'
import { scopes } from '../identity/scopes.ts'
import { events } from '../events/catalogue.ts'
import { payoutMethods, providers } from '../shared/providers.ts'
import type { States } from '../shared/states.ts'
import { builder } from './builder.ts'

/** The GraphQL enum of a lifecycle: its statuses in capitals. */
export function stateEnum<S extends string>(name: string, states: States<S>, description: string) {
  return builder.enumType(name, {
    description,
    values: Object.fromEntries(states.statuses.map((status) => [status.toUpperCase(), { value: status }])),
  })
}

/** An enum of words that the database and REST write in small letters. */
export function wordEnum<const W extends string>(name: string, words: readonly W[], description: string) {
  return builder.enumType(name, {
    description,
    values: Object.fromEntries(words.map((word) => [word.toUpperCase(), { value: word }])),
  })
}

export const PaymentMethod = builder.enumType('PaymentMethod', {
  description: 'The four mobile-money operators.',
  values: providers,
})

export const PayoutMethod = builder.enumType('PayoutMethod', {
  description: 'The ways to pay somebody out. BankTransfer can be saved, and is not paid yet.',
  values: payoutMethods,
})

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
