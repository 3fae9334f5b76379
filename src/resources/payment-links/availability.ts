/** Whether somebody may begin to pay by a link, and why not (decisions: Endpoints). */
export const availabilities = ['open', 'expired', 'exhausted', 'inactive'] as const
export type Availability = (typeof availabilities)[number]

/** Of a link, what says whether it can be paid by. */
interface Places {
  isActive: boolean
  expiresAt: Date | null
  usageLimit: number | null
  usageCount: number
  openCount: number
}

/** As the statement that begins a payment judges (`link_availability`): an open attempt holds a place. */
export function availabilityOf(link: Places, now: Date): Availability {
  const { isActive, expiresAt, usageLimit, usageCount, openCount } = link
  if (!isActive) return 'inactive'
  if (expiresAt !== null && expiresAt <= now) return 'expired'
  return usageLimit !== null && usageCount + openCount >= usageLimit ? 'exhausted' : 'open'
}
