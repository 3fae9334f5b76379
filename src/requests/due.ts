import { singleFlight } from '../shared/single-flight.ts'
import type { Provider } from '../shared/providers.ts'
import { dueRequestsMax, resolveJob, slotsOf } from './check-slots.ts'
import { checkRequest } from './check.ts'
import { originOf, type OpenRequest } from './open-request.ts'
import { claimDue } from './store.ts'
import type { RequestServices } from './subjects.ts'

/**
 * Claims a due request for each free slot and checks each on its own: no check waits for another. While more
 * requests are due, a slot that becomes free is filled at once, except after a check that did not reach the
 * operator: such checks end fast, and would run through the whole queue. The next regular run continues.
 * @returns true if more requests may be due and slots became free during the claim
 */
export async function resolveDue(services: RequestServices, provider: Provider): Promise<boolean> {
  const slots = slotsOf(services, provider)
  const free = dueRequestsMax - slots.taken
  if (free === 0) return false
  // The slots are reserved before the claim, because callbacks take slots meanwhile.
  slots.taken = dueRequestsMax
  let requests: OpenRequest[] = []
  try {
    requests = await claimDue(services.database.pool, provider, free)
  } finally {
    slots.taken -= free - requests.length
  }
  slots.isMoreDue = requests.length === free
  for (const request of requests) askWithSlot(services, request)
  return slots.isMoreDue && slots.taken < dueRequestsMax
}

/**
 * Takes a slot for the request of a callback.
 * @returns false if no slot is free, or if older requests wait for a slot: they go first
 */
export function takeSlot(services: RequestServices, provider: Provider): boolean {
  const slots = slotsOf(services, provider)
  if (slots.isMoreDue || slots.taken >= dueRequestsMax) return false
  slots.taken += 1
  return true
}

/** Gives a slot back, and looks for due requests if more may be due. */
export function freeSlot(services: RequestServices, provider: Provider): void {
  const slots = slotsOf(services, provider)
  slots.taken -= 1
  if (slots.isMoreDue) services.notifyJob(resolveJob(provider))
}

/**
 * Looks for due requests as soon as a slot is free. Called if a request became due while no slot was free.
 */
export function askWhenFree(services: RequestServices, provider: Provider): void {
  slotsOf(services, provider).isMoreDue = true
  services.notifyJob(resolveJob(provider))
}

/** Checks a claimed request, and gives its slot back when the check has ended. Never throws. */
export function askWithSlot(services: RequestServices, request: OpenRequest): void {
  const { provider } = request
  const name = `check:${originOf(request)}`
  const check = () => singleFlight(services, name, () => checkRequest(services, request))
  // A check that already runs may have begun before this request became due, and may miss the new facts: wait
  // for its end, then check again.
  const before = services.inFlight.get(name)
  const checked = before ? before.then(check, check) : check()
  checked.then(
    ({ reached }) => {
      if (reached) freeSlot(services, provider)
      else slotsOf(services, provider).taken -= 1
    },
    (error: unknown) => {
      services.log.error({ err: error }, 'the check of a request to an operator failed')
      slotsOf(services, provider).taken -= 1
    },
  )
}
