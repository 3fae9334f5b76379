/** Work that several callers want at once and one does: name → the work under way. */
export type Flights = Map<string, Promise<unknown>>

/** Runs `work` once for all callers that ask for `name` while it is under way. */
export function shareFlight<T>(
  { flights }: { flights: Flights },
  name: string,
  work: () => Promise<T>,
): Promise<T> {
  const underWay = flights.get(name) as Promise<T> | undefined
  if (underWay) return underWay
  const flight = work().finally(() => flights.delete(name))
  flights.set(name, flight)
  return flight
}

/** Runs `work` once all that was given under `name` before it has ended. */
export function afterOthers<T>(
  { flights }: { flights: Flights },
  name: string,
  work: () => Promise<T>,
): Promise<T> {
  const before = flights.get(name) ?? Promise.resolve()
  const flight = before.then(work, work)
  flights.set(name, flight)
  const forget = () => void (flights.get(name) === flight && flights.delete(name))
  flight.then(forget, forget)
  return flight
}
