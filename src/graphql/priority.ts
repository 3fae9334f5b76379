import type { Priority } from '../limits/admission.ts'
import { limits } from '../shared/limits.ts'
import type { AccessPlan } from './access-plan.ts'

/**
 * How urgent an operation is: money first; then what customers and clients wait for, public fields and other
 * writes; then reads, the large ones last.
 */
export function priorityOf(plan: AccessPlan, kind: string, cost: number): Priority {
  if (plan.payments > 0) return 'money'
  if (kind === 'mutation' || plan.demands.length === 0) return 'status'
  return cost >= limits.dashboardCostMin ? 'dashboard' : 'read'
}
