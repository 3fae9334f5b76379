import sax from 'sax'
import { fileProblem } from './row.ts'

/** A listener to the tags and texts of an XML text, by names without their prefixes. */
export interface Listener {
  open?: (name: string, attributes: Readonly<Record<string, string>>) => void
  /** Gets a text; a long one comes in parts. */
  text?: (text: string) => void
  close?: (name: string) => void
}

/** The most processor time of one workbook. Choice: four times the time of the largest accepted workbook. */
export const importBounds = { readMaxMs: 4_000 }

/** The processor time that reading one file has taken so far. */
export interface Effort {
  usedMs: number
}

/**
 * Reads an XML text part by part; between two parts the caller can take the values that the listener has
 * gathered. It keeps no text that it has read, so that the memory it needs is bounded for any text.
 * @param effort the effort of the whole file, to which the time of this text is added
 * @throws DomainError INVALID_INPUT where the file takes more than `importBounds.readMaxMs`
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
  const refuse = (why: string) => {
    throw new Error(why)
  }
  return {
    onerror: (error: Error) => refuse(error.message),
    ondoctype: () => refuse('a document type'),
    onopentagstart: () => {
      attributesOfTag = 0
      if (++depth > depthMax) refuse('too deep')
    },
    onattribute: () => {
      if (++attributesOfTag > attributesMax) refuse('too many attributes')
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

/** The deepest nesting and the most attributes. Workbooks have a dozen levels and two dozen attributes. */
const depthMax = 100
const attributesMax = 100
