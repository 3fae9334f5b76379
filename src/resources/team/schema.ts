import { mine } from '../../identity/callers/actor.ts'
import { builder } from '../../graphql/builder.ts'
import { inputOf } from '../../graphql/input.ts'
import { MemberRole, wordEnum } from '../../graphql/enums.ts'
import { refusals } from '../../graphql/errors.ts'
import { connectionType, newestFirst, offsetArg } from '../../graphql/connection.ts'
import { changeMemberRole } from './change-role.ts'
import { inviteMember, inviteMemberInput, memberNameLengthMax, resendInvitation } from './invite.ts'
import { listedMembers } from './list.ts'
import { removeMember } from './remove.ts'
import { readSmallId } from '../../shared/ids.ts'
import { limits } from '../../shared/limits.ts'

const memberId = (id: string) => readSmallId('TeamMember', id)

const MemberStatus = wordEnum(
  'MemberStatus',
  {
    active: 'The member accepted the invitation and can sign in.',
    invited: 'The invitation was sent and not accepted yet.',
    removed: 'The member was removed and can no longer sign in.',
  },
  'The status of a team member.',
)

const TeamMember = builder.prismaNode('TeamMember', {
  id: { field: 'id' },
  findUnique: (id, ctx) => ({ id_merchantId: { ...mine(ctx), id: memberId(id) } }),
  nullable: true,
  scope: ['team'],
  description: "A member of the merchant's team.",
  fields: (t) => ({
    databaseId: t.expose('id', { type: 'SafeInt', description: 'The id of the member in REST.' }),
    name: t.exposeString('name', { description: 'The name of the member.' }),
    email: t.exposeString('email', { description: 'The e-mail address of the member, in lower case.' }),
    role: t.expose('role', { type: MemberRole, description: 'The role of the member.' }),
    status: t.expose('status', { type: MemberStatus, description: 'The status of the member.' }),
    hasSecondFactor: t.boolean({
      description: 'True when the member signs in with a code as well as the password.',
      resolve: ({ secondFactorAt }) => secondFactorAt !== null,
    }),
    createdAt: t.expose('createdAt', {
      type: 'DateTime',
      description: 'The moment when the member was invited.',
    }),
    joinedAt: t.expose('joinedAt', {
      type: 'DateTime',
      nullable: true,
      description: 'The moment when the member accepted the invitation; null until then.',
    }),
    removedAt: t.expose('removedAt', {
      type: 'DateTime',
      nullable: true,
      description: 'The moment when the member was removed; null while the member is in the team.',
    }),
  }),
})

const idArg = { required: true, description: 'The member: its global id, or its id in REST.' } as const

const TeamMembers = connectionType(TeamMember, 'TeamMember', 'A page of team members.')

builder.queryFields((t) => ({
  member: t.prismaField({
    type: TeamMember,
    nullable: true,
    scope: ['team'],
    description: 'One member of the team; null when there is no such member or the member was removed.',
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
    description: 'The members of the team, invited ones included, newest first.',
    args: {
      ...t.arg.connectionArgs(),
      offset: t.arg.int(offsetArg),
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
  description: 'An invitation to the team. Same as POST /team/invite in REST.',
  fields: {
    name: `The name of the person, 1 to ${memberNameLengthMax} characters.`,
    email: 'The e-mail address that receives the invitation. Each address can be in the team once.',
    role:
      'The role of the new member. You can give a role only if you hold all of its scopes; VIEWER ' +
      'needs none of them.',
  },
})

builder.mutationFields((t) => ({
  inviteMember: t.prismaField({
    type: TeamMember,
    nullable: true,
    scope: ['team'],
    description:
      'Invites a person to the team. An e-mail shows where to choose a password, within ' +
      `${limits.invitationHours} hours.`,
    errors: refusals('INVALID_INPUT', 'FORBIDDEN', 'ALREADY_MEMBER'),
    args: {
      input: t.arg({ type: InviteMemberInput, description: 'The person and the role.', required: true }),
    },
    resolve: async (query, _root, { input }, ctx) => {
      const { id } = await inviteMember(ctx, input)
      return ctx.database.prisma.teamMember.findFirst({ ...query, where: { id, ...mine(ctx) } })
    },
  }),
  resendInvitation: t.prismaField({
    type: TeamMember,
    nullable: true,
    scope: ['team'],
    description:
      'Sends an invitation that was not accepted yet again, for instance after it expired. The link of the ' +
      `earlier e-mail stops working. At most ${limits.resendsMax} times an hour for each address.`,
    errors: refusals('NOT_FOUND', 'FORBIDDEN', 'ALREADY_MEMBER', 'RATE_LIMITED'),
    args: { id: t.arg.id(idArg) },
    resolve: async (query, _root, { id: rawId }, ctx) => {
      const { id } = await resendInvitation(ctx, memberId(rawId))
      return ctx.database.prisma.teamMember.findFirst({ ...query, where: { id, ...mine(ctx) } })
    },
  }),
  changeMemberRole: t.prismaField({
    type: TeamMember,
    nullable: true,
    scope: ['team'],
    description:
      "Changes the role of a member. Within a second the member's sessions end. API keys that " +
      'were shown to the member and grant more than the new role are revoked. You must hold all ' +
      'scopes of the old role and of the new one; VIEWER needs none. The last owner cannot be changed.',
    errors: refusals('INVALID_INPUT', 'NOT_FOUND', 'FORBIDDEN', 'STATE_CONFLICT'),
    args: {
      id: t.arg.id(idArg),
      role: t.arg({ type: MemberRole, description: 'The new role of the member.', required: true }),
    },
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
      "Removes a member from the team. Within a second the member's sessions end, and API " +
      'keys that were shown to the member are revoked. You must hold all scopes of the role of the ' +
      'member; VIEWER needs none. The last owner cannot be removed.',
    errors: refusals('INVALID_INPUT', 'NOT_FOUND', 'FORBIDDEN', 'STATE_CONFLICT'),
    args: {
      id: t.arg.id(idArg),
      keepKeys: t.arg.idList({
        description:
          'API keys that were shown to the member and must keep working; they pass to you. The ' +
          'member still knows their secrets, so regenerate them soon.',
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
