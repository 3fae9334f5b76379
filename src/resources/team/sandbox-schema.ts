import { builder } from '../../graphql/builder.ts'
import { refusals } from '../../graphql/errors.ts'
import { inputOf } from '../../graphql/input.ts'
import { inCookie, SignedInType } from './account-schema.ts'
import { sandboxSignInInput, signInToSandbox } from './sandbox-sign-in.ts'

const SandboxSignInInput = inputOf('SandboxSignInInput', sandboxSignInInput, {
  description: 'The token of the link that the first screen of a sandbox shows.',
  fields: {
    token: 'The token after the `#` of the link. It is valid once, for 24 hours.',
    cookie: inCookie,
  },
})

builder.mutationField('sandboxSignIn', (t) =>
  t.field({
    type: SignedInType,
    nullable: true,
    scope: 'public',
    description:
      'Signs the owner of the sandbox in with the link of the first screen. Each start of the sandbox ' +
      'makes a new link, and the earlier one stops working.',
    errors: refusals('INVALID_INPUT', 'ACCOUNT_INACTIVE', 'ADDRESS_NOT_ALLOWED'),
    args: {
      input: t.arg({ type: SandboxSignInInput, description: 'The token of the link.', required: true }),
    },
    resolve: (_root, { input }, ctx) => signInToSandbox(ctx, input),
  }),
)
