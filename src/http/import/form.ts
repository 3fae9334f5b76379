import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import type { Readable } from 'node:stream'
import { Busboy, type BusboyInstance } from '@fastify/busboy'
import { DomainError } from '../../shared/errors.ts'
import { invalidInput } from '../../shared/input.ts'
import { limits } from '../../shared/limits.ts'

/** The content of a form: its texts by name, without empty ones, and its file. */
export interface Form {
  texts: ReadonlyMap<string, string>
  file: Buffer
}

/**
 * Reads a form with one file, in the field `file`, while it arrives; files in other fields are ignored.
 * @throws DomainError UNSUPPORTED_MEDIA_TYPE, BODY_TOO_LARGE, INVALID_INPUT
 */
export async function readForm(message: IncomingMessage): Promise<Form> {
  const { 'content-type': type = '', 'content-encoding': encoding = 'identity' } = message.headers
  if (!/^multipart\/form-data\s*;/i.test(type) || encoding !== 'identity') {
    const words = 'Send the file in the field file of a form, with Content-Type: multipart/form-data.'
    throw new DomainError('UNSUPPORTED_MEDIA_TYPE', words)
  }
  if (Number(message.headers['content-length'] ?? 0) > bodyMaxBytes) throw new DomainError('BODY_TOO_LARGE')
  try {
    return await new Promise<Form>((resolve, reject) =>
      gather(message, openParser(type), { resolve, reject }),
    )
  } finally {
    // The handler drops the rest of the request after its answer (`passOver`).
    message.unpipe().pause()
  }
}

/** The largest body: the file, and the parts of the form around it. */
const bodyMaxBytes = limits.recipientsBodyMaxBytes + 64 * 1_024

/** Choice: the form has four fields and a file; a form of another program may have some more. */
const formLimits = {
  fileSize: limits.recipientsBodyMaxBytes,
  parts: 20,
  headerPairs: 20,
  headerSize: 4 * 1_024,
}

/** The most bytes of a text. */
const textMaxBytes = 2_048

function openParser(type: string): BusboyInstance {
  try {
    // A part that is a file comes as bytes; of a text, the parser would replace bytes that are not UTF-8.
    return new Busboy({ headers: { 'content-type': type }, limits: formLimits, isPartAFile: () => true })
  } catch {
    throw malformed()
  }
}

interface Settlers {
  resolve: (form: Form) => void
  reject: (why: Error) => void
}

function gather(message: IncomingMessage, parser: BusboyInstance, { resolve, reject }: Settlers): void {
  const texts = new Map<string, Buffer>()
  const store = new ArrayBuffer(0, { maxByteLength: limits.recipientsBodyMaxBytes })
  let files = 0
  let size = 0
  const refuse = (field: string, problem: string) => reject(invalidInput([{ field, message: problem }]))
  const takeText = (name: string, part: Readable) => {
    if (texts.has(name)) refuse(name, 'occurs twice')
    texts.set(name, Buffer.alloc(0))
    part.on('data', (bytes: Buffer) => {
      const text = Buffer.concat([texts.get(name) ?? Buffer.alloc(0), bytes])
      if (text.length > textMaxBytes) refuse(name, 'is too long')
      else texts.set(name, text)
    })
  }
  const takeFile = (part: Readable) => {
    if (++files > 1) refuse('file', 'occurs twice: send one file at a time')
    part.on('limit', () => reject(new DomainError('BODY_TOO_LARGE')))
    part.on('data', (bytes: Buffer) => {
      if (files === 1) append(store, bytes)
    })
  }
  parser.on('file', (name: string | undefined, part, fileName: string | undefined, _encoding, type) => {
    part.on('error', () => reject(malformed()))
    const isFile = fileName !== undefined || type === 'application/octet-stream'
    if (!isFile && name !== undefined) takeText(name, part)
    else if (name === 'file') takeFile(part)
    else part.resume()
  })
  parser.on('partsLimit', () => refuse('', 'The form has too many fields'))
  parser.on('error', () => reject(malformed()))
  parser.on('finish', () => {
    const [unclear] = [...texts].find(([, text]) => !isUtf8(text)) ?? []
    if (files === 0) refuse('file', 'is required, as a file')
    else if (unclear !== undefined) refuse(unclear, 'is not UTF-8')
    else resolve({ texts: written(texts), file: Buffer.from(store) })
  })
  message.on('data', (part: Buffer) => {
    size += part.length
    if (size > bodyMaxBytes) reject(new DomainError('BODY_TOO_LARGE'))
  })
  // A client that hung up in the middle gets no answer, and is no error of the service.
  message.once('error', () => reject(malformed()))
  message.once('close', () => {
    if (!message.complete) reject(malformed())
  })
  message.pipe(parser)
}

function written(texts: ReadonlyMap<string, Buffer>): ReadonlyMap<string, string> {
  return new Map([...texts].flatMap(([name, text]) => (text.length > 0 ? [[name, text.toString()]] : [])))
}

/** Appends bytes and enlarges the buffer as they come, so that the memory holds them only once. */
function append(store: ArrayBuffer, part: Buffer): void {
  const at = store.byteLength
  store.resize(at + part.length)
  new Uint8Array(store, at).set(part)
}

function malformed(): DomainError {
  return new DomainError('INVALID_INPUT', 'The request body is not a well-formed form.')
}
