import type { Priority } from '../limits/admission.ts'
import type { AccessPlan } from './access-plan.ts'

/** A GraphQL query that may give so many objects is a dashboard's. Choice: a page of REST. */
const dashboardCostMin = 100

/**
 * How urgent an operation is: money first; then what customers and clients wait for, public fields and other
 * writes; then reads, the large ones last.
 */
export function priorityOf(plan: AccessPlan, kind: string, cost: number): Priority {
  if (plan.payments > 0) return 'money'
  if (kind === 'mutation' || plan.demands.length === 0) return 'status'
  return cost >= dashboardCostMin ? 'dashboard' : 'read'
}
