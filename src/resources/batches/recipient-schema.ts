import { mine } from '../../identity/callers/actor.ts'
import { builder } from '../../graphql/builder.ts'
import { inputOf } from '../../graphql/input.ts'
import { connectionType, lazyConnection, offsetArg } from '../../graphql/connection.ts'
import { Currency, PaymentMethod, stateEnum, wordEnum } from '../../graphql/enums.ts'
import { Failure, FailureReasonEnum } from '../../graphql/failure.ts'
import { failureOf } from '../../operators/failure-reasons.ts'
import { searchWords } from '../../shared/filter.ts'
import { readId } from '../../shared/ids.ts'
import { currency } from '../../shared/money.ts'
import { withheldAmount, withheldWords } from '../disbursements/withheld.ts'
import { type RecipientRequest, loadRequest } from './recipient-request.ts'
import { loadBatch } from './load-batch.ts'
import { pageOfRecipients, recipientFilterInput } from './recipient-pages.ts'
import { Batch, countsSelect } from './schema.ts'
import { recipientStates } from './states.ts'
import { limits } from '../../shared/limits.ts'

const RecipientStatus = stateEnum(
  'RecipientStatus',
  recipientStates,
  'The status of a recipient of a batch.',
  {
    cancelled: 'The payment was cancelled before it was sent.',
    failed: 'The operator refused the payment, or it could not be completed.',
    pending: 'The payment was not sent yet.',
    processing: 'The payment is at the operator, and its result is not known yet.',
    success: 'The recipient was paid.',
  },
)

const OperatorRequestState = wordEnum(
  'OperatorRequestState',
  {
    accepted: 'The operator accepted the request and has not completed it yet.',
    closed: 'The service ended the request; the operator never executed it.',
    doubt: 'No answer came, so the operator may or may not have the request. The service keeps asking.',
    refused: 'The operator refused the request.',
    sending: 'The request is being sent.',
    settled: 'The operator completed the request.',
    unsent: 'The request did not reach the operator and can be sent again.',
  },
  'The state of a request to an operator.',
)

const evidenceSources = {
  initiate: 'The direct answer of the operator to the request.',
  query: 'The answer of the operator when the service asked for the result later.',
  service: 'The service itself: the request was never sent.',
} as const
const EvidenceSource = wordEnum(
  'EvidenceSource',
  evidenceSources,
  'The source from which the result of a request to an operator is known.',
)

interface Evidence extends RecipientRequest {
  operatorReference: string | null
  message: string | null
  source: keyof typeof evidenceSources | null
  settledAt: Date | null
}

const OperatorEvidence = builder.objectRef<Evidence>('OperatorEvidence').implement({
  description: "A request to an operator, and the operator's answer.",
  fields: (t) => ({
    state: t.expose('state', {
      type: OperatorRequestState,
      description: 'The present state of the request.',
    }),
    correlationId: t.exposeString('correlationId', {
      description: 'The id by which the operator knows the request, the same at every attempt.',
    }),
    attempts: t.exposeInt('attempt', { description: 'Number of times that the request was sent.' }),
    checks: t.exposeInt('checkCount', {
      description: 'Number of times that the service asked the operator for the result.',
    }),
    createdAt: t.expose('createdAt', {
      type: 'DateTime',
      description: 'The moment when the request was recorded, before it was first sent.',
    }),
    acceptedAt: t.expose('acceptedAt', {
      type: 'DateTime',
      nullable: true,
      description: 'The moment when the operator accepted the request; null when it did not.',
    }),
    source: t.expose('source', {
      type: EvidenceSource,
      nullable: true,
      description:
        'The source of the result: the direct answer, a later question, or the service itself when it was ' +
        'never sent; null until it is known.',
    }),
    operatorReference: t.exposeString('operatorReference', {
      nullable: true,
      description: "The operator's transaction number; null until it is known.",
    }),
    message: t.exposeString('message', {
      nullable: true,
      description: "The operator's own explanation; null when it gave none.",
    }),
    settledAt: t.expose('settledAt', {
      type: 'DateTime',
      nullable: true,
      description: 'The moment when the result was known; null until then.',
    }),
  }),
})

