import { DirectiveLocation, GraphQLDirective, type OperationDefinitionNode } from 'graphql'
import { limits } from '../shared/limits.ts'

/** The directive by which a client of any transport asks for checkpoints. */
export const checkpointsDirective = new GraphQLDirective({
  name: 'checkpoints',
  description:
    `Adds checkpoints to the stream: one at its start, and one every ${limits.checkpointMs / 1_000} ` +
    'seconds while the log moves on without a result. A checkpoint is a result with `data: null` whose ' +
    '`extensions.checkpoint` is a cursor. Pass the newest cursor as `after` to resume: what the stream has ' +
    'passed over is then not read again.',
  locations: [DirectiveLocation.SUBSCRIPTION],
})

/** Whether a node is the directive, of an operation. */
export function isCheckpoints({ name }: { name: { value: string } }): boolean {
  return name.value === checkpointsDirective.name
}

/** Whether the client of an operation asks for checkpoints. */
export function wantsCheckpoints({ directives }: OperationDefinitionNode): boolean {
  return directives?.some(isCheckpoints) ?? false
}
