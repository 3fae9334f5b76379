/** A map that keeps the `max` entries used last and forgets the others. */
export class LruMap<K, V> {
  readonly #entries = new Map<K, V>()
  readonly #max: number

  constructor(max: number) {
    this.#max = max
  }

  get size(): number {
    return this.#entries.size
  }

  /** Returns a value and marks it as the one used last. */
  get(key: K): V | undefined {
    const value = this.#entries.get(key)
    if (value === undefined) return undefined
    this.#entries.delete(key)
    this.#entries.set(key, value)
    return value
  }

  set(key: K, value: V): void {
    this.#entries.delete(key)
    this.#entries.set(key, value)
    if (this.#entries.size <= this.#max) return
    // A Map iterates in the order of insertion: its first key is the one that was not used for longest.
    for (const oldest of this.#entries.keys()) {
      this.#entries.delete(oldest)
      return
    }
  }

  /** Returns all entries, the least recently used first. This does not mark them as used. */
  entries(): Iterable<[K, V]> {
    return this.#entries.entries()
  }

  delete(key: K): void {
    this.#entries.delete(key)
  }
}
