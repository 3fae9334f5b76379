import { useEffect } from 'preact/hooks'

/** Asks before the person leaves the page by a link, closes it, or loads it anew. */
export function useQuestionOnLeaving(question: string): void {
  useEffect(() => {
    const ends = new AbortController()
    const { signal } = ends
    addEventListener('beforeunload', (event) => event.preventDefault(), { signal })
    const ask = (event: MouseEvent) => {
      const isElsewhere = event.ctrlKey || event.metaKey || event.shiftKey
      const link = event.target instanceof Element && event.target.closest('a[href]')
      if (!link || isElsewhere || confirm(question)) return
      event.preventDefault()
      event.stopPropagation()
    }
    // Before the link gets the click.
    document.addEventListener('click', ask, { capture: true, signal })
    return () => ends.abort()
  }, [question])
}
