import { z } from 'zod'
import { exactText } from './input.ts'
import { limits } from './limits.ts'

/**
 * The schema of a web address that a caller hands in: a page for the customer's browser, or an endpoint. It
 * gives the address as `readAddress` writes it, which is the only form that is stored, shown and sent to an
 * operator. The address may be as long as the limit in both forms.
 */
export const webAddress = exactText({ max: limits.urlLengthMax }).transform((value, ctx) => {
  const { href, problem = tooLong } = readAddress(value)
  if (href !== undefined && href.length <= limits.urlLengthMax) return href
  ctx.addIssue({ code: 'custom', message: problem })
  return z.NEVER
})

const tooLong = `must have at most ${limits.urlLengthMax} characters, with é written as %C3%A9`
const noAddress = 'must be an http or https address'

/**
 * Reads a web address. Outer spaces are dropped, and a spelling that people write is translated: capitals in
 * the scheme and host, `é` in the host or path. A spelling that a browser repairs by a guess is refused.
 * @returns the address as the URL standard writes it, in ASCII; or a `problem`, as words that follow the name
 *   of a field
 */
export function readAddress(
  given: string,
): { href: string; problem?: never } | { href?: never; problem: string } {
  const address = given.trim()
  const url = URL.parse(address)
  if (!/^https?:/i.test(address)) return { problem: noAddress }
  if (address.includes('\\')) return { problem: 'must not contain a backslash' }
  if (!/^https?:\/\/[^/]/i.test(address))
    return { problem: 'must have two slashes after the scheme, and then a host' }
  if (url === null) return { problem: noAddress }
  // The URL standard drops an empty user name (`https://@shop.example`): only the text shows it.
  if (/^\w+:\/\/[^/?#]*@/.test(address)) return { problem: 'must not contain a user name or a password' }
  if (url.port === '0') return { problem: 'must not have port 0' }
  return { href: url.href }
}
