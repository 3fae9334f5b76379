import { actorOf, mine } from '../../access/actor.ts'
import { scopes } from '../../access/scopes.ts'
import { builder } from '../../graphql/builder.ts'
import { PaymentMethod, wordEnum } from '../../graphql/enums.ts'
import { type Balance as LedgerBalance, readBalance } from '../../ledger/balance.ts'
import { readBalanceAt } from '../../ledger/statement.ts'
import { invalidInput } from '../../shared/input.ts'
import { currency, type Xof } from '../../shared/money.ts'
import { checkBalance } from './check-balance.ts'

const Scope = wordEnum('Scope', scopes, 'What a token may be allowed to do.')
const MerchantStatus = wordEnum('MerchantStatus', ['active', 'inactive'], 'Whether an account can be used.')

const Merchant = builder.prismaObject('Merchant', {
  description: 'A merchant account.',
  fields: (t) => ({
    databaseId: t.exposeInt('id', { description: 'The `merchant_id` of REST and events.' }),
    name: t.exposeString('name'),
    status: t.expose('status', { type: MerchantStatus }),
    createdAt: t.expose('createdAt', { type: 'DateTime' }),
  }),
})

const Me = builder.objectRef<ReturnType<typeof actorOf>>('Me').implement({
  description: 'Who is calling.',
  fields: (t) => ({
    merchant: t.prismaField({
      type: Merchant,
      resolve: (query, { merchantId }, _args, ctx) =>
        ctx.database.prisma.merchant.findUniqueOrThrow({ ...query, where: { id: merchantId } }),
    }),
    scopes: t.field({ type: [Scope], resolve: (actor) => [...actor.scopes] }),
    tokenExpiresAt: t.field({ type: 'DateTime', resolve: ({ expiresAt }) => expiresAt }),
  }),
})

const Balance = builder.objectRef<LedgerBalance & { operatorBalance: Xof | null }>('Balance').implement({
  description: "A merchant's money, from the ledger.",
  fields: (t) => ({
    currency: t.string({ resolve: () => currency }),
    balance: t.expose('balance', { type: 'Amount', description: 'available + reserved, whole XOF.' }),
    available: t.expose('available', { type: 'Amount', description: 'Free to use, whole XOF.' }),
    reserved: t.expose('reserved', {
      type: 'Amount',
      description: 'Set aside for payments under way, whole XOF.',
    }),
    receivable: t.expose('receivable', {
      type: 'Amount',
      description:
        'What an operator took back when it was spent already, whole XOF. The next money pays it; until ' +
        'then nothing is available.',
    }),
    operatorBalance: t.expose('operatorBalance', {
      type: 'Amount',
      nullable: true,
      description: 'The float at the operator that was asked about, whole XOF.',
    }),
    asOf: t.expose('asOf', { type: 'DateTime' }),
  }),
})

builder.queryFields((t) => ({
  me: t.field({
    type: Me,
    scope: 'authenticated',
    description: 'Who is calling, and what the token allows.',
    resolve: (_root, _args, ctx) => actorOf(ctx),
  }),
  balance: t.field({
    type: Balance,
    nullable: true,
    scope: ['balance'],
    description: 'The balance. With an operator, its float is asked for as well, and the question recorded.',
    args: {
      paymentMethod: t.arg({ type: PaymentMethod }),
      at: t.arg({ type: 'DateTime', description: 'As it was then, before anything of that moment.' }),
    },
    resolve: async (_root, { paymentMethod, at }, ctx) => {
      if (paymentMethod && at)
        throw invalidInput([{ field: 'at', message: 'and payment_method exclude each other' }])
      const { merchantId } = mine(ctx)
      const { merchantPool } = ctx.database
      const operatorBalance = paymentMethod ? await checkBalance(ctx, paymentMethod) : null
      const balance = at
        ? await readBalanceAt(merchantPool, merchantId, at)
        : await readBalance(merchantPool, merchantId)
      return { operatorBalance, ...balance }
    },
  }),
}))
