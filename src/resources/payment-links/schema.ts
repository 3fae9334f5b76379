import { mine } from '../../identity/callers/actor.ts'
import { builder } from '../../graphql/builder.ts'
import { changeWords, inputOf } from '../../graphql/input.ts'
import { Currency, wordEnum } from '../../graphql/enums.ts'
import { refusals } from '../../graphql/errors.ts'
import { connectionType, offsetArg } from '../../graphql/connection.ts'
import { orderedList } from '../../graphql/ordered-list.ts'
import { searchOf, searchWords } from '../../shared/filter.ts'
import { readSmallId } from '../../shared/ids.ts'
import { currency, grouped } from '../../shared/money.ts'
import { type availabilities, readAvailability } from './availability.ts'
import { createLink, createLinkInput, linkDescriptionLengthMax, linkTitleLengthMax } from './create.ts'
import { linksWhere, linkFilterInput, linkTable } from './list.ts'
import { linkUrl, makeQr, type Qr } from './qr.ts'
import { updateLink, updateLinkInput } from './update.ts'

const linkId = (id: string) => readSmallId('PaymentLink', id)

const Availability = wordEnum<(typeof availabilities)[number]>(
  'PaymentLinkAvailability',
  {
    exhausted:
      'All allowed payments were made, or payments that have started use up the limit, each ' +
      'for at most ten minutes.',
    expired: 'The expiry time of the link has passed.',
    inactive: 'The merchant closed the link.',
    open: 'The link accepts payments.',
  },
  'Tells whether a payment link accepts a payment now.',
)

const QrCode = builder.objectRef<Qr>('QrCode').implement({
  description: 'A QR code, to show or print.',
  fields: (t) => ({
    svg: t.exposeString('svg', { description: 'The code as an SVG image, for any size.' }),
    png: t.string({
      description: 'The code as a PNG image, in base64.',
      resolve: ({ png }) => png.toString('base64'),
    }),
  }),
})

const PaymentLink = builder.prismaNode('PaymentLink', {
  id: { field: 'id' },
  findUnique: (id, ctx) => ({ id_merchantId: { ...mine(ctx), id: linkId(id) } }),
  nullable: true,
  scope: ['payment_links'],
  description: 'A payment link: a page on which anyone can pay the merchant.',
  fields: (t) => ({
    databaseId: t.expose('id', { type: 'SafeInt', description: 'The id of the link in REST.' }),
    title: t.exposeString('title', { description: 'The title that payers see.' }),
    description: t.exposeString('description', {
      nullable: true,
      description: 'The text that payers see; null when there is none.',
    }),
    amount: t.expose('amount', {
      type: 'Amount',
      nullable: true,
      description: 'The amount of each payment, in whole XOF; null when the payer types it.',
    }),
    currency: t.field({
      type: Currency,
      description: 'The currency of the amount: always `XOF`.',
      resolve: () => currency,
    }),
    urlSlug: t.exposeString('urlSlug', {
      description: 'The last part of the address of the page. It never changes.',
    }),
    url: t.string({
      description: 'The address of the page.',
      select: { urlSlug: true },
      resolve: ({ urlSlug }, _args, ctx) => linkUrl(ctx, urlSlug),
    }),
    qr: t.field({
      type: QrCode,
      description: 'The address of the page as a QR code.',
      select: { urlSlug: true },
      resolve: ({ urlSlug }, _args, ctx) => makeQr(linkUrl(ctx, urlSlug)),
    }),
    usageLimit: t.exposeInt('usageLimit', {
      nullable: true,
      description: 'Number of successful payments that the link accepts; null when there is no limit.',
    }),
    usageCount: t.exposeInt('usageCount', { description: 'Number of successful payments by this link.' }),
    openCount: t.exposeInt('openCount', {
      description:
        'Number of payments that have started and are not final. Each counts towards ' +
        '`usageLimit` for at most ten minutes.',
    }),
    isActive: t.exposeBoolean('isActive', { description: 'False after the merchant closed the link.' }),
    availability: t.field({
      type: Availability,
      description: 'Tells whether the link accepts a payment now.',
      select: {
        id: true,
        isActive: true,
        expiresAt: true,
        usageLimit: true,
        usageCount: true,
        openCount: true,
      },
      resolve: (link, _args, ctx) => readAvailability(ctx, link),
    }),
    expiresAt: t.expose('expiresAt', {
      type: 'DateTime',
      nullable: true,
      description: 'The moment after which the link accepts no payment; null when it does not expire.',
    }),
    createdAt: t.expose('createdAt', {
      type: 'DateTime',
      description: 'The moment when the link was created.',
    }),
    updatedAt: t.expose('updatedAt', { type: 'DateTime', description: 'The moment of the last change.' }),
  }),
})

