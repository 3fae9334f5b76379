import { crc32, deflateRawSync } from 'node:zlib'

/** Makes a ZIP archive of some small texts, by their paths (PKWARE's APPNOTE, 4.3). */
export function zipOf(texts: Readonly<Record<string, string>>): Buffer {
  const entries: Buffer[] = []
  const directory: Buffer[] = []
  let at = 0
  for (const [path, text] of Object.entries(texts)) {
    const name = Buffer.from(path)
    const bytes = Buffer.from(text)
    const packed = deflateRawSync(bytes)
    // Version 2.0; deflated; the earliest date that the format can have.
    const facts = numbers([20, 2], [0, 2], [8, 2], [0, 2], [0x21, 2], [crc32(bytes), 4], [packed.length, 4])
    const sizes = numbers([bytes.length, 4], [name.length, 2], [0, 2])
    const entry = Buffer.concat([numbers([0x04034b50, 4]), facts, sizes, name, packed])
    const localHeader = numbers([0, 2], [0, 2], [0, 2], [0, 4], [at, 4])
    directory.push(numbers([0x02014b50, 4], [20, 2]), facts, sizes, localHeader, name)
    entries.push(entry)
    at += entry.length
  }
  const count = entries.length
  const index = Buffer.concat(directory)
  const end = numbers([0x06054b50, 4], [0, 4], [count, 2], [count, 2], [index.length, 4], [at, 4], [0, 2])
  return Buffer.concat([...entries, index, end])
}

/** Writes numbers in the given count of bytes, the lowest byte first. */
function numbers(...given: readonly (readonly [value: number, bytes: number])[]): Buffer {
  return Buffer.concat(
    given.map(([value, bytes]) => {
      const buffer = Buffer.alloc(bytes)
      buffer.writeUIntLE(value, 0, bytes)
      return buffer
    }),
  )
}
