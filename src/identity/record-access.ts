import { sqlFunction, sqlType } from '../database/sql-function.ts'

/** Emits an event of this type and with these data about a change or use of the access to the account. */
export const recordAccess = sqlFunction('record_access', {
  takes: {
    merchant: 'int',
    kind: sqlType<'team_login' | 'api_key_created' | 'security_alert'>('text'),
    what: 'jsonb',
  },
  gives: 'void',
})
