import { limits } from '../../shared/limits.ts'

/**
 * The bounds of the work that one imported file can cause. Choice: each is at least twice that of the largest
 * accepted table, 10,000 recipients in 20 columns.
 */
export const importBounds = {
  /** Lines of a CSV file, empty ones included, and the bytes of one line. */
  linesMax: 50_000,
  lineMaxBytes: 16 * 1_024,
  /** Cells of a workbook, empty ones included, and the texts that its cells share. */
  cellsMax: 200_000,
  textsMax: 200_000,
  /** Columns of a workbook up to the last one with a content. */
  columnsMax: 1_000,
  /** Lines and contents that are looked up under merged cells. */
  mergedMax: 1_000_000,
  /** The longest number format that a spreadsheet can have. */
  formatLengthMax: 255,
  /** Unpacked size of the parts that are read, and the number of all parts of the archive. */
  unpackedMaxBytes: 12 * 1_024 ** 2,
  partsMax: 2_000,
  /**
   * The signs `<`, `=` and `&` in the XML of a workbook: they bound its tags, comments, attributes and
   * references, and so the time that each byte of a small archive can cost.
   */
  marksMax: 1_500_000,
  /** The deepest nesting of XML, and the most attributes of one tag; workbooks have about a dozen. */
  depthMax: 100,
  attributesMax: 100,
  /**
   * The longest text of a cell that is kept: longer than any field may be, so that a text that is too long
   * stays too long.
   */
  textLengthMax: 2 * limits.recipientNameLengthMax,
  /**
   * The most processor time of one workbook, where a machine is slow. Choice: four times the time of the
   * largest accepted workbook.
   */
  readMaxMs: 4_000,
}
