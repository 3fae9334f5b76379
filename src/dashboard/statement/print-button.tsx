import { useEffect, useState } from 'preact/hooks'
import { useLanguage } from '../language.ts'
import { useStatementWords } from './words.ts'

/** The most lines on paper. Choice: some sixty pages. */
const paperLinesMax = 2_000

interface PrintButtonProps {
  /** All lines of the month, and those that were read. */
  total: number
  read: number
  readAll: (linesMax: number) => Promise<boolean>
}

/** Reads all lines of the month, and then opens the dialog of the printer. */
export function PrintButton({ total, read, readAll }: PrintButtonProps) {
  const words = useStatementWords()
  const number = new Intl.NumberFormat(useLanguage())
  const [state, setState] = useState<'none' | 'reading' | 'ready' | 'failed'>('none')
  const isTooLong = total > paperLinesMax
  const begin = async () => {
    if (isTooLong || state === 'reading') return
    setState('reading')
    setState((await readAll(paperLinesMax)) ? 'ready' : 'failed')
  }
  // An effect runs after the lines are in the page.
  useEffect(() => {
    if (state !== 'ready') return
    setState('none')
    print()
  }, [state])
  const notices = {
    none: '',
    ready: '',
    reading: words.progress(number.format(read), number.format(total)),
    failed: words.notPrinted,
  }
  return (
    <>
      <button
        type="button"
        className="quiet small"
        aria-disabled={isTooLong || state === 'reading'}
        aria-describedby="print-notice"
        onClick={() => void begin()}
      >
        {words.print}
      </button>
      <p id="print-notice" role="status" className="soft">
        {isTooLong ? words.tooLong(number.format(total)) : notices[state]}
      </p>
    </>
  )
}
