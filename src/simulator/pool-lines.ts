import { withRoom } from './columns.ts'
import type { EntryType } from './model.ts'

/** A movement of our float, as a statement shows it, in francs; outgoing amounts are negative. */
export interface PoolLine {
  readonly seq: number
  readonly at: number
  readonly type: EntryType
  /** The number of the operation in the store; null for the operator's own movements. */
  readonly operation: number | null
  readonly amount: bigint
  readonly fee: bigint
  readonly balanceAfter: bigint
}

const types = ['opening', 'top_up', 'collect', 'disburse', 'reverse'] as const satisfies EntryType[]
const rowsAtFirst = 64

/** All movements of our float at one operator, oldest first, in 41 bytes each. */
export class PoolLines {
  #length = 0
  #seqs = new Uint32Array(rowsAtFirst)
  #ats = new Float64Array(rowsAtFirst)
  #types = new Uint8Array(rowsAtFirst)
  /** The number of the operation plus one; 0 for none. */
  #operations = new Uint32Array(rowsAtFirst)
  /** Amount, fee and balance. */
  #francs = new BigInt64Array(3 * rowsAtFirst)

  get length(): number {
    return this.#length
  }

  push({ seq, at, type, operation, amount, fee, balanceAfter }: PoolLine): void {
    const row = this.#length
    this.#seqs = withRoom(this.#seqs, row)
    this.#ats = withRoom(this.#ats, row)
    this.#types = withRoom(this.#types, row)
    this.#operations = withRoom(this.#operations, row)
    this.#francs = withRoom(this.#francs, 3 * row + 2)
    this.#seqs[row] = seq
    this.#ats[row] = at
    this.#types[row] = types.indexOf(type)
    this.#operations[row] = operation === null ? 0 : operation + 1
    this.#francs.set([amount, fee, balanceAfter], 3 * row)
    this.#length += 1
  }

  *[Symbol.iterator](): Generator<PoolLine> {
    for (let row = 0; row < this.#length; row += 1) {
      const operation = this.#operations[row] ?? 0
      const [amount = 0n, fee = 0n, balanceAfter = 0n] = this.#francs.subarray(3 * row, 3 * row + 3)
      yield {
        seq: this.#seqs[row] ?? 0,
        at: this.#ats[row] ?? 0,
        type: types[this.#types[row] ?? 0] ?? 'opening',
        operation: operation === 0 ? null : operation - 1,
        amount,
        fee,
        balanceAfter,
      }
    }
  }
}