// `pageOfRecipients` reads the rows with its own SQL, so that no field here has a Prisma selection.
const Recipient = builder.prismaNode('BatchRecipient', {
  id: { resolve: ({ id }) => id },
  findUnique: (id, ctx) => ({ id_merchantId: { ...mine(ctx), id: readId('BatchRecipient', id) } }),
  nullable: true,
  scope: ['bulk_pay'],
  description: 'A recipient: one payment of a batch.',
  fields: (t) => ({
    databaseId: t.field({
      type: 'SafeInt',
      resolve: ({ id }) => id,
      description: 'The id of the recipient in REST.',
    }),
    name: t.string({
      description: `The name of the recipient, 1 to ${limits.recipientNameLengthMax} characters.`,
      resolve: ({ name }) => name,
    }),
    account: t.string({
      resolve: ({ account }) => account,
      description: 'The phone number that is paid, in E.164 format: +22370000000.',
    }),
    amount: t.field({
      type: 'Amount',
      resolve: ({ amount }) => amount,
      description: 'The requested amount, in whole XOF.',
    }),
    currency: t.field({
      type: Currency,
      description: 'The currency of the amounts: always `XOF`.',
      resolve: () => currency,
    }),
    paymentMethod: t.field({
      type: PaymentMethod,
      description: 'The operator that pays the recipient.',
      resolve: ({ paymentMethod }) => paymentMethod,
    }),
    status: t.field({
      type: RecipientStatus,
      description: 'The present status of the recipient.',
      resolve: ({ status }) => status,
    }),
    settledAmount: t.field({
      type: 'Amount',
      nullable: true,
      description: 'Amount that was paid, in whole XOF; null until it is paid.',
      resolve: ({ settledAmount }) => settledAmount,
    }),
    withheldAmount: t.field({
      type: 'Amount',
      nullable: true,
      description: withheldWords,
      resolve: ({ id }, _args, ctx) => withheldAmount(ctx, 'recipient', id),
    }),
    operatorReference: t.string({
      nullable: true,
      description: "The operator's transaction number, as on the recipient's receipt; null until it is paid.",
      resolve: ({ operatorReference }) => operatorReference,
    }),
    failureReason: t.field({
      type: FailureReasonEnum,
      nullable: true,
      description: 'The code of the failure, for example `PAYEE_NOT_FOUND`; null when it did not fail.',
      resolve: ({ failureReason }) => failureOf(failureReason),
    }),
    failure: t.field({
      type: Failure,
      nullable: true,
      description: 'The reason of a failed payment, and the advice what to do; null when it did not fail.',
      resolve: ({ failureReason }) => failureOf(failureReason),
    }),
    evidence: t.field({
      type: OperatorEvidence,
      nullable: true,
      description: 'The request to the operator and its answer; null until the payment is sent.',
      resolve: async (recipient, _args, ctx) => {
        const asked = await loadRequest(ctx, recipient.id)
        const { operatorReference, failureMessage, evidenceSource, settledAt } = recipient
        return (
          asked && {
            ...asked,
            operatorReference,
            message: failureMessage,
            source: evidenceSource as Evidence['source'],
            settledAt,
          }
        )
      },
    }),
    sentAt: t.field({
      type: 'DateTime',
      nullable: true,
      description: 'The moment when the payment was sent to the operator; null until then.',
      resolve: ({ sentAt }) => sentAt,
    }),
    settledAt: t.field({
      type: 'DateTime',
      nullable: true,
      description: 'The moment when the payment reached a final status; null until then.',
      resolve: ({ settledAt }) => settledAt,
    }),
    reversedAt: t.field({
      type: 'DateTime',
      nullable: true,
      description:
        'The moment when the operator gave the money back, which made it available again; null ' +
        'when it did not.',
      resolve: ({ reversedAt }) => reversedAt,
    }),
    batch: t.prismaField({
      type: Batch,
      description: 'The batch that the recipient belongs to.',
      resolve: (query, { batchId }, _args, ctx) => loadBatch(ctx, query, batchId),
    }),
  }),
})

const Recipients = connectionType(Recipient, 'BatchRecipient', 'A page of recipients.', 'amounts')

const RecipientFilter = inputOf('RecipientFilter', recipientFilterInput, {
  description: 'Selects recipients of a list. A recipient must match all fields that are given.',
  fields: {
    amountMax: 'Only recipients of at most this amount, in whole XOF.',
    amountMin: 'Only recipients of at least this amount, in whole XOF.',
    account: 'Only recipients with this mobile number, for example +223 70 00 00 00.',
    name: 'Only recipients whose name contains this text; capitals and accents do not matter.',
    paymentMethod: 'Only recipients at one of these operators.',
    search: searchWords("The name, the phone number or the operator's reference"),
    status: 'Only recipients with one of these statuses.',
  },
})

builder.prismaObjectField('Batch', 'recipients', (t) =>
  t.field({
    type: Recipients,
    description: 'The recipients, newest first.',
    select: countsSelect,
    args: {
      ...t.arg.connectionArgs(),
      filter: t.arg({ type: RecipientFilter, description: 'Conditions that the recipients must match.' }),
      offset: t.arg.int(offsetArg),
    },
    resolve: (batch, args, ctx) => {
      const { read, count, amount } = pageOfRecipients(ctx, batch, args)
      return lazyConnection(read, count, amount)
    },
  }),
)
