import type { DocumentNode, GraphQLSchema, OperationTypeNode } from 'graphql'
import type { Context } from '../context.ts'
import type { Priority } from '../limits/admission.ts'

/**
 * An operation that may run: it was parsed, is within the limits, is valid, and its caller has the rights.
 */
export interface CheckedOperation {
  schema: GraphQLSchema
  document: DocumentNode
  operationName: string | undefined
  variableValues: Readonly<Record<string, unknown>>
  contextValue: Context
  kind: OperationTypeNode
  /** The most objects that it may return. */
  cost: number
  /** The objects that its caller may still read in this minute. */
  remaining: number
  priority: Priority
}
