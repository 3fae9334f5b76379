import { actorOf, mine } from '../../identity/actor.ts'
import { builder } from '../../graphql/builder.ts'
import { MemberRole, PaymentMethod, Scope, wordEnum } from '../../graphql/enums.ts'
import { type Balance as LedgerBalance, readBalance } from '../../ledger/balance.ts'
import { readBalanceAt } from '../../ledger/statement.ts'
import { invalidInput } from '../../shared/input.ts'
import { currency, type Xof } from '../../shared/money.ts'
import { checkBalance } from './check-balance.ts'

const MerchantStatus = wordEnum('MerchantStatus', ['active', 'inactive'], 'Whether an account can be used.')

const Merchant = builder.prismaObject('Merchant', {
  description: 'A merchant account.',
  fields: (t) => ({
    databaseId: t.expose('id', { type: 'SafeInt', description: 'The `merchant_id` of REST and events.' }),
    name: t.exposeString('name'),
    status: t.expose('status', { type: MerchantStatus }),
    createdAt: t.expose('createdAt', { type: 'DateTime' }),
  }),
})

const Self = builder.prismaObject('TeamMember', {
  variant: 'Self',
  description: 'The person who is calling.',
  fields: (t) => ({
    databaseId: t.expose('id', { type: 'SafeInt', description: 'The `team_member_id` of events.' }),
    name: t.exposeString('name'),
    email: t.exposeString('email'),
    role: t.expose('role', { type: MemberRole }),
    hasSecondFactor: t.boolean({
      description: 'Whether signing in takes a code as well.',
      resolve: ({ secondFactorAt }) => secondFactorAt !== null,
    }),
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
    member: t.prismaField({
      type: Self,
      nullable: true,
      description: 'The person; null where a program calls with an API key.',
      resolve: (query, { memberId }, _args, ctx) =>
        memberId === null
          ? null
          : ctx.database.prisma.teamMember.findFirst({ ...query, where: { id: memberId, ...mine(ctx) } }),
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
