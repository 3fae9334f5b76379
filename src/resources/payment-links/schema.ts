import { mine } from '../../identity/actor.ts'
import { builder } from '../../graphql/builder.ts'
import { inputOf } from '../../graphql/input.ts'
import { wordEnum } from '../../graphql/enums.ts'
import { refusals } from '../../graphql/errors.ts'
import { countedConnectionType, newestFirst } from '../../graphql/connection.ts'
import { readSmallId } from '../../shared/ids.ts'
import { currency } from '../../shared/money.ts'
import { availabilities, readAvailability } from './availability.ts'
import { createLink, createLinkInput } from './create.ts'
import { linksWhere, linkFilterInput } from './list.ts'
import { linkUrl, makeQr, type Qr } from './qr.ts'
import { updateLink, updateLinkInput } from './update.ts'

const linkId = (id: string) => readSmallId('PaymentLink', id)

const Availability = wordEnum(
  'PaymentLinkAvailability',
  availabilities,
  'Whether somebody may begin to pay by a link, and why not.',
)

const QrCode = builder.objectRef<Qr>('QrCode').implement({
  description: 'A QR code, to be shown or printed.',
  fields: (t) => ({
    svg: t.exposeString('svg', { description: 'A picture of any size.' }),
    png: t.string({
      description: 'A picture of dots, in base64.',
      resolve: ({ png }) => png.toString('base64'),
    }),
  }),
})

const PaymentLink = builder.prismaNode('PaymentLink', {
  id: { field: 'id' },
  findUnique: (id, ctx) => ({ id_merchantId: { ...mine(ctx), id: linkId(id) } }),
  nullable: true,
  scope: ['payment_links'],
  description: 'A page that anyone can pay on.',
  fields: (t) => ({
    databaseId: t.expose('id', { type: 'SafeInt', description: 'Its id in REST.' }),
    title: t.exposeString('title'),
    description: t.exposeString('description', { nullable: true }),
    amount: t.expose('amount', {
      type: 'Amount',
      nullable: true,
      description: 'Whole XOF; null: the payer types it.',
    }),
    currency: t.string({ resolve: () => currency }),
    urlSlug: t.exposeString('urlSlug', { description: 'Its name in addresses; it never changes.' }),
    url: t.string({
      description: 'Its page.',
      select: { urlSlug: true },
      resolve: ({ urlSlug }, _args, ctx) => linkUrl(ctx, urlSlug),
    }),
    qr: t.field({
      type: QrCode,
      description: 'Its page as a code that telephones read.',
      select: { urlSlug: true },
      resolve: ({ urlSlug }, _args, ctx) => makeQr(linkUrl(ctx, urlSlug)),
    }),
    usageLimit: t.exposeInt('usageLimit', {
      nullable: true,
      description: 'Successful payments that it takes; null: any number.',
    }),
    usageCount: t.exposeInt('usageCount', { description: 'Payments that succeeded by it.' }),
    openCount: t.exposeInt('openCount', {
      description: 'Attempts under way: each holds a place, for ten minutes at most.',
    }),
    isActive: t.exposeBoolean('isActive'),
    availability: t.field({
      type: Availability,
      description:
        'EXHAUSTED: all its payments were made, or payments under way hold all its places, each for ten ' +
        'minutes at most.',
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
    expiresAt: t.expose('expiresAt', { type: 'DateTime', nullable: true }),
    createdAt: t.expose('createdAt', { type: 'DateTime' }),
    updatedAt: t.expose('updatedAt', { type: 'DateTime' }),
  }),
})

const idWords = 'Its global id, or its id in REST.'

const PaymentLinkFilter = inputOf('PaymentLinkFilter', linkFilterInput, {
  description: 'Which payment links a list shows.',
  fields: {
    activeOnly: 'Left out, true; false shows inactive ones too.',
  },
})

const PaymentLinks = countedConnectionType(PaymentLink, 'PaymentLink', 'A page of payment links.')

builder.queryFields((t) => ({
  paymentLink: t.prismaField({
    type: PaymentLink,
    nullable: true,
    scope: ['payment_links'],
    description: 'One payment link.',
    args: { id: t.arg.id({ required: true, description: idWords }) },
    resolve: (query, _root, { id }, ctx) =>
      ctx.database.prisma.paymentLink.findFirst({ ...query, where: { id: linkId(id), ...mine(ctx) } }),
  }),
  paymentLinks: t.field({
    type: PaymentLinks,
    scope: ['payment_links'],
    description: 'Payment links, newest first.',
    args: {
      ...t.arg.connectionArgs(),
      filter: t.arg({ type: PaymentLinkFilter }),
      offset: t.arg.int({ description: 'Rows to pass over; cursors are faster.' }),
    },
    resolve: (_root, { filter, ...args }, ctx, info) =>
      newestFirst(ctx, info, {
        type: 'PaymentLink',
        args,
        table: ctx.database.prisma.paymentLink,
        where: linksWhere(ctx, filter),
        hasSmallIds: true,
      }),
  }),
}))

const amountWords = 'Whole XOF, 100 to 1,000,000; without one the payer types it.'
const CreatePaymentLinkInput = inputOf('CreatePaymentLinkInput', createLinkInput, {
  description: 'A page to be paid on (specification: POST /payment-links).',
  fields: {
    title: '1 to 200 characters.',
    description: 'At most 1,000 characters.',
    amount: amountWords,
    currency: 'XOF.',
    urlSlug:
      'a-z, 0-9 and inner dashes, 3 to 64 characters; one of each in the whole service. Made where absent.',
    usageLimit: 'Successful payments that it takes.',
    expiresAt: 'A time to come.',
  },
})

const UpdatePaymentLinkInput = inputOf('UpdatePaymentLinkInput', updateLinkInput, {
  description:
    'What changes of a payment link; what is left out stays, null takes it away (specification: PUT ' +
    '/payment-links/{id}).',
  fields: {
    title: '1 to 200 characters.',
    description: 'At most 1,000 characters.',
    amount: amountWords,
    currency: 'XOF.',
    usageLimit: 'Successful payments that it takes.',
    expiresAt: 'A time to come.',
    isActive: 'False closes it.',
  },
})

builder.mutationFields((t) => ({
  createPaymentLink: t.prismaField({
    type: PaymentLink,
    nullable: true,
    scope: ['payment_links'],
    description: 'Makes a page that anyone can pay on.',
    errors: refusals('INVALID_INPUT', 'SLUG_TAKEN'),
    args: { input: t.arg({ type: CreatePaymentLinkInput, required: true }) },
    resolve: async (query, _root, { input }, ctx) => {
      const { id } = await createLink(ctx, input)
      return ctx.database.prisma.paymentLink.findFirstOrThrow({ ...query, where: { id, ...mine(ctx) } })
    },
  }),
  updatePaymentLink: t.prismaField({
    type: PaymentLink,
    nullable: true,
    scope: ['payment_links'],
    description: 'Changes what is given of a payment link. Attempts that are open keep their amount.',
    errors: refusals('INVALID_INPUT', 'NOT_FOUND'),
    args: {
      id: t.arg.id({ required: true, description: idWords }),
      input: t.arg({ type: UpdatePaymentLinkInput, required: true }),
    },
    resolve: async (query, _root, args, ctx) => {
      const { id } = await updateLink(ctx, linkId(args.id), args.input)
      return ctx.database.prisma.paymentLink.findFirstOrThrow({ ...query, where: { id, ...mine(ctx) } })
    },
  }),
}))
