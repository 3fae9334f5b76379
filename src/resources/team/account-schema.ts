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
import { listSessions, type LiveSession, revokeSession, signOut } from './sessions.ts'
import { type SignedIn, signInMember, signInInput } from './sign-in.ts'
import { readSmallId } from '../../shared/ids.ts'

// How a person comes in, leaves, and keeps its own account. Whoever only reads may do all of it too.

const Done = builder.objectRef<{ done: true }>('Acknowledgement').implement({
  description: 'What was asked for was taken.',
  fields: (t) => ({ done: t.exposeBoolean('done') }),
})
const done = { done: true } as const

const SignedInType = builder.objectRef<SignedIn>('SignedIn').implement({
  description: 'A person who has signed in, and the token of the session.',
  fields: (t) => ({
    token: t.exposeString('token', {
      isSecret: true,
      description: 'Send it as `Authorization: Bearer …`.',
    }),
    tokenType: t.string({ resolve: () => 'Bearer' }),
    expiresIn: t.exposeInt('expiresIn', { description: 'Seconds; an hour without a request ends it too.' }),
    expiresAt: t.expose('expiresAt', { type: 'DateTime' }),
    merchantId: t.exposeInt('merchantId'),
    memberId: t.exposeInt('memberId', { description: 'The `team_member_id` of events.' }),
    name: t.exposeString('name'),
    email: t.exposeString('email'),
    role: t.expose('role', { type: MemberRole }),
    hasSecondFactor: t.exposeBoolean('hasSecondFactor'),
  }),
})

const Session = builder.objectRef<LiveSession>('Session').implement({
  description: 'A device on which a member is signed in.',
  fields: (t) => ({
    databaseId: t.expose('id', { type: 'SafeInt', description: 'Names it to revokeSession.' }),
    memberId: t.exposeInt('memberId'),
    isCurrent: t.boolean({
      description: 'The one that asks.',
      resolve: ({ id }, _args, { actor }) => id === actor?.apiKeyId,
    }),
    createdAt: t.expose('createdAt', { type: 'DateTime' }),
    expiresAt: t.expose('expiresAt', { type: 'DateTime' }),
    lastUsedAt: t.expose('lastUsedAt', { type: 'DateTime', nullable: true }),
    lastUsedFrom: t.exposeString('lastUsedFrom', { nullable: true, description: 'The address.' }),
  }),
})

const TotpSetupType = builder.objectRef<TotpSetup>('TotpSetup').implement({
  description: 'What an authenticator application is set up with.',
  fields: (t) => ({
    secret: t.exposeString('secret', { isSecret: true, description: 'In base 32, to be typed.' }),
    uri: t.exposeString('uri', { isSecret: true, description: '`otpauth://…`, for a QR code.' }),
  }),
})

const RecoveryCodes = builder.objectRef<{ codes: string[] }>('RecoveryCodes').implement({
  description: 'Each stands in for a code of the application, once. They are shown once.',
  fields: (t) => ({ codes: t.exposeStringList('codes', { isSecret: true }) }),
})

const SignInInput = inputOf('SignInInput', signInInput, {
  description: 'Who signs in.',
  fields: {
    code: 'Of the authenticator application, or a recovery code, where one is set up.',
    merchantId: 'Which team, for who is in several; the oldest where left out.',
  },
})
const AcceptInvitationInput = inputOf('AcceptInvitationInput', acceptInput, {
  description: 'An invitation, and the password to be.',
  fields: {
    token: 'Of the letter.',
    name: 'Where it was written wrongly.',
    password: '12 to 128 characters.',
  },
})
const RequestPasswordResetInput = inputOf('RequestPasswordResetInput', resetRequestInput, {
  description: 'Who wants a new password.',
  fields: {
    merchantId: 'Which team, for who is in several; all of them where left out.',
  },
})
const ResetPasswordInput = inputOf('ResetPasswordInput', resetInput, {
  description: 'A new password.',
  fields: {
    token: 'Of the letter.',
    password: '12 to 128 characters.',
  },
})

