import type { DomainError } from '../../shared/errors.ts'
import { importBounds } from './bounds.ts'
import { expected, fileProblem } from './row.ts'
import type { Parts } from './xlsx-parts.ts'
import { strikes, type Styles, stylesListener } from './xlsx-styles.ts'
import { type Effort, hearXml, type Listener } from './xml.ts'

/** A workbook: its visible sheets, and what the cells of all sheets refer to. */
export interface WorkbookParts {
  sheets: readonly Sheet[]
  texts: readonly string[]
  /** The numbers of the texts of which a part is struck out. */
  struckTexts: ReadonlySet<number>
  styles: Styles
}

export interface Sheet {
  name: string
  /** The path of its part. */
  path: string
}

/**
 * Reads a workbook, without its sheets.
 * @throws DomainError INVALID_INPUT where the file is another kind of archive, or has too much in it
 * @throws Error where the workbook is damaged
 */
export async function readBook(parts: Parts, effort: Effort): Promise<WorkbookParts> {
  const roots = await readRelations(parts, { directory: '', file: '' }, effort)
  const path = roots.find(({ type }) => type === 'officeDocument')?.path
  if (path?.endsWith('.bin')) throw fileProblem('is a binary workbook (XLSB): save it as XLSX or CSV')
  const workbook = path === undefined ? null : parts(path)
  if (path === undefined || !workbook) {
    if (parts('content.xml')) throw fileProblem('is an OpenDocument file (ODS): save it as XLSX or CSV')
    throw fileProblem(`is an archive without a workbook: ${expected}`)
  }
  const directory = path.slice(0, path.lastIndexOf('/') + 1)
  const relations = await readRelations(parts, { directory, file: path.slice(directory.length) }, effort)
  const partOf = (kind: string) => {
    const found = relations.find(({ type }) => type === kind)
    return found ? parts(found.path) : null
  }
  return {
    sheets: await readSheets(workbook, relations, effort),
    ...(await readTexts(partOf('sharedStrings'), effort)),
    styles: await readStyles(partOf('styles'), effort),
  }
}

interface Relation {
  id: string
  /** The last word of its type: the words before it differ between the two editions of the standard. */
  type: string
  path: string
}

interface Place {
  directory: string
  file: string
}

/** Reads the parts to which a part refers; the archive itself has no file name. */
async function readRelations(
  parts: Parts,
  { directory, file }: Place,
  effort: Effort,
): Promise<readonly Relation[]> {
  const relations: Relation[] = []
  const part = parts(`${directory}_rels/${file}.rels`)
  const listener: Listener = {
    open(name, { Id: id = '', Type = '', Target: target }) {
      if (name !== 'Relationship' || target === undefined) return
      const type = Type.slice(Type.lastIndexOf('/') + 1)
      const { pathname } = new URL(target, `file:///${directory}`)
      relations.push({ id, type, path: pathname.slice(1) })
    },
  }
  if (part) await hearXml(part, listener, effort)
  return relations
}

/** Reads the visible sheets of cells; a workbook may have sheets of a chart too. */
async function readSheets(
  workbook: AsyncIterable<Buffer>,
  relations: readonly Relation[],
  effort: Effort,
): Promise<Sheet[]> {
  const paths = new Map(relations.flatMap(({ id, type, path }) => (type === 'worksheet' ? [[id, path]] : [])))
  const sheets = new Map<string, Sheet>()
  const listener: Listener = {
    open(element, { name = '', state = 'visible', ...more }) {
      if (element !== 'sheet' || state !== 'visible') return
      const [, id = ''] = Object.entries(more).find(([key]) => key.endsWith(':id')) ?? []
      const path = paths.get(id)
      if (path === undefined) return
      if (sheets.has(path)) throw new Error('a sheet stands twice')
      sheets.set(path, { name, path })
    },
  }
  await hearXml(workbook, listener, effort)
  return [...sheets.values()]
}

/** Reads the texts that the cells of a workbook share, by their numbers. */
async function readTexts(
  shared: AsyncIterable<Buffer> | null,
  effort: Effort,
): Promise<Pick<WorkbookParts, 'texts' | 'struckTexts'>> {
  const texts: string[] = []
  const struckTexts = new Set<number>()
  if (!shared) return { texts, struckTexts }
  const heard = textListener()
  const listener: Listener = {
    ...heard.listener,
    close(name) {
      heard.listener.close(name)
      if (name !== 'si') return
      if (texts.length === importBounds.textsMax) throw tooMany(importBounds.textsMax, 'shared texts')
      if (heard.isStruck()) struckTexts.add(texts.length)
      texts.push(heard.take())
    },
  }
  await hearXml(shared, listener, effort)
  return { texts, struckTexts }
}

async function readStyles(part: AsyncIterable<Buffer> | null, effort: Effort): Promise<Styles> {
  const { listener, styles } = stylesListener()
  if (part) await hearXml(part, listener, effort)
  return styles()
}

/** Makes a listener that gathers the text of `t` and `v`, without the phonetic text of a word. */
export function textListener() {
  let text = ''
  let isHeard = false
  let isPhonetic = false
  let isStruck = false
  return {
    listener: {
      open(name: string, attributes: Readonly<Record<string, string>>) {
        if (name === 'rPh') isPhonetic = true
        if (strikes(name, attributes)) isStruck = true
        isHeard = (name === 't' || name === 'v') && !isPhonetic
      },
      text: (part: string) => {
        if (isHeard && text.length < importBounds.textLengthMax) text += part
      },
      close(name: string) {
        if (name === 'rPh') isPhonetic = false
        isHeard = false
      },
    },
    /** Whether a part of the text is struck out. */
    isStruck: () => isStruck,
    take() {
      const taken = text
      text = ''
      isStruck = false
      // Spreadsheets write the signs that XML cannot have as `_x000D_` (ECMA-376, part 1, 22.9.2.19).
      return taken.replaceAll(/_x([\da-f]{4})_/gi, (_all, code) => String.fromCharCode(Number(`0x${code}`)))
    },
  }
}

/** Makes the refusal of a workbook that has too much of something. */
export function tooMany(max: number, what: string): DomainError {
  return fileProblem(`has more than ${max} ${what}: keep only the table in it`)
}
