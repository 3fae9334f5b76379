import { get, graphql, type Row } from './isolation-asks.ts'

// The rows of the isolation matrix about the settings of an account: nothing of them names anything.

const text = 'is text of the caller'
const number = 'counts people of the caller'

export const settingsRows: Readonly<Record<string, Row>> = {
  'Mutation.updateSettings(input.businessName)': { harmless: text },
  'Mutation.updateSettings(input.notificationEmail)': { harmless: text },
  'Mutation.updateSettings(input.approvalsRequired)': { harmless: number },
  'Mutation.updateSettings(input.ipWhitelist)': { harmless: text },
  'PUT /settings input.businessName': { harmless: text },
  'PUT /settings input.notificationEmail': { harmless: text },
  'PUT /settings input.approvalsRequired': { harmless: number },
  'PUT /settings input.ipWhitelist': { harmless: text },
  'nothing: the settings': {
    attack: graphql('{ settings { businessName notificationEmail ipWhitelist } }', () => ({})),
  },
  'nothing: the settings in REST': { attack: get(() => '/settings') },
}
