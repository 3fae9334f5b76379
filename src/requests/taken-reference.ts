import { DatabaseError } from 'pg'
import type { FinalOutcome } from './outcome.ts'
import { type OpenRequest, originOf } from './open-request.ts'
import { nextUnknownCheckMs } from './schedule.ts'
import { recordRequest } from './store.ts'
import type { AppliedOutcome, RequestServices } from './subjects.ts'

/** The key by which one reference of an operator belongs to one of its payments. */
const referenceKey = 'operator_reference_pkey'

/**
 * Applies an outcome, unless its evidence names a reference that another payment of the operator has: then
 * the evidence proves that other payment. Nothing moves, an alarm is raised, and the operator is asked again.
 * @returns null where the reference is taken
 */
export async function unlessTaken(
  services: RequestServices,
  request: OpenRequest,
  evidence: Extract<FinalOutcome, { status: 'success' }>['evidence'] | null,
  apply: () => Promise<AppliedOutcome>,
): Promise<AppliedOutcome | null> {
  try {
    return await apply()
  } catch (error) {
    if (!(error instanceof DatabaseError) || error.constraint !== referenceKey) throw error
    const facts = { about: originOf(request), provider: request.provider, reference: evidence?.operatorRef }
    services.log.error(facts, 'alarm: an operator names the reference of another payment as proof')
    const { id, attempt, checkCount } = request
    await recordRequest(services.sharedStatements, {
      id,
      attempt,
      state: request.state === 'sending' ? 'doubt' : null,
      handle: {},
      nextCheckMs: nextUnknownCheckMs(checkCount, Math.random()),
      paymentUrl: null,
    })
    return null
  }
}
