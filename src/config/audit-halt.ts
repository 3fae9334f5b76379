import { z } from 'zod'

/**
 * The number of minutes without a proof of the books after which payments out are halted; 0: never. Choice:
 * half an hour, far above the minute between two proofs. Less than five would halt before the alarm.
 */
export const auditHaltSettings = {
  AUDIT_HALT_AFTER: z.coerce
    .number()
    .int()
    .max(1_440)
    .refine((minutes) => minutes === 0 || minutes >= 5, 'must be 0, or 5 to 1440 minutes')
    .default(30)
    .describe(
      'Minutes without a proof of the books after which payments out are halted. 5 to 1440, or 0: never.',
    ),
}

/** @returns milliseconds */
export function readAuditHalt(read: z.output<z.ZodObject<typeof auditHaltSettings>>): number {
  return read.AUDIT_HALT_AFTER * 60_000
}
