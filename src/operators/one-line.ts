/**
 * Returns a text for a field of an operator that takes one short line: line breaks become spaces, and a text
 * that is too long ends before the first character that does not fit whole.
 * @param max in UTF-16 units, so that the result also fits an operator that counts characters
 */
export function oneLine(text: string, max: number): string {
  const line = text.replaceAll(/\s+/g, ' ').trim()
  return line.length <= max ? line : line.slice(0, characters.segment(line).containing(max)?.index)
}

/** A joined emoji or a letter with its marks is one character. */
const characters = new Intl.Segmenter('fr')
