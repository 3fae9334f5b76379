import { z } from 'zod'
import { actorOf, mine, nameOf, ownMerchantId } from '../../identity/callers/actor.ts'
import { builder } from '../../graphql/builder.ts'
import { Currency, MemberRole, PaymentMethod, Scope, wordEnum } from '../../graphql/enums.ts'
import { type Balance as LedgerBalance, readBalance } from '../../ledger/balance.ts'
import { readBalanceAt } from '../../ledger/statement.ts'
import { globalId } from '../../shared/ids.ts'
import { invalidInput, readInput } from '../../shared/input.ts'
import { currency, type Xof } from '../../shared/money.ts'
import { time } from '../../shared/time.ts'
import { checkBalance } from './check-balance.ts'

const MerchantStatus = wordEnum(
  'MerchantStatus',
  { active: 'The account can be used.', inactive: 'The account is closed: requests are refused.' },
  'The status of a merchant account.',
)

const Merchant = builder.prismaNode('Merchant', {
  id: { field: 'id' },
  findUnique: (id, ctx) => ({ id: ownMerchantId(ctx, 'Merchant', id) }),
  nullable: true,
  scope: 'authenticated',
  description: 'A merchant account.',
  fields: (t) => ({
    databaseId: t.expose('id', {
      type: 'SafeInt',
      description: 'The id of the merchant; REST and events call it `merchant_id`.',
    }),
    name: t.exposeString('name', { description: 'The name of the business.' }),
    status: t.expose('status', { type: MerchantStatus, description: 'The present status of the account.' }),
    createdAt: t.expose('createdAt', {
      type: 'DateTime',
      description: 'The moment when the account was created.',
    }),
    timeZone: t.exposeString('timeZone', {
      description: 'The time zone in which the days of the account begin: `Africa/Bamako`.',
    }),
  }),
})

const Self = builder.prismaObject('TeamMember', {
  variant: 'Self',
  description: 'The member who makes this request.',
  fields: (t) => ({
    id: t.id({
      description: 'The global id of the member: `member(id:)` reads it.',
      resolve: ({ id }) => globalId('TeamMember', id),
    }),
    databaseId: t.expose('id', {
      type: 'SafeInt',
      description: 'The id of the member in REST; events call it `team_member_id`.',
    }),
    name: t.exposeString('name', { description: 'The name of the member.' }),
    email: t.exposeString('email', { description: 'The e-mail address of the member.' }),
    role: t.expose('role', { type: MemberRole, description: 'The role of the member.' }),
    hasSecondFactor: t.boolean({
      description: 'True when the member signs in with a code as well as the password.',
      resolve: ({ secondFactorAt }) => secondFactorAt !== null,
    }),
  }),
})

const Me = builder.objectRef<ReturnType<typeof actorOf>>('Me').implement({
  description: 'The caller of this request.',
  fields: (t) => ({
    id: t.id({
      description:
        'An id for the cache of a client, the same for every token of a member, or of an API key; ' +
        '`node(id:)` does not find it.',
      resolve: (actor) => globalId('Me', nameOf(actor)),
    }),
    merchant: t.prismaField({
      type: Merchant,
      description: 'The merchant account that the caller belongs to.',
      resolve: (query, { merchantId }, _args, ctx) =>
        ctx.database.prisma.merchant.findUniqueOrThrow({ ...query, where: { id: merchantId } }),
    }),
    member: t.prismaField({
      type: Self,
      nullable: true,
      description: 'The signed-in member; null when a program calls with an API key.',
      resolve: (query, { memberId }, _args, ctx) =>
        memberId === null
          ? null
          : ctx.database.prisma.teamMember.findFirst({ ...query, where: { id: memberId, ...mine(ctx) } }),
    }),
    scopes: t.field({
      type: [Scope],
      description: "The scopes that the caller's token grants.",
      resolve: (actor) => [...actor.scopes],
    }),
    tokenExpiresAt: t.field({
      type: 'DateTime',
      description: "The moment when the caller's token stops working.",
      resolve: ({ expiresAt }) => expiresAt,
    }),
  }),
})

const balanceMoment = z.object({ at: time.nullish() })

/** A balance, with the arguments for which it was asked. */
interface AskedBalance extends LedgerBalance {
  operatorBalance: Xof | null
  /** The moment and the operator that the caller named; '' where the caller named none. */
  asked: string
}

const Balance = builder.objectRef<AskedBalance>('Balance').implement({
  description: 'The balance of the merchant, computed from the ledger.',
  fields: (t) => ({
    id: t.id({
      description:
        'An id for the cache of a client; `node(id:)` does not find it. It is made of the merchant and the ' +
        'arguments of `balance`, so that no cache takes the balance of one moment for that of another.',
      resolve: ({ asked }, _args, ctx) => globalId('Balance', `${mine(ctx).merchantId}${asked}`),
    }),
    currency: t.field({
      type: Currency,
      description: 'The currency of the amounts: always `XOF`.',
      resolve: () => currency,
    }),
    balance: t.expose('balance', {
      type: 'Amount',
      description: 'Sum of `available` and `reserved`, in whole XOF.',
    }),
    available: t.expose('available', {
      type: 'Amount',
      description: 'Amount that can be used now, in whole XOF.',
    }),
    reserved: t.expose('reserved', {
      type: 'Amount',
      description: 'Amount set aside for payments that are not final yet, in whole XOF.',
    }),
    receivable: t.expose('receivable', {
      type: 'Amount',
      description:
        'Amount that the merchant owes because an operator took a payment back after it was ' +
        'spent, in whole XOF. The next incoming money pays it; until then nothing is available.',
    }),
    operatorBalance: t.expose('operatorBalance', {
      type: 'Amount',
      nullable: true,
      description:
        "Balance of the platform's account at the requested operator, in whole XOF; null when " +
        'no operator was requested.',
    }),
    asOf: t.expose('asOf', { type: 'DateTime', description: 'The moment at which this balance was true.' }),
  }),
})

builder.queryFields((t) => ({
  me: t.field({
    type: Me,
    scope: 'authenticated',
    description: 'The caller, and the permissions of the token.',
    resolve: (_root, _args, ctx) => actorOf(ctx),
  }),
  balance: t.field({
    type: Balance,
    nullable: true,
    scope: ['balance'],
    description:
      "The balance of the merchant. With an operator, also the balance of the platform's " +
      'account there; that request is recorded as a transaction.',
    args: {
      paymentMethod: t.arg({
        type: PaymentMethod,
        description: "An operator to ask for the balance of the platform's account.",
      }),
      at: t.arg({
        type: 'DateTime',
        description: 'A moment in the past. The answer is the balance just before it. Default: now.',
      }),
    },
    resolve: async (_root, { paymentMethod, at: moment }, ctx) => {
      const { at } = readInput(balanceMoment, { at: moment })
      if (paymentMethod && at)
        throw invalidInput([{ field: 'at', message: 'cannot be combined with a payment method' }])
      const { merchantId } = mine(ctx)
      const { merchantPool } = ctx.database
      const operatorBalance = paymentMethod ? await checkBalance(ctx, paymentMethod) : null
      const balance = at
        ? await readBalanceAt(merchantPool, merchantId, at)
        : await readBalance(merchantPool, merchantId)
      const asked = [paymentMethod, at?.toISOString()].map((given) => (given ? `/${given}` : '')).join('')
      return { operatorBalance, asked, ...balance }
    },
  }),
}))
