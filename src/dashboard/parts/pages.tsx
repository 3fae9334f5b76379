import { useState } from 'preact/hooks'

/** The pages of a list that the reader opened, one after the other. */
export interface Pages {
  /** The cursor before the page that is shown; undefined on the first page. */
  after: string | undefined
  toFirst: () => void
  toNewer: () => void
  toOlder: (cursor: string) => void
}

/** Keeps the cursors of the pages that the reader opened, also for the way back from a page of the list. */
export function usePages(): Pages {
  const [cursors, setCursors] = useKept<readonly string[]>('cursors', [])
  return {
    after: cursors.at(-1),
    toFirst: () => setCursors([]),
    toNewer: () => setCursors(cursors.slice(0, -1)),
    toOlder: (cursor) => setCursors([...cursors, cursor]),
  }
}

/** Keeps a value as a state of the component, and with this visit of the page in the browser's history. */
export function useKept<Value>(name: string, first: Value): [Value, (value: Value) => void] {
  const kept = history.state as Record<string, Value> | null
  const [value, set] = useState(kept?.[name] ?? first)
  const keep = (next: Value) => {
    history.replaceState({ ...(history.state as object | null), [name]: next }, '')
    set(next)
  }
  return [value, keep]
}

interface PagesBarProps {
  pages: Pages
  /** The page that is shown. */
  pageInfo: { hasNextPage: boolean; endCursor: string | null }
  words: { newer: string; older: string }
}

/** The ways from one page of a list to the next. */
export function PagesBar({ pages, pageInfo: { hasNextPage, endCursor }, words }: PagesBarProps) {
  return (
    <p className="bar">
      {pages.after !== undefined && (
        <button type="button" className="quiet small" onClick={pages.toNewer}>
          {words.newer}
        </button>
      )}
      {hasNextPage && endCursor !== null && (
        <button type="button" className="quiet small" onClick={() => pages.toOlder(endCursor)}>
          {words.older}
        </button>
      )}
    </p>
  )
}
