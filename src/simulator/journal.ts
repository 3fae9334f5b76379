import { appendFileSync, closeSync, createReadStream, ftruncateSync, mkdirSync, openSync } from 'node:fs'
import { dirname } from 'node:path'
import type { OperationChange } from './model.ts'

/** The record of all changes in the simulator, in a file that survives a `kill -9`. */
export interface Journal {
  /** Writes changes that belong together as one line, before any caller learns of them. */
  append(changes: readonly OperationChange[]): void
  clear(): void
  close(): void
}

const head = `${JSON.stringify({ journal: 'operator-simulator', version: 1 })}\n`

/** A journal that keeps nothing. */
export const noJournal: Journal = { append() {}, clear() {}, close() {} }

/**
 * Opens the journal and replays its content. An incomplete last line is dropped: a crash cut it short before
 * any caller learned of its changes.
 * @param apply receives each line in order
 * @throws Error when the file is no journal, or a complete line cannot be read
 */
export async function openJournal(
  path: string,
  apply: (changes: readonly OperationChange[]) => void,
): Promise<Journal> {
  mkdirSync(dirname(path), { recursive: true })
  const file = openSync(path, 'a')
  let bytes = 0
  const write = (line: string) => {
    try {
      appendFileSync(file, line)
    } catch (error) {
      // A full disk may have stored half a line. It is removed, because no line may follow it.
      ftruncateSync(file, bytes)
      throw error
    }
    bytes += Buffer.byteLength(line)
  }
  const cutTo = (length: number) => {
    ftruncateSync(file, length)
    bytes = length
    if (length === 0) write(head)
  }
  try {
    cutTo(await replay(path, apply))
  } catch (error) {
    closeSync(file)
    throw error
  }
  return {
    append: (changes) => write(`${JSON.stringify(changes)}\n`),
    clear: () => cutTo(0),
    close: () => closeSync(file),
  }
}

/**
 * Passes each line to `apply`.
 * @returns the number of bytes of complete lines
 */
async function replay(path: string, apply: (changes: readonly OperationChange[]) => void): Promise<number> {
  let rest: Buffer = Buffer.alloc(0)
  let kept = 0
  let number = 0
  for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>) {
    const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
    let start = 0
    for (let end = bytes.indexOf(10, start); end !== -1; end = bytes.indexOf(10, start)) {
      const line = bytes.toString('utf8', start, end)
      number += 1
      if (number === 1) checkHead(path, line)
      else apply(parseLine(path, number, line))
      start = end + 1
    }
    kept += start
    rest = bytes.subarray(start)
  }
  return kept
}

function checkHead(path: string, line: string): void {
  if (`${line}\n` !== head) throw new Error(`${path} is not a journal of this version of the simulator.`)
}

function parseLine(path: string, number: number, line: string): readonly OperationChange[] {
  try {
    return JSON.parse(line) as readonly OperationChange[]
  } catch (cause) {
    throw new Error(`${path}, line ${number}: not readable: another program changed the journal.`, { cause })
  }
}
