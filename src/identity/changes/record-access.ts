import { sqlFunction, sqlType } from '../../database/sql-function.ts'

/** Emits an event about the access to a merchant's account. `kind` is its type, `what` its data. */
export const recordAccess = sqlFunction('record_access', {
  takes: {
    merchant: 'int',
    kind: sqlType<'team_login' | 'api_key_created' | 'security_alert'>('text'),
    what: 'jsonb',
  },
  gives: 'void',
})
