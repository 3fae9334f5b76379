import { sqlFunction, sqlType } from '../database/sql-function.ts'

/** Tells the merchant's log of a change or use of its access: an event of this type, with these data. */
export const recordAccess = sqlFunction('record_access', {
  takes: {
    merchant: 'int',
    kind: sqlType<'team_login' | 'api_key_created' | 'security_alert'>('text'),
    what: 'jsonb',
  },
  gives: 'void',
})
