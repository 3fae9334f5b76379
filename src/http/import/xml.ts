import sax from 'sax'
import { importBounds } from './bounds.ts'
import { fileProblem } from './row.ts'

/** A listener to the tags and texts of an XML text, by names without their prefixes. */
export interface Listener {
  open?: (name: string, attributes: Readonly<Record<string, string>>) => void
  /** Gets a text; a long one comes in parts. */
  text?: (text: string) => void
  close?: (name: string) => void
}

/** The processor time that reading one file has taken so far, and the marks of its XML that were read. */
export interface Effort {
  usedMs: number
  marks: number
}

/**
 * Reads an XML text part by part; between two parts the caller can take the values that the listener has
 * gathered. It keeps no text that it has read, so that the memory it needs is bounded for any text.
 * @param effort the effort of the whole file, to which the time and the marks of this text are added
 * @throws DomainError INVALID_INPUT where the text goes beyond one of `importBounds`, which the message names
 * @throws Error where the text is not well-formed, has a document type (which could define entities), or has
 *   a form that no workbook has
 */
export async function* readXml(
  parts: AsyncIterable<Buffer>,
  listener: Listener,
  effort: Effort,
): AsyncGenerator<void, void> {
  const parser = Object.assign(sax.parser(true), handlersFor(listener))
  const decoder = new TextDecoder('utf-8', { fatal: true })
  for await (const part of parts) {
    const before = process.threadCpuUsage()
    effort.marks += countMarks(part)
    if (effort.marks > importBounds.marksMax) {
      const what = `${importBounds.marksMax} tags, attributes and references`
      throw fileProblem(`has more than ${what} in its XML: keep only the table in it`)
    }
    parser.write(decoder.decode(part, { stream: true }))
    const { user, system } = process.threadCpuUsage(before)
    effort.usedMs += (user + system) / 1_000
    if (effort.usedMs > importBounds.readMaxMs) {
      throw fileProblem('takes too long to read: keep only the table in it')
    }
    yield
  }
  parser.write(decoder.decode()).close()
  yield
}

/**
 * Returns the handlers for sax. In sax only the stack of open tags and the attributes of one tag grow with a
 * text: both are bounded here.
 */
function handlersFor(listener: Listener) {
  let depth = 0
  let attributesOfTag = 0
  const { depthMax, attributesMax } = importBounds
  const refuse = (why: string) => {
    throw new Error(why)
  }
  return {
    onerror: ({ message }: Error) => {
      if (message.startsWith('Max buffer length exceeded')) {
        // The bound is sax's own, and so is this text.
        throw fileProblem('has a name or a value longer than 64 KiB in its XML')
      }
      refuse(message)
    },
    ondoctype: () => refuse('a document type'),
    onopentagstart: () => {
      attributesOfTag = 0
      if (++depth > depthMax) throw fileProblem(`has more than ${depthMax} levels in its XML`)
    },
    onattribute: () => {
      if (++attributesOfTag > attributesMax) {
        throw fileProblem(`has more than ${attributesMax} attributes of one tag in its XML`)
      }
    },
    onopentag: ({ name, attributes }: sax.Tag) => listener.open?.(localName(name), attributes),
    ontext: listener.text,
    oncdata: listener.text,
    onclosetag: (name: string) => {
      depth -= 1
      listener.close?.(localName(name))
    },
  }
}

/** Reads a whole XML text for a listener. */
export async function hearXml(
  parts: AsyncIterable<Buffer>,
  listener: Listener,
  effort: Effort,
): Promise<void> {
  for await (const _ of readXml(parts, listener, effort));
}

function localName(name: string): string {
  return name.slice(name.indexOf(':') + 1)
}

/** Counts the signs that begin or separate what costs time in an XML text: `<`, `=` and `&`. */
function countMarks(part: Buffer): number {
  let marks = 0
  for (const byte of part) if (byte === 0x3c || byte === 0x3d || byte === 0x26) marks += 1
  return marks
}
