/** The newest items, up to a fixed number. */
export class Ring<Item> {
  readonly #max: number
  #items: Item[] = []
  #next = 0

  constructor(max: number) {
    this.#max = max
  }

  /** Adds an item in the place of the oldest one, if the ring is full. */
  add(item: Item): void {
    this.#items[this.#next] = item
    this.#next = (this.#next + 1) % this.#max
  }

  /** Returns the items, oldest first. */
  list(): Item[] {
    return [...this.#items.slice(this.#next), ...this.#items.slice(0, this.#next)]
  }

  clear(): void {
    this.#items = []
    this.#next = 0
  }
}
