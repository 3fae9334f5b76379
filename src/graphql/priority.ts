import type { Priority } from '../limits/admission.ts'
import type { AccessPlan } from './access-plan.ts'

/** The cost in objects from which a query counts as a dashboard's. Choice: a page of REST. */
const dashboardCostMin = 100

/**
 * Returns the priority of an operation: money first; then operations with only public fields, for which
 * customers wait, and other writes; then reads, the large ones last.
 */
export function priorityOf(plan: AccessPlan, kind: string, cost: number): Priority {
  if (plan.payments > 0) return 'money'
  if (kind === 'mutation' || plan.demands.length === 0) return 'status'
  return cost >= dashboardCostMin ? 'dashboard' : 'read'
}
