import { type FieldProblem, type RefusalCode, refusals } from '../../shared/errors.ts'
import { snakeCase } from '../../shared/input.ts'

/** The envelope of every REST answer (see docs/design/rules.md#general). */
export interface Envelope {
  success: boolean
  message?: string
  /** The code of the refusal, for programs, and the address of the page that explains the code. */
  code?: RefusalCode
  docs?: string
  request_id: string
  data?: unknown
  errors?: readonly FieldProblem[]
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

/** The path of the page of all refusals; each code is an anchor there (`pages/refusals.ts`). */
export const refusalsPath = '/docs/errors'

/**
 * Returns the fields of the envelope that explain a refusal to programs and to their authors.
 * @param publicUrl the address of the service; without one, `docs` is only a path
 */
export function explained(code: RefusalCode, publicUrl: string): { code: RefusalCode; docs: string } {
  return { code, docs: `${publicUrl}${refusalsPath}#${code}` }
}

/**
 * Makes the envelope of a refusal; its fields have REST names.
 * @param publicUrl the address of the service; empty where the server is not yet ready to know its address
 */
export function refused(
  { requestId, publicUrl }: { requestId: string; publicUrl: string },
  refusal: RefusalAnswer,
): { status: number; body: Envelope } {
  const { problems, requiredScopes, limit, existingTransaction, existingPayout, data } = refusal
  return {
    status: refusals[refusal.code].status,
    body: {
      success: false,
      message: refusal.message,
      ...explained(refusal.code, publicUrl),
      request_id: requestId,
      ...(problems?.length
        ? {
            errors: problems.map(({ field, message, row }) => ({
              field: snakeCase(field),
              message,
              ...(row && { row }),
            })),
          }
        : {}),
      ...(requiredScopes?.length ? { required_scopes: requiredScopes } : {}),
      ...(limit ? { limit: snakeCase(limit) } : {}),
      ...(existingTransaction ? { existing_transaction: existingTransaction } : {}),
      ...(existingPayout ? { existing_payout: existingPayout } : {}),
      ...(data === undefined ? {} : { data }),
    },
  }
}
