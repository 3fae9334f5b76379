/**
 * Gives French words the spaces that no line may break at: before a colon, a question mark and other such
 * signs, and inside quotation marks. The file of the words has plain spaces, which an author can see.
 */
export function typeset<Text>(words: Text): Text {
  return typesetAny(words) as Text
}

function typesetAny(words: unknown): unknown {
  if (typeof words === 'string')
    return words.replaceAll(/ (?=[:»])|(?<=«) /g, '\u00a0').replaceAll(/ (?=[;!?])/g, '\u202f')
  if (typeof words === 'function') return (...given: unknown[]) => typesetAny(words(...given))
  if (Array.isArray(words)) return words.map(typesetAny)
  if (typeof words !== 'object' || words === null) return words
  return Object.fromEntries(Object.entries(words).map(([name, text]) => [name, typesetAny(text)]))
}
