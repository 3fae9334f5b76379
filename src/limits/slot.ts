/** A slot: one of a limited number, under the name of its holder. */
export interface Slot {
  key: string
  max: number
  /** The owner of the bound, for messages: for example `token`, `merchant`, or the name of a setting. */
  whose: string
}

/** Finds the first slot that is not free. @param taken how many are taken, by name */
export function fullSlot(taken: ReadonlyMap<string, number>, slots: readonly Slot[]): Slot | null {
  return slots.find(({ key, max }) => (taken.get(key) ?? 0) >= max) ?? null
}

/**
 * Takes a slot under each of these names, or none at all.
 * @param taken how many are taken, by name
 * @returns a function that gives the slots back, once; or the first slot that is not free
 */
export function takeSlots(taken: Map<string, number>, slots: readonly Slot[]): (() => void) | Slot {
  const full = fullSlot(taken, slots)
  if (full) return full
  for (const { key } of slots) taken.set(key, (taken.get(key) ?? 0) + 1)
  let isTaken = true
  return () => {
    if (!isTaken) return
    isTaken = false
    for (const { key } of slots) {
      const left = (taken.get(key) ?? 0) - 1
      if (left > 0) taken.set(key, left)
      else taken.delete(key)
    }
  }
}
