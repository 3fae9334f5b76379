import { builder } from '../../graphql/builder.ts'
import { wordEnum } from '../../graphql/enums.ts'
import { globalId } from '../../shared/ids.ts'
import { type Author, type AuthorKind, authorOf, kindOf, nameOfActor } from './authors.ts'

// The GraphQL types `Author` and `Approver`, and the field `createdBy` of payouts and batches.
// Choice: a token that shows a request shows who made it, also the name of an API key, for which `ApiKey`
// needs another scope: a member who decides must know who asks.

export const Approver = builder.objectRef<{ memberId: number; name: string }>('Approver').implement({
  description: 'A team member who made, approved or rejected a request.',
  fields: (t) => ({
    id: t.id({
      description: 'The global id of the member: `member(id:)` reads it.',
      resolve: ({ memberId }) => globalId('TeamMember', memberId),
    }),
    databaseId: t.expose('memberId', { type: 'SafeInt', description: 'The id of the member in REST.' }),
    name: t.exposeString('name', { description: 'The name of the member.' }),
  }),
})

const AuthorKindEnum = wordEnum<AuthorKind>(
  'AuthorKind',
  { api_key: 'A program that used an API key.', member: 'A member of the team who signed in.' },
  'The kind of an author.',
)

export const AuthorType = builder.objectRef<Author>('Author').implement({
  description: 'The member or the API key that made a request.',
  fields: (t) => ({
    actor: t.exposeString('actor', {
      description: '`member:7` or `api_key:12`, as in the filter `createdBy` and in the audit log.',
    }),
    kind: t.field({
      type: AuthorKindEnum,
      description: 'The kind of the author: a member or an API key.',
      resolve: kindOf,
    }),
    name: t.string({
      description: 'The name of the member, or the name of the API key.',
      resolve: async ({ actor }, _args, ctx) => (await nameOfActor(ctx, actor)) ?? actor,
    }),
    member: t.field({
      type: Approver,
      nullable: true,
      description:
        'The member who made the request. For an API key, the member who had received its secret, and who ' +
        'therefore cannot approve the request; null where that is unknown, as for a payout that needed no ' +
        'approval.',
      resolve: async ({ memberId }, _args, ctx) => {
        const name = memberId && (await nameOfActor(ctx, `member:${memberId}`))
        return memberId && name ? { memberId, name } : null
      },
    }),
  }),
})

builder.prismaObjectField('Payout', 'createdBy', (t) =>
  t.field({
    type: AuthorType,
    description: 'The member or the API key that created the payout.',
    select: { maker: true, makerMemberId: true },
    resolve: ({ maker, makerMemberId }) => authorOf(maker, makerMemberId),
  }),
)

builder.prismaObjectField('Batch', 'createdBy', (t) =>
  t.field({
    type: AuthorType,
    description: 'The member or the API key that created the batch; another one may process the batch.',
    select: { maker: true, makerMemberIds: true },
    // The first of these members is the one behind the maker: create_batch.sql writes it with the draft.
    resolve: ({ maker, makerMemberIds }) => authorOf(maker, makerMemberIds[0]),
  }),
)
