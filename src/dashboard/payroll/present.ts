import type { BatchProgressSubscription, BatchQuery } from '../operations.ts'

/** A payroll with its state. */
export type Batch = NonNullable<BatchQuery['batch']>
/** A change of a payroll. */
export type BatchStep = BatchProgressSubscription['batchProgress']

/** Returns the newer one of the payroll that was read and of its last change. */
export function latestOf(batch: Batch, asOf: number, step: BatchStep | undefined): Batch {
  if (!step || step.sequence <= asOf) return batch
  const { status, pendingCount, processingCount, succeededCount, failedCount, cancelledCount, paidAmount } =
    step
  const counts = { pendingCount, processingCount, succeededCount, failedCount, cancelledCount }
  return { ...batch, ...counts, status, paidAmount }
}
