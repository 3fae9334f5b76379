import { stateEnum } from '../../graphql/enums.ts'
import { limits } from '../../shared/limits.ts'
import { transactionStates } from './states.ts'

export const TransactionStatus = stateEnum(
  'TransactionStatus',
  transactionStates,
  'The status of a transaction.',
  {
    cancelled: 'The transaction was cancelled or rejected before it was paid.',
    expired: `The customer did not confirm within ${limits.collectionLifetimeMs / 3_600_000} hours.`,
    failed: 'The operator refused the payment, or it could not be completed.',
    pending: 'The payment waits for the customer, or for an approval.',
    processing: 'The payment is at the operator, and its result is not known yet.',
    reversed: 'The payment was made and later given back.',
    success: 'The payment is complete.',
  },
)
