import { randomInt } from 'node:crypto'
import { z } from 'zod'
import { limits } from '../../shared/limits.ts'

/** The length of a slug that the service generates, in characters. */
const linkSlugMadeLength = 10

/** Words that the service may need for its own addresses, or that a payer could take for such an address. */
const reserved: ReadonlySet<string> = new Set(
  `about account admin api app assets auth bank checkout contact demo docs graphql health help home index
  invoice legal link links login logout mail merchant new null operator operators pay payment payments
  privacy public receipt receipts register root security settings signin signup static status subscription
  subscriptions support system team terms test undefined user webhook webhooks www`.split(/\s+/),
)

const { linkSlugLengthMin: min, linkSlugLengthMax: max } = limits
const words = `must have ${min} to ${max} characters: a-z, 0-9, and dashes between them`

/** The input schema of a slug, the name of a link in its address. */
export const slug = z
  .string(words)
  .refine(
    (value) => /^[a-z0-9](?:-?[a-z0-9])*$/.test(value) && value.length >= min && value.length <= max,
    words,
  )
  .refine((value) => !reserved.has(value), 'is a reserved word')

/** The characters of generated slugs, without those that look like others. */
const letters = 'abcdefghjkmnpqrstuvwxyz23456789'

/** Generates a slug of 49 random bits, which cannot be guessed. */
export function makeSlug(): string {
  return Array.from({ length: linkSlugMadeLength }, () => letters[randomInt(letters.length)]).join('')
}
