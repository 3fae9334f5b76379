import { LruMap } from '../../shared/lru-map.ts'
import type { HtmlPart, PageReader } from './layout.ts'
import { type FormView, formPage } from './payment-link-views.ts'

/** The number of drawn forms of links that are kept. Choice: some megabytes at most. */
const drawnFormsMax = 1_000

/**
 * A drawn page: its text, or its bytes as one character each, which Node sends in one write with the head.
 */
export type Drawn = { text: HtmlPart } | { bytes: string }

export async function drawForm(reader: PageReader, view: FormView): Promise<Drawn> {
  return { text: formPage(reader, view) }
}

/**
 * Makes a function that draws the empty form of a link, and keeps it while its content stays the same: all
 * values that it shows are its key. (Number ranges are a setting of the service: they do not change while it
 * runs.) Each visitor's form has a token of its own.
 */
export function rememberForms(): typeof drawForm {
  const drawn = new LruMap<string, readonly [before: string, after: string]>(drawnFormsMax)
  return async (reader, view) => {
    const { link, operators, typed } = view
    const said = JSON.stringify([reader, { ...link, amount: String(link.amount) }, operators])
    const known = drawn.get(said)
    if (known) return { bytes: known[0] + typed.token + known[1] }
    const bytes = bytesOf(String(await formPage(reader, view)))
    const tokenAt = bytes.indexOf(typed.token)
    drawn.set(said, [bytes.slice(0, tokenAt), bytes.slice(tokenAt + typed.token.length)])
    return { bytes }
  }
}

export function bytesOf(text: string): string {
  return Buffer.from(text).toString('latin1')
}
