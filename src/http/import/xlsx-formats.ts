/**
 * The number formats of cells (ECMA-376, part 1, 18.8.30 and 18.8.31), as far as an amount depends on them: a
 * number is read only where a person sees it whole.
 */

/** Returns the format that has this number in every workbook, as far as it matters here. */
export function builtInFormat(id: string): string {
  if (dates.test(id)) return 'yyyy'
  return percentagesAndPowers.test(id) ? '0%' : 'General'
}

const dates = /^(?:1[4-9]|2[0-2]|2[7-9]|3[0-6]|4[5-7]|5[0-8])$/
const percentagesAndPowers = /^(?:9|1[0-3]|48)$/

/** Whether a format shows a number as a date or a time. */
export function showsDate(format: string): boolean {
  return /[dmyhs]/i.test(format.replaceAll(/"[^"]*"|\[[^\]]*\]|[\\_*]./g, '').replaceAll(/general/gi, ''))
}

/**
 * Whether a format shows all digits of a whole number, and no others. `;;;` shows nothing, `#,##0,` only the
 * thousands, `0"000"` more than is there.
 */
export function showsWholeNumber(format: string): boolean {
  const [positive = '', ...others] = sectionsOf(format)
  if (others.length === 0 && positive.trim() === '@') return true
  return /^[\s$€]*(?:General|[#?0]+(?:(?:,| +)[#?0]+)*(?:\.(?:0{1,2}|#{1,2}))?)[\s$€]*$/i.test(positive)
}

/** Whether a format shows a text, and no digits beside it. */
export function showsText(format: string): boolean {
  const sections = sectionsOf(format)
  const ofText = sections[3] ?? sections.find((section) => section.includes('@'))
  return ofText === undefined || /^[\s$]*@[\s$]*$/.test(ofText)
}

/**
 * Returns the sections of a format: for positive and negative numbers, zero and text. In place of what does
 * not depend on the value stand `!` for digits and the colour white, `$` for words, and spaces.
 */
function sectionsOf(format: string): string[] {
  const fixed =
    /"[^"]*"|\\.|\[\$[^\]-]*(?:-[^\]]*)?\]|[_*].|\[(?:black|blue|cyan|green|magenta|red|yellow)\]/gi
  const plain = format.replaceAll(fixed, (part) => {
    if (/^(?:[_*]|\[[^$])/.test(part)) return ' '
    const [words = ''] = part.replace(/^(?:\[\$|\\|")/, '').split(/["\]]|-[^"]*\]/)
    if (/\d/.test(words)) return '!'
    return words.trim() === '' ? ' ' : '$'
  })
  return plain.split(';')
}
