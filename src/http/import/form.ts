import type { IncomingMessage } from 'node:http'
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
  fieldSize: 2_048,
  fields: 20,
  parts: 20,
  headerPairs: 20,
  headerSize: 4 * 1_024,
}

function openParser(type: string): BusboyInstance {
  try {
    return new Busboy({ headers: { 'content-type': type }, limits: formLimits })
  } catch {
    throw malformed()
  }
}

interface Settlers {
  resolve: (form: Form) => void
  reject: (why: Error) => void
}

function gather(message: IncomingMessage, parser: BusboyInstance, { resolve, reject }: Settlers): void {
  const texts = new Map<string, string>()
  const store = new ArrayBuffer(0, { maxByteLength: limits.recipientsBodyMaxBytes })
  let files = 0
  let size = 0
  const refuse = (field: string, problem: string) => reject(invalidInput([{ field, message: problem }]))
  parser.on('field', (name, text, _nameCut, isCut) => {
    if (isCut) refuse(name, 'is too long')
    else if (texts.has(name)) refuse(name, 'occurs twice')
    else if (text !== '') texts.set(name, text)
  })
  parser.on('file', (name, file) => {
    file.on('error', () => reject(malformed()))
    if (name !== 'file') return void file.resume()
    if (++files > 1) refuse('file', 'occurs twice: send one file at a time')
    file.on('limit', () => reject(new DomainError('BODY_TOO_LARGE')))
    file.on('data', (part: Buffer) => {
      if (files === 1) append(store, part)
    })
  })
  for (const event of ['partsLimit', 'fieldsLimit'] as const) {
    parser.on(event, () => refuse('', 'The form has too many fields'))
  }
  parser.on('error', () => reject(malformed()))
  parser.on('finish', () => {
    if (files === 0) refuse('file', 'is required, as a file')
    else resolve({ texts, file: Buffer.from(store) })
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

/** Appends bytes and enlarges the buffer as they come, so that the memory holds them only once. */
function append(store: ArrayBuffer, part: Buffer): void {
  const at = store.byteLength
  store.resize(at + part.length)
  new Uint8Array(store, at).set(part)
}

function malformed(): DomainError {
  return new DomainError('INVALID_INPUT', 'The request body is not a well-formed form.')
}
