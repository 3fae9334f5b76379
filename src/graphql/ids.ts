import { decodeGlobalID } from '@pothos/plugin-relay'

/**
 * Reads an argument `id`, which is a global id or, as in REST, digits.
 * @param max the greatest id of the table
 * @returns -1n, which finds nothing, for whatever names nothing: rubbish, or a thing of another type
 */
export function readId(type: string, id: string, max: bigint = idMax): bigint {
  const digits = /^\d+$/.test(id) ? id : ofType(type, id)
  if (!/^\d{1,18}$/.test(digits)) return -1n
  const read = BigInt(digits)
  return read > max ? -1n : read
}

const idMax = 10n ** 18n

/** The id of a row inside a global id; nothing where that is of another type. */
function ofType(type: string, id: string): string {
  try {
    const { typename, id: own } = decodeGlobalID(id)
    return typename === type ? own : ''
  } catch {
    return ''
  }
}
