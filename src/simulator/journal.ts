import { appendFileSync, closeSync, ftruncateSync, mkdirSync, openSync, readSync } from 'node:fs'
import { dirname } from 'node:path'
import type { OperationChange } from './model.ts'

type Changes = readonly OperationChange[]

/** The record of all changes in the simulator, one line for changes that belong together. */
export interface Journal {
  /**
   * Adds a line.
   * @returns its place
   * @throws Error when earlier lines could not be written, and still cannot be
   */
  append(changes: Changes): number
  /** Resolves once all lines so far are written. No caller may learn of their changes before. */
  written(): Promise<void>
  /** Reads the line at a place. */
  read(place: number): Changes
  /** Yields all lines, oldest first. */
  lines(): Iterable<Changes>
  /** Replaces all lines by one. @returns its place */
  restart(changes: Changes): number
  close(): void
}

const nothingToWrite = Promise.resolve()

/** Makes a journal in memory, for operators that are forgotten with their process. */
export function memoryJournal(): Journal {
  let texts: string[] = []
  const parse = (text: string) => JSON.parse(text) as Changes
  const append = (changes: Changes) => texts.push(JSON.stringify(changes)) - 1
  return {
    append,
    written: () => nothingToWrite,
    read: (place) => parse(texts[place] ?? '[]'),
    *lines() {
      for (const text of texts) yield parse(text)
    },
    restart(changes) {
      texts = []
      return append(changes)
    },
    close() {},
  }
}

const head = `${JSON.stringify({ journal: 'operator-simulator', version: 1 })}\n`
/** Most lines are shorter. */
const lineBytes = 4_096
const pieceBytes = 256 * 1_024
const retryMs = 1_000

/**
 * A journal in a file that survives a `kill -9`. The lines of one turn of the event loop are written together
 * at its end, because a write for each line takes a tenth of the simulator's processor time.
 */
export class JournalFile implements Journal {
  readonly #path: string
  readonly #file: number
  readonly #onError: (error: unknown) => void
  /** The length of the file. */
  #bytes = 0
  /** The lines that are not in the file yet. */
  #unwritten: string[] = []
  #unwrittenBytes = 0
  #hasFailed = false
  #written: PromiseWithResolvers<void> | null = null

  constructor(path: string, onError: (error: unknown) => void) {
    mkdirSync(dirname(path), { recursive: true })
    this.#path = path
    this.#onError = onError
    this.#file = openSync(path, 'a+')
  }

  /**
   * Passes each line and its place to `apply`. An incomplete last line is dropped: a crash cut it short
   * before any caller learned of its changes.
   * @throws Error when the file is no journal, or a complete line cannot be read
   */
  replay(apply: (changes: Changes, place: number) => void): void {
    let number = 0
    let kept = 0
    for (const { line, place, end } of this.#linesFrom(0, pieceBytes)) {
      number += 1
      if (number === 1) checkHead(this.#path, line)
      else apply(parseLine(this.#path, number, line), place)
      kept = end
    }
    this.#cutTo(kept)
  }

  append(changes: Changes): number {
    if (this.#hasFailed) this.#write()
    if (this.#unwritten.length === 0) setImmediate(() => this.#tryToWrite())
    const place = this.#bytes + this.#unwrittenBytes
    const line = JSON.stringify(changes)
    this.#unwritten.push(line)
    this.#unwrittenBytes += Buffer.byteLength(line) + 1
    return place
  }

  written(): Promise<void> {
    if (this.#unwritten.length === 0) return nothingToWrite
    this.#written ??= Promise.withResolvers()
    return this.#written.promise
  }

  read(place: number): Changes {
    if (place >= this.#bytes) this.#write()
    for (const { line } of this.#linesFrom(place, lineBytes)) return JSON.parse(line) as Changes
    throw new Error(`${this.#path} ends before byte ${place}: another program changed the journal.`)
  }

  *lines(): Generator<Changes> {
    this.#write()
    for (const { line } of this.#linesFrom(head.length, pieceBytes)) yield JSON.parse(line) as Changes
  }

  restart(changes: Changes): number {
    this.#forgetUnwritten()
    this.#cutTo(0)
    const place = this.append(changes)
    this.#write()
    return place
  }

  close(): void {
    try {
      this.#write()
    } finally {
      this.#forgetUnwritten()
      closeSync(this.#file)
    }
  }

  /** Tries again until it succeeds; until then no answer leaves, and no change is accepted. */
  #tryToWrite(): void {
    try {
      this.#write()
    } catch (error) {
      this.#onError(error)
      setTimeout(() => this.#tryToWrite(), retryMs).unref()
    }
  }

  #write(): void {
    if (this.#unwritten.length === 0) return
    try {
      appendFileSync(this.#file, `${this.#unwritten.join('\n')}\n`)
    } catch (error) {
      // A full disk may have stored half a line. It is removed, because no line may follow it.
      this.#hasFailed = true
      ftruncateSync(this.#file, this.#bytes)
      throw error
    }
    this.#bytes += this.#unwrittenBytes
    this.#forgetUnwritten()
  }

  #forgetUnwritten(): void {
    this.#unwritten = []
    this.#unwrittenBytes = 0
    this.#hasFailed = false
    this.#written?.resolve()
    this.#written = null
  }

  #cutTo(length: number): void {
    ftruncateSync(this.#file, length)
    this.#bytes = length
    if (length > 0) return
    appendFileSync(this.#file, head)
    this.#bytes = head.length
  }

  /** Yields the complete lines from a place on, and the place after each. */
  *#linesFrom(from: number, bytesEach: number): Generator<{ line: string; place: number; end: number }> {
    let place = from
    let rest = Buffer.alloc(0)
    for (;;) {
      const piece = Buffer.allocUnsafe(bytesEach)
      const count = readSync(this.#file, piece, 0, bytesEach, place + rest.length)
      if (count === 0) return
      const bytes = Buffer.concat([rest, piece.subarray(0, count)])
      let start = 0
      for (let end = bytes.indexOf(10); end !== -1; end = bytes.indexOf(10, start)) {
        yield { line: bytes.toString('utf8', start, end), place: place + start, end: place + end + 1 }
        start = end + 1
      }
      place += start
      rest = bytes.subarray(start)
    }
  }
}

function checkHead(path: string, line: string): void {
  if (`${line}\n` !== head) throw new Error(`${path} is not a journal of this version of the simulator.`)
}

function parseLine(path: string, number: number, line: string): Changes {
  try {
    return JSON.parse(line) as Changes
  } catch (cause) {
    throw new Error(`${path}, line ${number}: not readable: another program changed the journal.`, { cause })
  }
}
