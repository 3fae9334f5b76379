import type { IsolationRequest, OwnedRow } from './asks.ts'

const sent = (input: Record<string, unknown>): IsolationRequest => ({
  document: `mutation ($input: DepositInput!) { deposit(input: $input) { __typename
    ... on PaymentInitiation { status amount transaction { amount customerPhone refundOf { id } } }
    ... on Refusal { code message }
    ... on DuplicateReferenceError { existingTransaction { databaseId } } } }`,
  variables: {
    input: { amount: 1_600, customerPhone: '70000001', paymentMethod: 'OperatorD', ...input },
  },
})
const sentByRest = (body: object): IsolationRequest => ({
  method: 'POST',
  path: '/deposit',
  body: { amount: 1_600, customer_phone: '70000001', payment_method: 'OperatorD', ...body },
})
const refunded = (variables: object): IsolationRequest => ({
  document: `mutation ($id: ID!, $amount: Amount, $reference: String) {
    refundTransaction(id: $id, amount: $amount, reference: $reference) { __typename
      ... on PaymentInitiation { status amount }
      ... on Refusal { code message }
      ... on DuplicateReferenceError { existingTransaction { databaseId } } } }`,
  variables,
})

const harmlessText = 'is passed to the operator and kept with the payment'

/** The inputs of deposits and refunds. */
export const moneyOutRows: Readonly<Record<string, OwnedRow>> = {
  'Mutation.deposit(input.reference)': { isWrite: true, attack: ({ reference }) => sent({ reference }) },
  'Mutation.deposit(input.customerPhone)': {
    isWrite: true,
    attack: ({ phone }) => sent({ customerPhone: phone }),
  },
  'Mutation.deposit(input.description)': { harmless: harmlessText },
  'Mutation.refundTransaction(id)': { attack: ({ node }) => refunded({ id: node }) },
  'Mutation.refundTransaction(reference)': {
    isWrite: true,
    attack: ({ reference }, own) => refunded({ id: own.id, amount: 1_000, reference }),
  },
  'Mutation.refundTransaction(reason)': { harmless: 'is kept with the refund' },
  'nothing: a refund by the id of REST': { attack: ({ id }) => refunded({ id }) },
  'nothing: refunds': {
    attack: () => ({
      document: '{ transactions { nodes { refundedAmount refunds { id } refundOf { id } } } }',
    }),
  },

  'POST /deposit input.reference': { isWrite: true, attack: ({ reference }) => sentByRest({ reference }) },
  'POST /deposit input.customerPhone': {
    isWrite: true,
    attack: ({ phone }) => sentByRest({ customer_phone: phone }),
  },
  'POST /deposit input.description': { harmless: harmlessText },
}
