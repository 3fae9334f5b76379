import type { DocumentNode, GraphQLSchema, OperationTypeNode } from 'graphql'
import type { Context } from '../context.ts'
import type { Priority } from '../limits/admission.ts'

/** An operation that may run: parsed, within the limits, valid, and allowed to this caller. */
export interface CheckedOperation {
  schema: GraphQLSchema
  document: DocumentNode
  operationName: string | undefined
  variableValues: Readonly<Record<string, unknown>>
  contextValue: Context
  kind: OperationTypeNode
  /** Objects that it may give, at most. */
  cost: number
  /** Objects that its caller has left for this minute. */
  remaining: number
  priority: Priority
}
