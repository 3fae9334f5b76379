import { importBounds } from './bounds.ts'
import { builtInFormat, showsWholeNumber } from './xlsx-formats.ts'
import type { Listener } from './xml.ts'

/**
 * The styles of cells (ECMA-376, part 1, 18.8), as far as a person sees the content of a cell by them. The
 * colours of the usual themes count: the first is white, the second is black.
 */

/** The style of a cell, by its number. */
export interface CellStyle {
  /** The number format. */
  format: string
  isStruck: boolean
  /** Whether the font has the colour of the background. */
  isUnseen: boolean
}

export interface Styles {
  cells: readonly CellStyle[]
  /** The effects of the conditional formats on the content of a cell, by their numbers. */
  conditional: readonly ConditionalEffect[]
}

/** Whether a conditional format strikes a content out, or hides or alters it; null where it does neither. */
export type ConditionalEffect = 'strikes' | 'hides' | null

interface Font {
  isStruck: boolean
  /** Null where the font states none. */
  colour: string | null
}

const plainFont: Font = { isStruck: false, colour: null }
const white = 'FFFFFF'
const black = '000000'
const colours: Readonly<Record<string, string>> = {
  'theme 0': white,
  'theme 1': black,
  'indexed 0': black,
  'indexed 1': white,
  'indexed 8': black,
  'indexed 9': white,
  'indexed 64': black,
  'indexed 65': white,
}

type Attributes = Readonly<Record<string, string>>

/** Returns a colour as a text that is equal for equal colours; null for the automatic one. */
function colourOf({ rgb, theme, indexed, tint }: Attributes): string | null {
  if (rgb !== undefined) return rgb.slice(-6).toUpperCase()
  const name = theme === undefined ? indexed && `indexed ${indexed}` : `theme ${theme}`
  if (name === undefined) return null
  return Number(tint ?? 0) === 0 ? (colours[name] ?? name) : `${name} ${tint}`
}

/** Whether a tag of a font strikes text out. */
export function strikes(name: string, { val }: Attributes): boolean {
  return name === 'strike' && val !== '0' && val !== 'false'
}

/** Makes a listener to fonts and fills, which stand in tables of styles and in conditional formats. */
function lookListener() {
  let inside: 'font' | 'fill' | null = null
  let font = plainFont
  let pattern: string | undefined
  let front: string | null = null
  let back: string | null = null
  return {
    open(name: string, attributes: Attributes) {
      if (name === 'font') {
        inside = name
        font = plainFont
      } else if (name === 'fill') {
        inside = name
        pattern = undefined
        front = back = null
      } else if (inside === 'font') {
        if (strikes(name, attributes)) font = { ...font, isStruck: true }
        if (name === 'color') font = { ...font, colour: colourOf(attributes) }
      } else if (inside === 'fill') {
        if (name === 'patternFill') pattern = attributes['patternType']
        // Shades of two colours are no colour of a font.
        if (name === 'gradientFill') pattern = name
        if (name === 'fgColor') front = colourOf(attributes)
        if (name === 'bgColor') back = colourOf(attributes)
      }
    },
    close(name: string) {
      if (name === inside) inside = null
    },
    font: () => font,
    /** The colour of the background in a cell; null where there are several. */
    fill: () => (pattern === 'solid' ? front : pattern === undefined || pattern === 'none' ? white : null),
    /** The same in a conditional format, where the second colour is that of a plain background. */
    conditionalFill: () => (pattern === undefined || pattern === 'solid' ? (back ?? front) : null),
  }
}

/**
 * Makes a listener to conditional formats, in the table of styles or, in newer workbooks, in the sheet.
 * @param take gets the effect of each format
 */
export function conditionalListener(
  take: (effect: ConditionalEffect) => void,
): Required<Pick<Listener, 'open' | 'close'>> {
  const look = lookListener()
  let isInside = false
  let isFilled = false
  let altersNumber = false
  let isColoured = false
  return {
    open(name, attributes) {
      if (name === 'dxf') {
        isInside = true
        isFilled = isColoured = altersNumber = false
        look.open('font', {})
        look.close('font')
      }
      if (!isInside) return
      look.open(name, attributes)
      if (name === 'fill') isFilled = true
      if (name === 'font') isColoured = true
      if (name === 'numFmt') altersNumber = !showsWholeNumber(attributes['formatCode'] ?? '')
    },
    close(name) {
      look.close(name)
      if (name !== 'dxf') return
      isInside = false
      const { isStruck, colour } = look.font()
      const background = isFilled ? look.conditionalFill() : white
      const isHidden = altersNumber || (isColoured && colour !== null && colour === background)
      take(isStruck ? 'strikes' : isHidden ? 'hides' : null)
    },
  }
}

/** Makes a listener to the part of styles, and the function that returns what was read. */
export function stylesListener(): { listener: Listener; styles: () => Styles } {
  const formats = new Map<string, string>()
  const fonts: Font[] = []
  const fills: (string | null)[] = []
  const cells: CellStyle[] = []
  const conditional: ConditionalEffect[] = []
  const look = lookListener()
  const conditions = conditionalListener((effect) => conditional.push(effect))
  let table = ''
  return {
    listener: {
      open(name, attributes) {
        if (tables.has(name)) table = name
        if (table === 'dxfs') return conditions.open(name, attributes)
        look.open(name, attributes)
        const { numFmtId = '', formatCode = '', fontId = '0', fillId = '0' } = attributes
        if (name === 'numFmt') {
          if (formatCode.length > importBounds.formatLengthMax) throw new Error('a format is too long')
          formats.set(numFmtId, formatCode)
        } else if (name === 'xf' && table === 'cellXfs') {
          const { isStruck, colour } = fonts[Number(fontId)] ?? plainFont
          const fill = Number(fillId) in fills ? fills[Number(fillId)] : white
          const format = formats.get(numFmtId) ?? builtInFormat(numFmtId)
          cells.push({ format, isStruck, isUnseen: (colour ?? black) === fill })
        }
      },
      close(name) {
        if (table === 'dxfs') conditions.close(name)
        look.close(name)
        if (name === 'font' && table === 'fonts') fonts.push(look.font())
        if (name === 'fill' && table === 'fills') fills.push(look.fill())
        if (name === table) table = ''
      },
    },
    styles: () => ({ cells, conditional }),
  }
}

const tables: ReadonlySet<string> = new Set(['fonts', 'fills', 'cellXfs', 'dxfs'])
