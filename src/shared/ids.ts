import { z } from 'zod'
import { text } from './input.ts'

/**
 * Reads an id that a client sent: a global id or, as in REST, digits.
 * @returns -1n, which no row has, where it names nothing: rubbish, or a row of another type
 */
export function readId(type: string, id: string): bigint {
  return readUpTo(10n ** 18n, type, id)
}

/** The same for a table whose ids have 32 bits. */
export function readSmallId(type: string, id: string): number {
  return Number(readUpTo(smallIdMax, type, id))
}

/** The greatest id of a table whose ids have 32 bits. */
export const smallIdMax = 2_147_483_647n

function readUpTo(max: bigint, type: string, id: string): bigint {
  const digits = /^\d+$/.test(id) ? id : rowOf(type, id)
  if (!/^\d{1,18}$/.test(digits)) return -1n
  const read = BigInt(digits)
  return read > max ? -1n : read
}

/** The row that a global id names: `Batch:12` in base64. Nothing where it is of another type. */
function rowOf(type: string, id: string): string {
  const name = Buffer.from(id, 'base64').toString()
  const isGlobalId = Buffer.from(name).toString('base64') === id
  return isGlobalId && name.startsWith(`${type}:`) ? name.slice(type.length + 1) : ''
}

/** No global id is as long. */
const idLengthMax = 100

/** The field of an input that names a row with an id of 32 bits, in REST also as a number. */
export function smallIdOf(type: string) {
  return z
    .union([text({ min: 1, max: idLengthMax }), z.int().positive()], 'must be an id')
    .transform((id) => readSmallId(type, String(id)))
    .meta({ graphql: 'ID' })
}
