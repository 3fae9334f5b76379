import { type FieldProblem, type RefusalCode, refusals } from '../../shared/errors.ts'
import { snakeCase } from '../../shared/input.ts'

/** The envelope of every REST answer (see docs/design/rules.md#general). */
export interface Envelope {
  success: boolean
  message?: string
  request_id: string
  data?: unknown
  errors?: readonly { field: string; message: string }[]
  required_scopes?: readonly string[]
  limit?: string
  existing_transaction?: { id: number; status: string }
  existing_payout?: { id: number; status: string }
}

/** A refusal as the resolvers give it, thrown or returned. */
export interface RefusalAnswer {
  code: RefusalCode
  message: string
  problems?: readonly FieldProblem[] | null
  requiredScopes?: readonly string[] | null
  limit?: string | null
  existingTransaction?: { id: number; status: string } | null
  existingPayout?: { id: number; status: string } | null
  data?: unknown
}

export function accepted(requestId: string, data: unknown): Envelope {
  return data === undefined
    ? { success: true, request_id: requestId }
    : { success: true, request_id: requestId, data }
}

/** Makes the envelope of a refusal; its fields have REST names. */
export function refused(requestId: string, refusal: RefusalAnswer): { status: number; body: Envelope } {
  const { problems, requiredScopes, limit, existingTransaction, existingPayout, data } = refusal
  return {
    status: refusals[refusal.code].status,
    body: {
      success: false,
      message: refusal.message,
      request_id: requestId,
      ...(problems?.length
        ? { errors: problems.map((p) => ({ field: snakeCase(p.field), message: p.message })) }
        : {}),
      ...(requiredScopes?.length ? { required_scopes: requiredScopes } : {}),
      ...(limit ? { limit: snakeCase(limit) } : {}),
      ...(existingTransaction ? { existing_transaction: existingTransaction } : {}),
      ...(existingPayout ? { existing_payout: existingPayout } : {}),
      ...(data === undefined ? {} : { data }),
    },
  }
}
