import { mine } from '../../identity/actor.ts'
import { builder } from '../../graphql/builder.ts'
import { inputOf } from '../../graphql/input.ts'
import { countedConnectionType, lazyConnection } from '../../graphql/connection.ts'
import { PaymentMethod, stateEnum, wordEnum } from '../../graphql/enums.ts'
import { Failure } from '../../graphql/failure.ts'
import { failureOf } from '../../operators/failure-reasons.ts'
import { readId } from '../../shared/ids.ts'
import { currency } from '../../shared/money.ts'
import { type Asked, loadAsked } from './evidence.ts'
import { loadBatch } from './load-batch.ts'
import { pageOfRecipients, recipientFilterInput } from './recipient-pages.ts'
import { Batch, countsSelect } from './schema.ts'
import { recipientStates } from './states.ts'

const RecipientStatus = stateEnum('RecipientStatus', recipientStates, 'Where a recipient of a batch stands.')

const OperatorRequestState = wordEnum(
  'OperatorRequestState',
  ['sending', 'unsent', 'accepted', 'doubt', 'settled', 'refused', 'closed'],
  'What is known of a request to an operator: it is sent, it did not leave, the operator has it, nobody ' +
    'knows whether the operator has it, it was done, it was refused, or it was given up unsent.',
)

interface Evidence extends Asked {
  operatorReference: string | null
  message: string | null
  source: string | null
  settledAt: Date | null
}

const OperatorEvidence = builder.objectRef<Evidence>('OperatorEvidence').implement({
  description: 'What an operator was asked, and what it said.',
  fields: (t) => ({
    state: t.expose('state', { type: OperatorRequestState }),
    correlationId: t.exposeString('correlationId', {
      description: 'By which the operator knows it, however often it was sent.',
    }),
    attempts: t.exposeInt('attempt', { description: 'How often it was sent.' }),
    checks: t.exposeInt('checkCount', { description: 'How often the operator was asked about it since.' }),
    createdAt: t.expose('createdAt', { type: 'DateTime' }),
    acceptedAt: t.expose('acceptedAt', {
      type: 'DateTime',
      nullable: true,
      description: 'When the operator said that it has it.',
    }),
    source: t.exposeString('source', {
      nullable: true,
      description: 'How it ended: `initiate` by the answer, `query` when asked later, `service` unsent.',
    }),
    operatorReference: t.exposeString('operatorReference', { nullable: true }),
    message: t.exposeString('message', { nullable: true, description: "The operator's own words." }),
    settledAt: t.expose('settledAt', { type: 'DateTime', nullable: true, description: 'When it ended.' }),
  }),
})

// Its rows come from a statement of their own (`pageOfRecipients`): no field is planned.
const Recipient = builder.prismaNode('BatchRecipient', {
  id: { resolve: ({ id }) => id },
  findUnique: (id, ctx) => ({ id_merchantId: { ...mine(ctx), id: readId('BatchRecipient', id) } }),
  nullable: true,
  scope: ['bulk_pay'],
  description: 'Somebody whom a batch pays.',
  fields: (t) => ({
    databaseId: t.field({ type: 'SafeInt', resolve: ({ id }) => id, description: 'Its id in REST.' }),
    name: t.string({ resolve: ({ name }) => name }),
    account: t.string({ resolve: ({ account }) => account, description: 'E.164.' }),
    amount: t.field({
      type: 'Amount',
      resolve: ({ amount }) => amount,
      description: 'Whole XOF that were asked for.',
    }),
    currency: t.string({ resolve: () => currency }),
    paymentMethod: t.field({ type: PaymentMethod, resolve: ({ paymentMethod }) => paymentMethod }),
    status: t.field({ type: RecipientStatus, resolve: ({ status }) => status }),
    settledAmount: t.field({
      type: 'Amount',
      nullable: true,
      description: 'Whole XOF that left the balance.',
      resolve: ({ settledAmount }) => settledAmount,
    }),
    operatorReference: t.string({
      nullable: true,
      description: "The operator's number for the money, as on the recipient's receipt.",
      resolve: ({ operatorReference }) => operatorReference,
    }),
    failureReason: t.string({ nullable: true, resolve: ({ failureReason }) => failureReason }),
    failure: t.field({
      type: Failure,
      nullable: true,
      description: 'Why it was not paid, and what can be done.',
      resolve: ({ failureReason }) => failureOf(failureReason),
    }),
    evidence: t.field({
      type: OperatorEvidence,
      nullable: true,
      description: 'What its operator was asked, and what that said; null before its turn.',
      resolve: async (recipient, _args, ctx) => {
        const asked = await loadAsked(ctx, recipient.id)
        const { operatorReference, failureMessage, evidenceSource, settledAt } = recipient
        return (
          asked && { ...asked, operatorReference, message: failureMessage, source: evidenceSource, settledAt }
        )
      },
    }),
    sentAt: t.field({
      type: 'DateTime',
      nullable: true,
      description: 'When its turn came.',
      resolve: ({ sentAt }) => sentAt,
    }),
    settledAt: t.field({
      type: 'DateTime',
      nullable: true,
      description: 'When it ended, whichever way.',
      resolve: ({ settledAt }) => settledAt,
    }),
    reversedAt: t.field({
      type: 'DateTime',
      nullable: true,
      description: 'When the operator gave it back; the money is available again.',
      resolve: ({ reversedAt }) => reversedAt,
    }),
    batch: t.prismaField({
      type: Batch,
      resolve: (query, { batchId }, _args, ctx) => loadBatch(ctx, query, batchId),
    }),
  }),
})

const Recipients = countedConnectionType(Recipient, 'BatchRecipient', 'A page of recipients.')

const RecipientFilter = inputOf('RecipientFilter', recipientFilterInput, {
  description: 'Which recipients a list shows; what is left out does not matter.',
  fields: {
    account: 'A mobile number of Mali, in any usual writing.',
    name: 'Part of the name; capitals and accents do not matter.',
  },
})

builder.prismaObjectField('Batch', 'recipients', (t) =>
  t.field({
    type: Recipients,
    description: 'Whom it pays, newest first.',
    select: countsSelect,
    args: {
      ...t.arg.connectionArgs(),
      filter: t.arg({ type: RecipientFilter }),
      offset: t.arg.int({ description: 'Rows to pass over; cursors are faster.' }),
    },
    resolve: (batch, args, ctx) => {
      const { read, count } = pageOfRecipients(ctx, batch, args)
      return lazyConnection(read, count)
    },
  }),
)
