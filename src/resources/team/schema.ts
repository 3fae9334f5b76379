import { mine } from '../../identity/actor.ts'
import { builder } from '../../graphql/builder.ts'
import { inputOf } from '../../graphql/input.ts'
import { MemberRole, wordEnum } from '../../graphql/enums.ts'
import { refusals } from '../../graphql/errors.ts'
import { countedConnectionType, newestFirst } from '../../graphql/connection.ts'
import { changeMemberRole } from './change-role.ts'
import { inviteMember, inviteMemberInput } from './invite.ts'
import { listedMembers } from './list.ts'
import { removeMember } from './remove.ts'
import { readSmallId } from '../../shared/ids.ts'

const memberId = (id: string) => readSmallId('TeamMember', id)

const MemberStatus = wordEnum(
  'MemberStatus',
  ['invited', 'active', 'removed'],
  'Whether somebody has accepted the invitation to the team, and is still in it.',
)

const TeamMember = builder.prismaNode('TeamMember', {
  id: { field: 'id' },
  findUnique: (id, ctx) => ({ id_merchantId: { ...mine(ctx), id: memberId(id) } }),
  nullable: true,
  scope: ['team'],
  description: 'A person who works with the merchant account.',
  fields: (t) => ({
    databaseId: t.expose('id', { type: 'SafeInt', description: 'Its id in REST.' }),
    name: t.exposeString('name'),
    email: t.exposeString('email', { description: 'In small letters.' }),
    role: t.expose('role', { type: MemberRole }),
    status: t.expose('status', { type: MemberStatus }),
    hasSecondFactor: t.boolean({
      description: 'Whether signing in takes a code as well.',
      resolve: ({ secondFactorAt }) => secondFactorAt !== null,
    }),
    createdAt: t.expose('createdAt', { type: 'DateTime', description: 'When it was invited.' }),
    joinedAt: t.expose('joinedAt', { type: 'DateTime', nullable: true }),
    removedAt: t.expose('removedAt', { type: 'DateTime', nullable: true }),
  }),
})

const idArg = { required: true, description: 'Its global id, or its id in REST.' } as const

const TeamMembers = countedConnectionType(TeamMember, 'TeamMember', 'A page of the team.')

builder.queryFields((t) => ({
  member: t.prismaField({
    type: TeamMember,
    nullable: true,
    scope: ['team'],
    description: 'One member of the team; nobody who was removed.',
    args: { id: t.arg.id(idArg) },
    resolve: (query, _root, { id }, ctx) =>
      ctx.database.prisma.teamMember.findFirst({
        ...query,
        where: { id: memberId(id), ...listedMembers(ctx) },
      }),
  }),
  members: t.field({
    type: TeamMembers,
    scope: ['team'],
    description: 'Who is in the team or invited to it, newest first.',
    args: {
      ...t.arg.connectionArgs(),
      offset: t.arg.int({ description: 'Rows to pass over; cursors are faster.' }),
    },
    resolve: (_root, args, ctx, info) =>
      newestFirst(ctx, info, {
        type: 'TeamMember',
        args,
        table: ctx.database.prisma.teamMember,
        where: listedMembers(ctx),
        hasSmallIds: true,
      }),
  }),
}))

const InviteMemberInput = inputOf('InviteMemberInput', inviteMemberInput, {
  description: 'Somebody to work with the account (specification: POST /team/invite).',
  fields: {
    name: '1 to 200 characters.',
    email: 'Where the invitation goes; one account each.',
    role: 'VIEWER where left out.',
  },
})

builder.mutationFields((t) => ({
  inviteMember: t.prismaField({
    type: TeamMember,
    nullable: true,
    scope: ['team'],
    description: 'Invites somebody to the team: a letter says where to choose a password, within 72 hours.',
    errors: refusals('INVALID_INPUT', 'FORBIDDEN', 'ALREADY_MEMBER'),
    args: { input: t.arg({ type: InviteMemberInput, required: true }) },
    resolve: async (query, _root, { input }, ctx) => {
      const { id } = await inviteMember(ctx, input)
      return ctx.database.prisma.teamMember.findFirst({ ...query, where: { id, ...mine(ctx) } })
    },
  }),
  changeMemberRole: t.prismaField({
    type: TeamMember,
    nullable: true,
    scope: ['team'],
    description:
      'Gives a member another role. The sessions of the member end within a second, and the API keys that ' +
      'were shown to the member and grant more than the new role are revoked. The last owner stays one.',
    errors: refusals('INVALID_INPUT', 'NOT_FOUND', 'FORBIDDEN', 'STATE_CONFLICT'),
    args: { id: t.arg.id(idArg), role: t.arg({ type: MemberRole, required: true }) },
    resolve: async (query, _root, { id: rawId, role }, ctx) => {
      const { id } = await changeMemberRole(ctx, memberId(rawId), { role })
      return ctx.database.prisma.teamMember.findFirst({ ...query, where: { id, ...mine(ctx) } })
    },
  }),
  removeMember: t.prismaField({
    type: TeamMember,
    nullable: true,
    scope: ['team'],
    description:
      'Removes a member from the team. The sessions of the member end within a second, and the API keys ' +
      'that were shown to the member are revoked. The last owner stays.',
    errors: refusals('INVALID_INPUT', 'NOT_FOUND', 'FORBIDDEN', 'STATE_CONFLICT'),
    args: {
      id: t.arg.id(idArg),
      keepKeys: t.arg.idList({
        description:
          'API keys that were shown to the member and go on working, for the programs that use them. They ' +
          'pass to you. The member still knows their secrets: regenerate them soon.',
      }),
    },
    resolve: async (query, _root, { id: rawId, keepKeys }, ctx) => {
      const { id } = await removeMember(ctx, memberId(rawId), {
        keepKeys: keepKeys?.map((key) => readSmallId('ApiKey', key)),
      })
      return ctx.database.prisma.teamMember.findFirst({ ...query, where: { id, ...mine(ctx) } })
    },
  }),
}))
