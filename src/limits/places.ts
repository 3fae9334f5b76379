/** One of a limited number of places, under the name of whoever takes it. */
export interface Place {
  key: string
  max: number
  /** Whose places these are, in a word. */
  whose: string
}

/**
 * Takes a place under each of these names, or none at all.
 * @param taken how many are taken, by name
 * @returns what gives them back, once; or the place that is not free
 */
export function takePlaces(taken: Map<string, number>, places: readonly Place[]): (() => void) | Place {
  const full = places.find(({ key, max }) => (taken.get(key) ?? 0) >= max)
  if (full) return full
  for (const { key } of places) taken.set(key, (taken.get(key) ?? 0) + 1)
  let isTaken = true
  return () => {
    if (!isTaken) return
    isTaken = false
    for (const { key } of places) {
      const left = (taken.get(key) ?? 0) - 1
      if (left > 0) taken.set(key, left)
      else taken.delete(key)
    }
  }
}
