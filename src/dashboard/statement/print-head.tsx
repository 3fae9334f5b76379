import { useEffect } from 'preact/hooks'
import { useLanguage, useWords } from '../language.ts'
import { useMe } from '../me.ts'
import { formatMonth } from './months.ts'
import { formatMadeAt } from './present.ts'
import { useStatementWords } from './words.ts'

interface PrintHeadProps {
  month: string
  readAt: string
  hasMore: boolean
}

/** The lines that stand on paper alone: whose statement it is, and when it was made. */
export function PrintHead({ month, readAt, hasMore }: PrintHeadProps) {
  const words = useStatementWords()
  const { merchantNumber } = useWords()
  const language = useLanguage()
  const { merchantId, merchantName, timeZone } = useMe()
  usePaperName(words.paper(formatMonth(month, language), merchantName))
  return (
    <div className="paper-only">
      <p>
        <strong>{merchantName}</strong> · {merchantNumber(merchantId)}
      </p>
      <p>{words.madeAt(formatMadeAt(readAt, language, timeZone))}</p>
      {hasMore && <p>{words.goesOn}</p>}
    </div>
  )
}

/** Gives the paper a name of its own: browsers name the file of a print after the title of the page. */
function usePaperName(name: string): void {
  useEffect(() => {
    let title = document.title
    const before = () => {
      title = document.title
      document.title = name
    }
    const after = () => (document.title = title)
    addEventListener('beforeprint', before)
    addEventListener('afterprint', after)
    return () => {
      removeEventListener('beforeprint', before)
      removeEventListener('afterprint', after)
    }
  }, [name])
}
