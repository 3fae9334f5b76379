import { get, graphql, type OwnedRow } from './asks.ts'

// The rows of the isolation matrix about the settings of an account: none of their inputs names a row.

const text = 'is text of the caller'
const number = 'counts people of the caller'
const zone = 'is a name of the IANA database'
const answer = '{ __typename ... on Refusal { code message } }'

export const settingsRows: Readonly<Record<string, OwnedRow>> = {
  'Mutation.updateSettings(input.businessName)': { harmless: text },
  'Mutation.updateSettings(input.notificationEmail)': { harmless: text },
  'Mutation.updateSettings(input.businessPhone)': { harmless: text },
  'Mutation.updateSettings(input.businessAddress)': { harmless: text },
  'Mutation.updateSettings(input.approvalsRequired)': { harmless: number },
  'Mutation.updateSettings(input.ipWhitelist)': { harmless: text },
  'Mutation.updateSettings(input.timeZone)': { harmless: zone },
  'PUT /settings input.businessName': { harmless: text },
  'PUT /settings input.notificationEmail': { harmless: text },
  'PUT /settings input.businessPhone': { harmless: text },
  'PUT /settings input.businessAddress': { harmless: text },
  'PUT /settings input.approvalsRequired': { harmless: number },
  'PUT /settings input.ipWhitelist': { harmless: text },
  'PUT /settings input.timeZone': { harmless: zone },
  'Query.paymentStats(timeZone)': { harmless: zone },
  'Mutation.approveDeposit(id)': {
    byPerson: true,
    attack: graphql(
      `mutation ($id: ID!) { approveDeposit(id: $id, digest: "${'0'.repeat(64)}") ${answer} }`,
      ({ id }) => ({ id }),
    ),
  },
  'Mutation.approveDeposit(digest)': { harmless: 'is compared with what the deposit has' },
  'Mutation.rejectDeposit(id)': {
    byPerson: true,
    attack: graphql(`mutation ($id: ID!) { rejectDeposit(id: $id, reason: "no") ${answer} }`, ({ id }) => ({
      id,
    })),
  },
  'Mutation.rejectDeposit(reason)': { harmless: text },
  'Mutation.approveSettingsChange(id)': {
    byPerson: true,
    attack: graphql(
      `mutation ($id: ID!) { approveSettingsChange(id: $id, digest: "${'0'.repeat(64)}") ${answer} }`,
      ({ settingsChangeId }) => ({ id: settingsChangeId }),
    ),
  },
  'Mutation.approveSettingsChange(digest)': { harmless: 'is compared with what the change has' },
  'Mutation.rejectSettingsChange(id)': {
    byPerson: true,
    attack: graphql(
      `mutation ($id: ID!) { rejectSettingsChange(id: $id, reason: "no") ${answer} }`,
      ({ settingsChangeId }) => ({ id: settingsChangeId }),
    ),
  },
  'Mutation.rejectSettingsChange(reason)': { harmless: text },
  'nothing: the settings': {
    attack: graphql('{ settings { businessName notificationEmail ipWhitelist } }', () => ({})),
  },
  'nothing: the settings in REST': { attack: get(() => '/settings') },
}
