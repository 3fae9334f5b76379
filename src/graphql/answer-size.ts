import { GraphQLError } from 'graphql'

/** The largest answer. Choice: ten thousand objects of 200 bytes each. */
const graphqlAnswerMaxBytes = 2 * 1_024 * 1_024

/**
 * Refuses an answer that is too large to send; it stops counting at the bound. It counts characters, not
 * bytes: an answer with other than ASCII characters may have more bytes.
 * @throws GraphQLError COST_EXCEEDED
 */
export function checkAnswer(data: unknown): void {
  let left: number = graphqlAnswerMaxBytes

  function take(value: unknown): void {
    if (Array.isArray(value)) {
      left -= 2 + value.length
      for (const item of value) {
        if (left < 0) return
        take(item)
      }
    } else if (typeof value === 'object' && value !== null) {
      left -= 2
      for (const [name, inner] of Object.entries(value)) {
        if (left < 0) return
        left -= name.length + 4
        take(inner)
      }
    } else left -= typeof value === 'string' ? value.length + 2 : String(value).length
  }

  take(data)
  if (left >= 0) return
  const max = `${graphqlAnswerMaxBytes / 1_024 / 1_024} MB`
  throw new GraphQLError(`The answer would have more than ${max}. Ask for less at a time.`, {
    extensions: { code: 'COST_EXCEEDED' },
  })
}
