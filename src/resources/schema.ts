import { MapperKind, mapSchema } from '@graphql-tools/utils'
import { type GraphQLSchema, specifiedDirectives } from 'graphql'
import { builder } from '../graphql/builder.ts'
import { checkpointsDirective } from '../graphql/checkpoints.ts'
import '../graphql/nodes.ts'
import { accessDirectives } from '../graphql/scopes.ts'
import './api-keys/authenticate-schema.ts'
import './api-keys/schema.ts'
import './approvals/schema.ts'
import './audit-log/schema.ts'
import './batches/progress-schema.ts'
import './batches/recipient-schema.ts'
import './batches/schema.ts'
import './beneficiaries/schema.ts'
import './merchants/schema.ts'
import './payment-links/schema.ts'
import './payment-links/use-schema.ts'
import './payouts/schema.ts'
import './sandbox/schema.ts'
import './settings/schema.ts'
import './statement/schema.ts'
import './stats/schema.ts'
import './status/schema.ts'
import './team/account-schema.ts'
import './team/accounts-schema.ts'
import './team/sandbox-schema.ts'
import './team/schema.ts'
import './transactions/collect-schema.ts'
import './transactions/schema.ts'
import './transactions/link-payments-schema.ts'
import './transactions/money-out-schema.ts'
import './transactions/timeline-schema.ts'
import './webhooks/schema.ts'
import './webhooks/events-schema.ts'

/** The schema of all resources, which GraphQL, subscriptions and REST share. */
export const schema = builder.toSchema({
  directives: [...specifiedDirectives, ...accessDirectives, checkpointsDirective],
})

/** Returns the schema without the operations of the sandbox, which do not exist in production. */
export function productionSchema(): GraphQLSchema {
  return mapSchema(schema, {
    [MapperKind.ROOT_FIELD]: (_field, name) => (name.startsWith('sandbox') ? null : undefined),
    [MapperKind.TYPE]: ({ name }) => (name.startsWith('Sandbox') ? null : undefined),
  })
}
