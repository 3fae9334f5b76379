import { builder } from '../../graphql/builder.ts'
import { inputOf } from '../../graphql/input.ts'
import { MemberRole } from '../../graphql/enums.ts'
import { refusals } from '../../graphql/errors.ts'
import { acceptInvitation, acceptInput } from './accept.ts'
import {
  changePassword,
  requestPasswordReset,
  resetPassword,
  resetRequestInput,
  resetInput,
} from './password.ts'
import { confirmSecondFactor, endSecondFactor, startSecondFactor, type TotpSetup } from './second-factor.ts'
import { listSessions, type LiveSession, revokeSession, signOut, signOutEverywhere } from './sessions.ts'
import { type SignedIn, signInMember, signInInput } from './sign-in.ts'
import { globalId, readSmallId } from '../../shared/ids.ts'
import { limits } from '../../shared/limits.ts'
import { sessionHours } from '../../identity/members/sessions.ts'

// Sign-in, sign-out and the account of the member who calls. A role that can only read may do all of this.

const Done = builder.objectRef<{ done: true }>('Acknowledgement').implement({
  description: 'Confirms that the service accepted the request; it has no other data.',
  fields: (t) => ({ done: t.exposeBoolean('done', { description: 'Always true.' }) }),
})
const done = { done: true } as const

export const SignedInType = builder.objectRef<SignedIn>('SignedIn').implement({
  description: 'A session of a person who has just signed in.',
  fields: (t) => ({
    token: t.exposeString('token', {
      isSecret: true,
      description:
        'The token of the session. Send it as `Authorization: Bearer <token>`. Empty where a cookie keeps ' +
        'the session.',
    }),
    tokenType: t.string({ description: 'The type of the token: always `Bearer`.', resolve: () => 'Bearer' }),
    expiresIn: t.exposeInt('expiresIn', {
      description: 'Seconds until the session ends. It also ends after an hour without a request.',
    }),
    expiresAt: t.expose('expiresAt', { type: 'DateTime', description: 'The moment when the session ends.' }),
    merchantId: t.exposeInt('merchantId', {
      description: 'The id of the merchant whose team the member is in.',
    }),
    memberId: t.exposeInt('memberId', {
      description: 'The REST id of the member; events call it `team_member_id`.',
    }),
    name: t.exposeString('name', { description: 'The name of the member.' }),
    email: t.exposeString('email', { description: 'The e-mail address of the member.' }),
    role: t.expose('role', { type: MemberRole, description: 'The role of the member.' }),
    hasSecondFactor: t.exposeBoolean('hasSecondFactor', {
      description: 'True when the member signs in with a code as well as the password.',
    }),
  }),
})

const Session = builder.objectRef<LiveSession>('Session').implement({
  description: 'A session of a signed-in member.',
  fields: (t) => ({
    id: t.id({
      description: 'The id of the session, for `revokeSession`; `node(id:)` does not find it.',
      resolve: ({ id }) => globalId('Session', id),
    }),
    databaseId: t.expose('id', {
      type: 'SafeInt',
      description: 'The id of the session; `revokeSession` takes it too.',
    }),
    memberId: t.exposeInt('memberId', { description: 'The REST id of the member.' }),
    isCurrent: t.boolean({
      description: 'True for the session that makes this request.',
      resolve: ({ id }, _args, { actor }) => id === actor?.apiKeyId,
    }),
    createdAt: t.expose('createdAt', {
      type: 'DateTime',
      description: 'The moment when the member signed in.',
    }),
    expiresAt: t.expose('expiresAt', { type: 'DateTime', description: 'The moment when the session ends.' }),
    lastUsedAt: t.expose('lastUsedAt', {
      type: 'DateTime',
      nullable: true,
      description: 'The moment of the last request; null when there was none.',
    }),
    lastUsedFrom: t.exposeString('lastUsedFrom', {
      nullable: true,
      description: 'The IP address of the last request; null when there was none.',
    }),
  }),
})

const TotpSetupType = builder.objectRef<TotpSetup>('TotpSetup').implement({
  description: 'The secret with which an authenticator application is set up.',
  fields: (t) => ({
    secret: t.exposeString('secret', {
      isSecret: true,
      description: 'The secret in base 32, to type into the application.',
    }),
    uri: t.exposeString('uri', {
      isSecret: true,
      description: 'The secret as an `otpauth://` address, to show as a QR code.',
    }),
  }),
})

