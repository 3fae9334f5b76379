import { invariant } from '../shared/invariant.ts'
import type { LogLine, Step } from './decide.ts'
import { causeOf, type OpenRequest } from './open-request.ts'
import { noteRequest, watchRequest } from './store.ts'
import type { RequestServices } from './subjects.ts'

/**
 * Carries out one step that was decided about a request.
 * @returns the status of what the request is for; null where the step does not touch it
 */
export async function act(
  services: RequestServices,
  request: OpenRequest,
  step: Step,
): Promise<string | null> {
  const { subject, subjectId, id, attempt } = request
  const { settle, expire, reverse, success } = services.subjects[subject]
  switch (step.do) {
    case 'nothing':
      return null
    case 'note': {
      const { state, handle, nextCheckMs, paymentUrl } = step
      await noteRequest(services.batches, { id, attempt, state, handle, nextCheckMs, paymentUrl })
      return null
    }
    case 'watch':
      await watchRequest(services.database.pool, id, step.nextMs)
      return null
    case 'reverse': {
      const { moved, status } = await reverse(services, subjectId, step.evidence)
      // It was reversed already, or cannot be: nobody asks any more.
      if (!moved) await watchRequest(services.database.pool, id, null)
      return status
    }
    case 'expire':
      invariant(expire, `a ${subject} does not end by its age`)
      return (await expire(services, subjectId, step.expiry)).status
    case 'settle': {
      const { status } = await settle(services, subjectId, step.ending)
      const next = status === success ? step.ifPaid : step.ifNot
      return (next && (await act(services, request, next))) ?? status
    }
  }
}

/** Writes what was noticed about a request to the log. */
export function tell({ log }: RequestServices, request: OpenRequest, lines: readonly LogLine[]): void {
  const about = causeOf(request)
  for (const { level, words, facts } of lines) log[level]({ about, ...facts }, words)
}