const PaymentLinkFilter = inputOf('PaymentLinkFilter', linkFilterInput, {
  description: 'Selects payment links of a list.',
  fields: {
    activeOnly: 'False to include links that are not active.',
    amountMax: 'Only links with a fixed amount of at most this, in whole XOF.',
    amountMin: 'Only links with a fixed amount of at least this, in whole XOF.',
    createdFrom: 'Only links created at or after this moment.',
    createdTo: 'Only links created at or before this moment, or on this day.',
    search: searchWords('The title or the last part of the address'),
  },
})

const PaymentLinks = connectionType(PaymentLink, 'PaymentLink', 'A page of payment links.')

builder.queryFields((t) => ({
  paymentLink: t.prismaField({
    type: PaymentLink,
    nullable: true,
    scope: ['payment_links'],
    description: 'One payment link; null when it does not exist.',
    args: {
      id: t.arg.id({ required: true, description: 'The payment link: its global id, or its id in REST.' }),
    },
    resolve: (query, _root, { id }, ctx) =>
      ctx.database.prisma.paymentLink.findFirst({ ...query, where: { id: linkId(id), ...mine(ctx) } }),
  }),
  paymentLinks: t.field({
    type: PaymentLinks,
    scope: ['payment_links'],
    description: 'The payment links of the merchant, newest first.',
    args: {
      ...t.arg.connectionArgs(),
      filter: t.arg({
        type: PaymentLinkFilter,
        description: 'Conditions that the payment links must match.',
      }),
      offset: t.arg.int(offsetArg),
    },
    resolve: (_root, { filter, ...args }, ctx, info) =>
      orderedList(ctx, info, {
        type: 'PaymentLink',
        args,
        table: ctx.database.prisma.paymentLink,
        where: linksWhere(ctx, filter),
        from: linkTable,
        amountField: 'amount',
        search: searchOf(filter?.search),
        orderBy: null,
        hasSmallIds: true,
      }),
  }),
}))

const amountWords = 'The amount in whole XOF, 100 to 1,000,000. Without an amount, each payer types one.'
const CreatePaymentLinkInput = inputOf('CreatePaymentLinkInput', createLinkInput, {
  description: 'A new payment link. Same as POST /payment-links in REST.',
  fields: {
    title: `The title that payers see, 1 to ${linkTitleLengthMax} characters.`,
    description: `A text that payers see, at most ${grouped(linkDescriptionLengthMax)} characters.`,
    amount: amountWords,
    currency: 'The currency: only `XOF`.',
    urlSlug:
      'The last part of the address of the page: 3 to 64 characters of a-z, 0-9 and inner ' +
      'dashes, unique in the whole service. Default: the service makes one.',
    usageLimit: 'Number of successful payments that the link accepts. Default: no limit.',
    expiresAt: 'The moment in the future after which the link accepts no payment. Default: never.',
  },
})

const UpdatePaymentLinkInput = inputOf('UpdatePaymentLinkInput', updateLinkInput, {
  description: changeWords('a payment link', 'PUT /payment-links/{id}'),
  fields: {
    title: `The title that payers see, 1 to ${linkTitleLengthMax} characters.`,
    description: `A text that payers see, at most ${grouped(linkDescriptionLengthMax)} characters.`,
    amount: amountWords,
    currency: 'The currency: only `XOF`.',
    usageLimit: 'Number of successful payments that the link accepts. Null removes the limit.',
    expiresAt:
      'The moment in the future after which the link accepts no payment. Null lets it accept payments ' +
      'without an end.',
    isActive: 'False to close the link, true to open it again.',
  },
})

builder.mutationFields((t) => ({
  createPaymentLink: t.prismaField({
    type: PaymentLink,
    nullable: true,
    scope: ['payment_links'],
    description: 'Creates a payment link: a page on which anyone can pay the merchant.',
    errors: refusals('INVALID_INPUT', 'SLUG_TAKEN'),
    args: {
      input: t.arg({
        type: CreatePaymentLinkInput,
        description: 'The title, amount and limits of the link.',
        required: true,
      }),
    },
    resolve: async (query, _root, { input }, ctx) => {
      const { id } = await createLink(ctx, input)
      return ctx.database.prisma.paymentLink.findFirstOrThrow({ ...query, where: { id, ...mine(ctx) } })
    },
  }),
  updatePaymentLink: t.prismaField({
    type: PaymentLink,
    nullable: true,
    scope: ['payment_links'],
    description: 'Changes the given fields of a payment link. Payments that have started keep their amount.',
    errors: refusals('INVALID_INPUT', 'NOT_FOUND'),
    args: {
      id: t.arg.id({ required: true, description: 'The payment link: its global id, or its id in REST.' }),
      input: t.arg({ type: UpdatePaymentLinkInput, description: 'The fields to change.', required: true }),
    },
    resolve: async (query, _root, args, ctx) => {
      const { id } = await updateLink(ctx, linkId(args.id), args.input)
      return ctx.database.prisma.paymentLink.findFirstOrThrow({ ...query, where: { id, ...mine(ctx) } })
    },
  }),
}))
