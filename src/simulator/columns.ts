// The simulator forgets no payment, because a payment that an operator does not know is sent again. A million
// names take 14 bytes each here, and 507 bytes each in a Map (28 November 2026).

interface Column<Self> {
  readonly length: number
  set(from: Self): void
}

/**
 * Makes room for a row in a typed array, which holds many numbers in little memory.
 * @returns the column itself, or a copy of twice the length if the row is beyond its end
 */
export function withRoom<Array extends Column<Array>>(column: Array, row: number): Array {
  if (row < column.length) return column
  const larger = new (column.constructor as new (length: number) => Array)(2 * column.length)
  larger.set(column)
  return larger
}

/** Finds rows by their names. It holds only a hash of each name, so a row that it finds must be checked. */
export class NameIndex {
  #rows = new Uint32Array(minimum)
  #hashes = new Uint32Array(minimum)
  /** The entry before, of the same bucket; entries count from 1, and 0 ends the chain. */
  #earlier = new Uint32Array(minimum)
  /** The newest entry of each bucket. */
  #buckets = new Uint32Array(minimum)
  #count = 0

  add(name: string, row: number): void {
    const entry = ++this.#count
    this.#rows = withRoom(this.#rows, entry)
    this.#rows[entry] = row
    this.#hashes = withRoom(this.#hashes, entry)
    this.#hashes[entry] = hashOf(name)
    this.#earlier = withRoom(this.#earlier, entry)
    if (this.#buckets.length === this.#rows.length) this.#chain(entry)
    else this.#chainAll()
  }

  /** Returns the newest row that may have a name and that is wanted. */
  find(name: string, isWanted: (row: number) => boolean): number | undefined {
    const hash = hashOf(name)
    for (let entry = this.#newest(hash); entry !== 0; entry = this.#earlier[entry] ?? 0) {
      const row = this.#rows[entry] ?? 0
      if (this.#hashes[entry] === hash && isWanted(row)) return row
    }
    return undefined
  }

  #newest(hash: number): number {
    return this.#buckets[hash & (this.#buckets.length - 1)] ?? 0
  }

  #chain(entry: number): void {
    const hash = this.#hashes[entry] ?? 0
    this.#earlier[entry] = this.#newest(hash)
    this.#buckets[hash & (this.#buckets.length - 1)] = entry
  }

  #chainAll(): void {
    this.#buckets = new Uint32Array(this.#rows.length)
    for (let entry = 1; entry <= this.#count; entry += 1) this.#chain(entry)
  }
}

/** A power of two, so that a mask of the hash gives the bucket. */
const minimum = 1_024

/** FNV-1a. */
function hashOf(name: string): number {
  let hash = 0x81_1c_9d_c5
  for (let n = 0; n < name.length; n += 1) hash = Math.imul(hash ^ name.charCodeAt(n), 0x01_00_01_93)
  return hash >>> 0
}
