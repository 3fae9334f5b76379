import { z } from 'zod'
import { exactText } from './input.ts'

/**
 * Writes the global id of a row, for types that `node(id:)` does not find; the ids of the others have the
 * same form.
 */
export function globalId(type: string, id: bigint | number | string): string {
  return Buffer.from(`${type}:${id}`).toString('base64')
}

/**
 * Reads an id that a client sent: a global id or, as in REST, digits.
 * @returns the id of the row; -1n, which no row has, if the text is no id or names another type
 */
export function readId(type: string, id: string): bigint {
  return readUpTo(10n ** 18n, type, id)
}

/** Reads the id of a row in a table with ids of 32 bits, as `readId` does. */
export function readSmallId(type: string, id: string): number {
  return Number(readUpTo(smallIdMax, type, id))
}

/** The greatest id of a table with ids of 32 bits. */
export const smallIdMax = 2_147_483_647n

function readUpTo(max: bigint, type: string, id: string): bigint {
  const digits = /^\d+$/.test(id) ? id : rowOf(type, id)
  if (!/^\d{1,18}$/.test(digits)) return -1n
  const read = BigInt(digits)
  return read > max ? -1n : read
}

/**
 * Reads a global id: `Batch:12` in base64, exactly as this service writes it.
 * @returns the names of the type and of the row; null if the text is no global id of a numbered row
 */
export function readGlobalId(id: string): { typename: string; id: string } | null {
  const name = Buffer.from(id, 'base64').toString()
  const { typename, row } = /^(?<typename>[A-Z][A-Za-z]*):(?<row>0|[1-9]\d{0,17})$/.exec(name)?.groups ?? {}
  if (!typename || !row) return null
  return globalId(typename, row) === id ? { typename, id: row } : null
}

/** Returns the id of the row that a global id of this type names; '' if the text is no such id. */
function rowOf(type: string, id: string): string {
  const read = readGlobalId(id)
  return read?.typename === type ? read.id : ''
}

/** The longest text that is read as an id; global ids are shorter. */
const idLengthMax = 100

/** Makes the schema of an input field that names a row with an id of 32 bits, in REST also as a number. */
export function smallIdOf(type: string) {
  return z
    .union([exactText({ min: 1, max: idLengthMax }), z.int().positive()], 'must be an id')
    .transform((id) => readSmallId(type, String(id)))
    .meta({ graphql: 'ID' })
}
