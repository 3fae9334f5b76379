import { crc32 } from 'node:zlib'
import { type Entry, fromBufferPromise, type ZipFile } from 'yauzl'
import { importBounds } from './bounds.ts'
import { fileProblem } from './row.ts'

/**
 * A function that reads a part of a workbook by its path, as bytes; it returns null for a part that does not
 * exist.
 */
export type Parts = (path: string) => AsyncIterable<Buffer> | null

/**
 * Finds the parts of a workbook. Their unpacked size is checked before they are unpacked: a part never gives
 * more bytes than the archive states.
 * @throws DomainError INVALID_INPUT where the archive has too many parts, or unpacks into too much
 * @throws Error where the file is no archive; reading a damaged part throws too
 */
export async function openParts(file: Buffer): Promise<Parts> {
  const { partsMax, unpackedMaxBytes } = importBounds
  const archive = await fromBufferPromise(file)
  const entries = new Map<string, Entry>()
  for await (const entry of archive.eachEntry()) {
    if (entries.size >= partsMax) {
      throw fileProblem(`is an archive of more than ${partsMax} parts: keep only the table in it`)
    }
    entries.set(entry.fileName, entry)
  }
  const read = new Set<Entry>()
  return (path) => {
    const entry = entries.get(path)
    if (!entry) return null
    read.add(entry)
    const unpacked = [...read].reduce((sum, { uncompressedSize }) => sum + uncompressedSize, 0)
    if (unpacked > unpackedMaxBytes) {
      const size = unpackedMaxBytes / 1_024 ** 2
      throw fileProblem(`unpacks into more than ${size} MiB: keep only the table in it`)
    }
    return unpack(archive, entry)
  }
}

async function* unpack(archive: ZipFile, entry: Entry): AsyncGenerator<Buffer, void> {
  const parts = await archive.openReadStreamPromise(entry)
  // An error after the reader has stopped reading is ignored.
  parts.on('error', () => {})
  let sum = 0
  for await (const part of parts as AsyncIterable<Buffer>) {
    sum = crc32(part, sum)
    yield part
  }
  if (sum !== entry.crc32) throw new Error('the checksum of a part is wrong')
}
