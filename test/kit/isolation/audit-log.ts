import { graphql, type OwnedRow } from './asks.ts'

// The rows of the isolation matrix about the audit log.

const page = '{ nodes { databaseId actor operation target after } pageInfo { startCursor endCursor } }'
const filtered = (name: string) =>
  `query ($w: String) { auditLog(first: 50, filter: { ${name}: $w }) ${page} }`
const number = 'counts rows of the caller'

export const auditLogRows: Readonly<Record<string, OwnedRow>> = {
  'Query.auditLog(first)': { harmless: number },
  'Query.auditLog(last)': { harmless: number },
  'Query.auditLog(before)': {
    attack: graphql(`query ($c: String) { auditLog(last: 50, before: $c) ${page} }`, ({ auditCursor }) => ({
      c: auditCursor,
    })),
  },
  'Query.auditLog(after)': {
    attack: graphql(`query ($c: String) { auditLog(first: 50, after: $c) ${page} }`, ({ auditCursor }) => ({
      c: auditCursor,
    })),
  },
  'Query.auditLog(filter.actor)': {
    attack: graphql(filtered('actor'), ({ keyId }) => ({ w: `api_key:${keyId}` })),
  },
  'Query.auditLog(filter.target)': {
    attack: graphql(filtered('target'), ({ payoutId }) => ({ w: `payout:${payoutId}` })),
  },
  'Query.auditLog(filter.operation)': { harmless: 'is a word of ours' },
  'Query.verifyAuditLog(after)': { harmless: 'counts rows of the caller' },
  'Query.verifyAuditLog(head)': {
    harmless: 'is refused where it is not of the caller: see audit-log-head.test.ts',
  },

  'nothing: the audit log': { attack: graphql(`{ auditLog(first: 50) ${page} }`, () => ({})) },
  'nothing: the chain of the audit log': {
    attack: graphql('{ verifyAuditLog { isIntact isComplete } }', () => ({})),
  },
}
