/** The work under way, by name. Several callers that want the same work at once share it. */
export type InFlight = Map<string, Promise<unknown>>

/** Runs `work` once for all callers that ask for `name` while it is under way. */
export function singleFlight<T>(
  { inFlight }: { inFlight: InFlight },
  name: string,
  work: () => Promise<T>,
): Promise<T> {
  const underWay = inFlight.get(name) as Promise<T> | undefined
  if (underWay) return underWay
  const running = work().finally(() => inFlight.delete(name))
  inFlight.set(name, running)
  return running
}

/** Runs `work` after all earlier work of the same `name` has ended. */
export function afterOthers<T>(
  { inFlight }: { inFlight: InFlight },
  name: string,
  work: () => Promise<T>,
): Promise<T> {
  const before = inFlight.get(name) ?? Promise.resolve()
  const running = before.then(work, work)
  inFlight.set(name, running)
  const forget = () => void (inFlight.get(name) === running && inFlight.delete(name))
  running.then(forget, forget)
  return running
}
