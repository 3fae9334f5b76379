import { folder } from '../page-facts.ts'
import { doubtSession, sessionHeaders } from '../session.ts'

/** A problem of a file, or a warning about it. */
export interface ImportProblem {
  /** `lines[7].amount`, `lines[7]`, or `file` */
  field: string
  /** The problem in English. */
  message: string
  /** The line as the service read it, by the names of the columns. */
  row?: Readonly<Record<string, string>>
}

/** The outcome of an import: a draft, a refusal that left nothing behind, or no answer. */
export type ImportOutcome =
  | { type: 'draft'; id: number; warnings: readonly ImportProblem[] }
  | { type: 'refused'; code: string; problems: readonly ImportProblem[] }
  | { type: 'lost' }

/** The longest wait for the answer: a file of five megabytes over a slow network. */
const answerMsMax = 180_000

interface Answer {
  code?: string
  errors?: readonly ImportProblem[]
  data?: { id: number; warnings?: readonly ImportProblem[] }
}

/**
 * Sends a table of recipients, of which the service makes a draft.
 * @param key the same for the same file: the service makes one draft, also where an answer was lost
 */
export async function importFile(table: Blob, title: string, key: string): Promise<ImportOutcome> {
  const body = new FormData()
  body.append('title', title)
  body.append('file', table)
  const headers = { ...sessionHeaders(), 'Idempotency-Key': key }
  try {
    const response = await fetch(new URL('../merchant/api/bulk/batches/import', folder), {
      method: 'POST',
      credentials: 'same-origin',
      headers,
      body,
      signal: AbortSignal.timeout(answerMsMax),
    })
    if (response.status === 401) doubtSession()
    const { code = '', errors = [], data } = (await response.json()) as Answer
    if (!data) return { type: 'refused', code, problems: errors }
    return { type: 'draft', id: data.id, warnings: data.warnings ?? [] }
  } catch {
    return { type: 'lost' }
  }
}
