import { builder } from '../../graphql/builder.ts'
import { MemberRole } from '../../graphql/enums.ts'
import { type TeamAccount, listAccounts } from './accounts.ts'
import { type Invitation, readInvitation } from './read-invitation.ts'

// The accounts of one person, and the one to which an invitation leads.

const AccountType = builder.objectRef<TeamAccount>('Account').implement({
  description: 'A merchant account in whose team a person is.',
  fields: (t) => ({
    merchantId: t.exposeInt('merchantId', {
      description: 'The id of the merchant; `signIn` takes it, to sign in to this account.',
    }),
    merchantName: t.exposeString('merchantName', { description: 'The name of the business.' }),
    role: t.expose('role', { type: MemberRole, description: 'The role of the person in this team.' }),
  }),
})

const InvitationType = builder.objectRef<Invitation>('Invitation').implement({
  description: 'An invitation to a team, for the person who got it.',
  fields: (t) => ({
    merchantId: t.exposeInt('merchantId', { description: 'The id of the merchant.' }),
    merchantName: t.exposeString('merchantName', { description: 'The name of the business.' }),
    name: t.exposeString('name', { description: 'The name of the person, as the inviter wrote it.' }),
    email: t.exposeString('email', {
      description: 'The e-mail address with which the person will sign in.',
    }),
    role: t.expose('role', { type: MemberRole, description: 'The role that the person will have.' }),
    invitedBy: t.exposeString('invitedBy', {
      nullable: true,
      description: 'The name of the member who invited; null where a program or the platform did.',
    }),
    expiresAt: t.expose('expiresAt', {
      type: 'DateTime',
      description: 'The moment when the invitation stops working.',
    }),
  }),
})

builder.queryField('accounts', (t) =>
  t.field({
    type: [AccountType],
    scope: 'authenticated',
    description:
      'The active accounts in whose teams the caller is, that of this session first. Each account has a ' +
      'password of its own. Empty when a program calls with an API key.',
    resolve: (_root, _args, ctx) => listAccounts(ctx),
  }),
)

builder.queryField('invitation', (t) =>
  t.field({
    type: InvitationType,
    nullable: true,
    scope: 'public',
    description:
      'The invitation with this token; null when there is none, or it was used, was replaced or is too old.',
    args: { token: t.arg.string({ required: true, description: 'The token in the invitation e-mail.' }) },
    resolve: (_root, { token }, ctx) => readInvitation(ctx, token),
  }),
)
