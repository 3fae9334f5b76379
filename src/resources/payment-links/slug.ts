import { randomInt } from 'node:crypto'
import { z } from 'zod'
import { limits } from '../../shared/limits.ts'

/** Characters of a slug that the service draws. */
const linkSlugMadeLength = 10

/** Words that an address of the service's own may need, or that would pass for one. */
const reserved: ReadonlySet<string> = new Set(
  `about account admin api app assets auth bank checkout contact demo docs graphql health help home index
  invoice legal link links login logout mail merchant new null operator operators pay payment payments
  privacy public receipt receipts register root security settings signin signup static status subscription
  subscriptions support system team terms test undefined user webhook webhooks www`.split(/\s+/),
)

const { linkSlugLengthMin: min, linkSlugLengthMax: max } = limits
const words = `must have ${min} to ${max} characters: a-z, 0-9, and dashes between them`

/** The name of a link in addresses. */
export const slug = z
  .string(words)
  .refine(
    (value) => /^[a-z0-9](?:-?[a-z0-9])*$/.test(value) && value.length >= min && value.length <= max,
    words,
  )
  .refine((value) => !reserved.has(value), 'is a reserved word')

/** Without letters that are taken for others. */
const letters = 'abcdefghjkmnpqrstuvwxyz23456789'

/** A slug that nobody guesses: 49 random bits. */
export function makeSlug(): string {
  return Array.from({ length: linkSlugMadeLength }, () => letters[randomInt(letters.length)]).join('')
}