builder.queryField('sessions', (t) =>
  t.field({
    type: [Session],
    scope: 'authenticated',
    description:
      'Where a member is signed in, newest first: the caller, or somebody whom the caller manages.',
    args: {
      memberId: t.arg.id({ description: 'Its global id, or its id in REST; the caller where left out.' }),
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
    description: 'Signs a person in, for 12 hours. Each failure makes the next try wait longer.',
    errors: refusals(
      'INVALID_INPUT',
      'CREDENTIALS_REJECTED',
      'SECOND_FACTOR_REQUIRED',
      'ACCOUNT_INACTIVE',
      'ADDRESS_NOT_ALLOWED',
      'RATE_LIMITED',
      'OVERLOADED',
    ),
    args: { input: t.arg({ type: SignInInput, required: true }) },
    resolve: (_root, { input }, ctx) => signInMember(ctx, input),
  }),
  signOut: t.field({
    type: Done,
    nullable: true,
    scope: 'authenticated',
    ownAccount: true,
    description: 'Ends the session that calls.',
    errors: refusals('FORBIDDEN'),
    resolve: async (_root, _args, ctx) => signOut(ctx).then(() => done),
  }),
  acceptInvitation: t.field({
    type: SignedInType,
    nullable: true,
    scope: 'public',
    description: 'Accepts an invitation, once, and signs in.',
    errors: refusals('INVALID_INPUT', 'ACCOUNT_INACTIVE', 'ADDRESS_NOT_ALLOWED', 'OVERLOADED'),
    args: { input: t.arg({ type: AcceptInvitationInput, required: true }) },
    resolve: (_root, { input }, ctx) => acceptInvitation(ctx, input),
  }),
  requestPasswordReset: t.field({
    type: Done,
    nullable: true,
    scope: 'public',
    description: 'Asks for a letter by which a new password is chosen. The answer is the same for everybody.',
    errors: refusals('INVALID_INPUT', 'RATE_LIMITED'),
    args: { input: t.arg({ type: RequestPasswordResetInput, required: true }) },
    resolve: (_root, { input }, ctx) => requestPasswordReset(ctx, input).then(() => done),
  }),
  resetPassword: t.field({
    type: Done,
    nullable: true,
    scope: 'public',
    description: 'Sets a new password with the token of the letter. Every session of the member ends.',
    errors: refusals('INVALID_INPUT', 'OVERLOADED'),
    args: { input: t.arg({ type: ResetPasswordInput, required: true }) },
    resolve: (_root, { input }, ctx) => resetPassword(ctx, input).then(() => done),
  }),
  changePassword: t.field({
    type: Done,
    nullable: true,
    scope: 'authenticated',
    ownAccount: true,
    description: "Changes the caller's password. Its other sessions end.",
    errors: refusals('INVALID_INPUT', 'FORBIDDEN', 'CREDENTIALS_REJECTED', 'RATE_LIMITED', 'OVERLOADED'),
    args: {
      current: t.arg.string({ required: true }),
      password: t.arg.string({ required: true, description: 'The new one, 12 to 128 characters.' }),
    },
    resolve: (_root, args, ctx) => changePassword(ctx, args.current, args.password).then(() => done),
  }),
  startTotp: t.field({
    type: TotpSetupType,
    nullable: true,
    scope: 'authenticated',
    ownAccount: true,
    description: 'Begins to set up a second factor; confirmTotp ends it.',
    errors: refusals(
      'INVALID_INPUT',
      'FORBIDDEN',
      'CREDENTIALS_REJECTED',
      'RATE_LIMITED',
      'STATE_CONFLICT',
      'OVERLOADED',
    ),
    args: { password: t.arg.string({ required: true }) },
    resolve: (_root, { password }, ctx) => startSecondFactor(ctx, password),
  }),
  confirmTotp: t.field({
    type: RecoveryCodes,
    nullable: true,
    scope: 'authenticated',
    ownAccount: true,
    description: 'From now on signing in takes a code. Gives the recovery codes, once.',
    errors: refusals('INVALID_INPUT', 'FORBIDDEN', 'STATE_CONFLICT'),
    args: { code: t.arg.string({ required: true, description: 'What the application shows.' }) },
    resolve: (_root, { code }, ctx) => confirmSecondFactor(ctx, code).then((codes) => ({ codes })),
  }),
  disableTotp: t.field({
    type: Done,
    nullable: true,
    scope: 'authenticated',
    ownAccount: true,
    description: 'Signing in takes the password alone again.',
    errors: refusals(
      'INVALID_INPUT',
      'FORBIDDEN',
      'CREDENTIALS_REJECTED',
      'RATE_LIMITED',
      'STATE_CONFLICT',
      'OVERLOADED',
    ),
    args: {
      password: t.arg.string({ required: true }),
      code: t.arg.string({ required: true, description: 'Of the application, or a recovery code.' }),
    },
    resolve: (_root, args, ctx) => endSecondFactor(ctx, args.password, args.code).then(() => done),
  }),
  revokeSession: t.field({
    type: Done,
    nullable: true,
    scope: 'authenticated',
    ownAccount: true,
    description: 'Ends a session: an own one, or one of somebody whom the caller manages.',
    errors: refusals('NOT_FOUND', 'FORBIDDEN'),
    args: { id: t.arg.id({ required: true, description: 'The databaseId of the session.' }) },
    resolve: (_root, { id }, ctx) => revokeSession(ctx, readSmallId('Session', id)).then(() => done),
  }),
}))