const RecoveryCodes = builder.objectRef<{ codes: string[] }>('RecoveryCodes').implement({
  description:
    'Recovery codes, shown only once. You can use each once, instead of a code from the ' +
    'authenticator application.',
  fields: (t) => ({
    codes: t.exposeStringList('codes', {
      description: 'The recovery codes. Keep them in a safe place.',
      isSecret: true,
    }),
  }),
})

const newPassword = `The new password, ${limits.passwordLengthMin} to ${limits.passwordLengthMax} characters.`

/** The description of the field with which a browser keeps the session in a cookie. */
export const inCookie =
  "True on the service's own pages: the browser keeps the session in a cookie that no script can read, and " +
  '`token` is empty. Refused for pages of other sites, for programs, and over WebSockets.'

const SignInInput = inputOf('SignInInput', signInInput, {
  description: 'The credentials of a person.',
  fields: {
    code:
      'A code of the authenticator application, or a recovery code. Required when two-factor ' +
      'sign-in is on.',
    merchantId:
      'The id of the merchant, for a person who is in several teams. Default: of the teams whose account ' +
      'is active, the one that invited the person first.',
    email: 'The e-mail address of the member.',
    password: 'The password of the member.',
    cookie: inCookie,
  },
})
const AcceptInvitationInput = inputOf('AcceptInvitationInput', acceptInput, {
  description: 'The token of an invitation, and the password that the new member chooses.',
  fields: {
    token: `The token in the invitation e-mail. It is valid once, for ${limits.invitationHours} hours.`,
    name: "The member's name, 1 to 200 characters. Left out, the name in the invitation stays.",
    password: newPassword,
    cookie: inCookie,
  },
})
const RequestPasswordResetInput = inputOf('RequestPasswordResetInput', resetRequestInput, {
  description: 'A request for a new password.',
  fields: {
    merchantId: 'The id of the merchant, for a person who is in several teams. Default: all of them.',
    email: 'The e-mail address of the member.',
  },
})
const ResetPasswordInput = inputOf('ResetPasswordInput', resetInput, {
  description: 'A token and a new password.',
  fields: {
    token: 'The token in the e-mail.',
    password: newPassword,
  },
})

builder.queryField('sessions', (t) =>
  t.field({
    type: [Session],
    scope: 'authenticated',
    description:
      'The sessions in which a member is signed in, newest first: of the caller, or of a ' +
      'member that the caller manages.',
    args: {
      memberId: t.arg.id({
        description: 'The member: its global id, or its id in REST. Default: the caller.',
      }),
    },
    resolve: (_root, { memberId }, ctx) =>
      listSessions(ctx, memberId == null ? null : readSmallId('TeamMember', memberId)),
  }),
)

