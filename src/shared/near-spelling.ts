/**
 * Finds the word that a given word was meant to be: with other capitals or separators (`customerPhone`,
 * `operatora`), or with one wrong, missing, added or swapped letter (`custommer_phone`).
 * @returns null where no word is near, or where a typo may mean several: `OperatorZ` means no operator
 */
export function wordMeantBy(given: string, words: readonly string[]): string | null {
  if (given.length > nearLengthMax) return null
  const plain = plainOf(given)
  const same = words.find((word) => plainOf(word) === plain)
  if (same !== undefined) return same
  const [near = null, ...more] = words.filter((word) => isTypo(plainOf(word), plain))
  return more.length === 0 ? near : null
}

/** The longest word that is compared: no name or value of the API is longer. */
const nearLengthMax = 100
/** In a shorter word one letter is no typo, but another word. */
const typoLengthMin = 5

function plainOf(word: string): string {
  return word.toLowerCase().replaceAll(/[^\p{L}\p{N}]/gu, '')
}

function isTypo(word: string, given: string): boolean {
  if (Math.min(word.length, given.length) < typoLengthMin) return false
  let start = 0
  while (start < word.length && word[start] === given[start]) start += 1
  let end = 0
  const endMax = Math.min(word.length, given.length) - start
  while (end < endMax && word.at(-1 - end) === given.at(-1 - end)) end += 1
  const [left, found] = [word.slice(start, word.length - end), given.slice(start, given.length - end)]
  if (left.length <= 1 && found.length <= 1) return true
  return left.length === 2 && found === `${left[1]}${left[0]}`
}
