import pg from 'pg'

/** The codes of PostgreSQL for a statement that took too long, and for a lock that was not free in time. */
const tooLongCodes = new Set(['57014', '55P03'])

/** A piece that takes longer than this makes the next one smaller: no lock or snapshot is held for long. */
const slowMs = 1_000

/** The number of rows that the next piece takes. */
export interface PieceSize {
  rows: number
}

/** Runs one piece of background work: `work` gets the number of rows that it may take. */
export type RunPiece = <Result>(work: (rows: number) => Promise<Result>) => Promise<Result>

/** The error of a cancelled piece if the next one is smaller: the caller runs the next one at once. */
export class PieceTooLong extends Error {
  override readonly name = 'PieceTooLong'
}

/**
 * Adapts the size of background work to the machine, so that a slow machine works in smaller steps instead of
 * repeating a step that it can never end. The next piece has half the rows after a piece that was slow or
 * that ran into the time limit of a statement or a lock, and twice the rows after a fast one.
 * @param bounds.max the number of rows that the first piece takes
 * @param size the size, where the caller keeps it
 * @returns a function that throws `PieceTooLong` if a smaller piece follows, otherwise the error of `work`
 */
export function openPieces(
  { max, min = 1 }: { max: number; min?: number },
  size: PieceSize = { rows: max },
): RunPiece {
  const set = (rows: number) => {
    size.rows = Math.round(Math.min(Math.max(rows, min), max))
  }
  return async (work) => {
    const { rows } = size
    const begun = performance.now()
    try {
      const result = await work(rows)
      const ms = performance.now() - begun
      if (ms > slowMs) set(rows / 2)
      else if (ms < slowMs / 4) set(rows * 2)
      return result
    } catch (error) {
      if (!(error instanceof pg.DatabaseError && tooLongCodes.has(error.code ?? ''))) throw error
      set(rows / 2)
      if (size.rows >= rows) throw error
      const words = `${rows} rows took too long: the next piece takes ${size.rows}`
      throw new PieceTooLong(words, { cause: error })
    }
  }
}