builder.mutationFields((t) => ({
  signIn: t.field({
    type: SignedInType,
    nullable: true,
    scope: 'public',
    description: `Signs a person in for ${sessionHours} hours. Each failed try lengthens the next wait.`,
    errors: refusals(
      'INVALID_INPUT',
      'CREDENTIALS_REJECTED',
      'SECOND_FACTOR_REQUIRED',
      'ACCOUNT_INACTIVE',
      'ADDRESS_NOT_ALLOWED',
      'RATE_LIMITED',
      'OVERLOADED',
    ),
    args: {
      input: t.arg({
        type: SignInInput,
        description: 'The e-mail address, the password and, with two-factor sign-in, a code.',
        required: true,
      }),
    },
    resolve: (_root, { input }, ctx) => signInMember(ctx, input),
  }),
  signOut: t.field({
    type: Done,
    nullable: true,
    scope: 'authenticated',
    ownAccount: true,
    description: 'Ends the session that makes this request.',
    errors: refusals('FORBIDDEN'),
    resolve: async (_root, _args, ctx) => signOut(ctx).then(() => done),
  }),
  signOutEverywhere: t.field({
    type: Done,
    nullable: true,
    scope: 'authenticated',
    ownAccount: true,
    description: 'Ends all sessions of the caller, this one included.',
    errors: refusals('FORBIDDEN'),
    resolve: async (_root, _args, ctx) => signOutEverywhere(ctx).then(() => done),
  }),
  acceptInvitation: t.field({
    type: SignedInType,
    nullable: true,
    scope: 'public',
    description:
      'Accepts an invitation to a team and signs the new member in. An invitation can be accepted once.',
    errors: refusals('INVALID_INPUT', 'ACCOUNT_INACTIVE', 'ADDRESS_NOT_ALLOWED', 'OVERLOADED'),
    args: {
      input: t.arg({
        type: AcceptInvitationInput,
        description: 'The invitation token and the new password.',
        required: true,
      }),
    },
    resolve: (_root, { input }, ctx) => acceptInvitation(ctx, input),
  }),
  requestPasswordReset: t.field({
    type: Done,
    nullable: true,
    scope: 'public',
    description:
      'Sends an e-mail with which a member can choose a new password. The answer is the same ' +
      'when no member has the address.',
    errors: refusals('INVALID_INPUT', 'RATE_LIMITED'),
    args: {
      input: t.arg({
        type: RequestPasswordResetInput,
        description: 'The e-mail address of the member.',
        required: true,
      }),
    },
    resolve: (_root, { input }, ctx) => requestPasswordReset(ctx, input).then(() => done),
  }),
  resetPassword: t.field({
    type: Done,
    nullable: true,
    scope: 'public',
    description: 'Sets a new password with the token of the e-mail. All sessions of the member end.',
    errors: refusals('INVALID_INPUT', 'OVERLOADED'),
    args: {
      input: t.arg({
        type: ResetPasswordInput,
        description: 'The token and the new password.',
        required: true,
      }),
    },
    resolve: (_root, { input }, ctx) => resetPassword(ctx, input).then(() => done),
  }),
  changePassword: t.field({
    type: Done,
    nullable: true,
    scope: 'authenticated',
    ownAccount: true,
    description: "Changes the caller's own password. The caller's other sessions end.",
    errors: refusals('INVALID_INPUT', 'FORBIDDEN', 'CREDENTIALS_REJECTED', 'RATE_LIMITED', 'OVERLOADED'),
    args: {
      current: t.arg.string({ description: 'The present password.', required: true }),
      password: t.arg.string({
        required: true,
        description: newPassword,
      }),
    },
    resolve: (_root, args, ctx) => changePassword(ctx, args.current, args.password).then(() => done),
  }),
  startTotp: t.field({
    type: TotpSetupType,
    nullable: true,
    scope: 'authenticated',
    ownAccount: true,
    description: 'Starts to set up two-factor sign-in for the caller; `confirmTotp` completes it.',
    errors: refusals(
      'INVALID_INPUT',
      'FORBIDDEN',
      'CREDENTIALS_REJECTED',
      'RATE_LIMITED',
      'STATE_CONFLICT',
      'OVERLOADED',
    ),
    args: { password: t.arg.string({ description: "The caller's password.", required: true }) },
    resolve: (_root, { password }, ctx) => startSecondFactor(ctx, password),
  }),
  confirmTotp: t.field({
    type: RecoveryCodes,
    nullable: true,
    scope: 'authenticated',
    ownAccount: true,
    description: 'Switches two-factor sign-in on for the caller, and shows the recovery codes once.',
    errors: refusals('INVALID_INPUT', 'FORBIDDEN', 'STATE_CONFLICT'),
    args: {
      code: t.arg.string({
        required: true,
        description: 'The six-digit code that the authenticator application shows.',
      }),
    },
    resolve: (_root, { code }, ctx) => confirmSecondFactor(ctx, code).then((codes) => ({ codes })),
  }),
  disableTotp: t.field({
    type: Done,
    nullable: true,
    scope: 'authenticated',
    ownAccount: true,
    description: 'Switches two-factor sign-in off for the caller.',
    errors: refusals(
      'INVALID_INPUT',
      'FORBIDDEN',
      'CREDENTIALS_REJECTED',
      'RATE_LIMITED',
      'STATE_CONFLICT',
      'OVERLOADED',
    ),
    args: {
      password: t.arg.string({ description: "The caller's password.", required: true }),
      code: t.arg.string({
        required: true,
        description: 'A code of the authenticator application, or a recovery code.',
      }),
    },
    resolve: (_root, args, ctx) => endSecondFactor(ctx, args.password, args.code).then(() => done),
  }),
  revokeSession: t.field({
    type: Done,
    nullable: true,
    scope: 'authenticated',
    ownAccount: true,
    description: 'Ends a session of the caller, or of a member that the caller manages.',
    errors: refusals('NOT_FOUND', 'FORBIDDEN'),
    args: {
      id: t.arg.id({ required: true, description: 'The session: its global id, or its `databaseId`.' }),
    },
    resolve: (_root, { id }, ctx) => revokeSession(ctx, readSmallId('Session', id)).then(() => done),
  }),
}))
